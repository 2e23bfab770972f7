/* peer/node/edge/edges_away.c -- records which absent neighbours this peer does not wait for. */
#include "peer/node/edge/edges_state.h"

void edges_excuse(struct edges *es, size_t i, bool excused)
{
    struct neighbour *b = es->at[i];
    b->excused = excused;
    if (!excused || b->was_excused)
        return;
    b->was_excused = true;
    es->excused_us = es->env->now_us;
}

void edges_begin(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++)
        es->at[i]->absence = flap_damping_begun(es->env->now_us);
}
