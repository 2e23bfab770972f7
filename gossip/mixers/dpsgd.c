/* gossip/mixers/dpsgd.c -- D-PSGD as a mixer, and its best step size. */
#include "gossip/mixers/dpsgd.h"

#include "gossip/mixers/exact.h"
#include "gossip/mixers/mixing.h"
#include "topology/topology.h"

#include <math.h>

const struct mixer mixer_dpsgd = {.name = "dpsgd",
                                  .whole = true,
                                  .open = exact_open,
                                  .close = exact_close,
                                  .plan = exact_plan,
                                  .valid = mixing_decodes,
                                  .apply = exact_apply,
                                  .mix = exact_mix,
                                  .encode = exact_encode};

/* Gershgorin: I - W has no eigenvalue over 2 d / (1 + d), nor has any subgraph's. */
static double safe_step(const struct graph *g)
{
    uint32_t most = 1;
    for (uint32_t v = 0; v < g->n; v++)
        most = graph_degree(g, v) > most ? graph_degree(g, v) : most;
    return (1.0 + most) / most;
}

int dpsgd_step(const char *spec, uint32_t n, uint64_t seed, double *step)
{
    struct graph g;
    struct spectrum s;
    *step = 1;
    if (n < 2)
        return 0;
    int err = graph_build(&g, spec, n, seed);
    if (err != 0)
        return err;
    err = graph_spectrum(&g, &s);
    if (err == 0)
        *step = fmin(2 / (2 - s.lambda_2 - s.lambda_n), safe_step(&g));
    graph_close(&g);
    return err;
}
