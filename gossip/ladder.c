/* gossip/ladder.c -- the rungs, and when to leave one. */
#include "gossip/ladder.h"

#include <math.h>

const char *const ladder_spec[LADDER_RUNGS] = {
    "topk:0.003+qsgd:4", "topk:0.01+qsgd:4", "topk:0.03+qsgd:4",
    "topk:0.1+qsgd:4",   "topk:0.3+qsgd:4",  "qsgd:4",
    "qsgd:8",            "fp16"};

void ladder_init(struct ladder *l)
{
    *l = (struct ladder){.rung = LADDER_FIRST};
}

/* How many rungs up, or -1. */
static int step(struct ladder *l, double ratio)
{
    l->n_low = ratio < 0.5 ? l->n_low + 1 : 0;
    if (ratio > 1)
        return ratio > 2 ? 2 : 1;
    return l->n_low >= 2 ? -1 : 0;
}

void ladder_look(struct ladder *l, double target, double relative_drift,
                 uint64_t of_round, uint64_t now)
{
    if (!isfinite(relative_drift) || of_round <= l->after)
        return;
    l->after = of_round;
    int to = (int)l->rung + step(l, relative_drift / target);
    to = to < 0 ? 0 : to >= LADDER_RUNGS ? LADDER_RUNGS - 1 : to;
    if ((uint32_t)to == l->rung)
        return;
    l->rung = (uint32_t)to;
    l->n_low = 0;
    l->after = now;
    l->changes++;
}
