/* peer/node/edge/edges_gap.c -- computes the spectral gap of the current graph, and the momentum
 * that follows from it. */
#include "peer/node/edge/edges_state.h"

void edges_measure_gap(struct edges *es)
{
    struct spectrum s;
    if (es->measured == es->place.built || es->n_rounds > 0)
        return;
    if (env_spectrum(es->env, edges_topology(es), es->place.n, es->workshop->run.seed, &s) != 0) {
        env_note(es->env, NOTE_ERROR, "out of memory for the eigenvalues of the topology");
        env_end(es->env, 1);
        return;
    }
    es->gap = s.gap;
    es->momentum = spectrum_momentum(&s);
    es->measured = es->place.built;
}

double edges_gap(const struct edges *es)
{
    return es->measured == es->place.built ? es->gap : 0;
}
