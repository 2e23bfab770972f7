/* gossip/ladder.c -- the rungs, and when to leave one. */
#include "gossip/ladder.h"

#include <math.h>

const char *const ladder_spec[LADDER_RUNGS] = {
    "topk:0.003+qsgd:4", "topk:0.01+qsgd:4", "topk:0.03+qsgd:4",
    "topk:0.1+qsgd:4",   "topk:0.3+qsgd:4",  "qsgd:4",
    "qsgd:8",            "fp16"};

static const double kNewest = 0.1; /* Weight of the newest |Delta|^2. */

void ladder_init(struct ladder *l)
{
    *l = (struct ladder){.rung = LADDER_FIRST, .excess = (double)NAN};
}

void ladder_moved(struct ladder *l, double motion2)
{
    if (l->motion2 > 0)
        l->motion2 += kNewest * (motion2 - l->motion2);
    else
        l->motion2 = motion2;
}

void ladder_mark(struct ladder *l, uint64_t round)
{
    uint32_t i = l->n_marks++ % LADDER_MARKS;
    l->mark[i].round = round;
    l->mark[i].motion2 = l->motion2;
}

/* What the average was when that window began; 0: not known. */
static double motion2_at(const struct ladder *l, uint64_t round)
{
    for (uint32_t i = 0; i < LADDER_MARKS; i++)
        if (l->mark[i].round == round && l->mark[i].motion2 > 0)
            return l->mark[i].motion2;
    return 0;
}

/* How many rungs up, or -1. */
static int step(struct ladder *l, double ratio)
{
    l->n_low = ratio < 0.5 ? l->n_low + 1 : 0;
    if (ratio > 1)
        return ratio > 2 ? 2 : 1;
    return l->n_low >= 2 ? -1 : 0;
}

void ladder_look(struct ladder *l, double target, double spread, double xi,
                 uint64_t of_round, uint64_t now)
{
    double motion2 = motion2_at(l, of_round);
    if (!isfinite(xi) || of_round <= l->after || !(motion2 > 0) ||
        !(spread > 0))
        return;
    l->after = of_round;
    l->excess = xi / (spread * sqrt(motion2));
    int to = (int)l->rung + step(l, l->excess / target);
    to = to < 0 ? 0 : to >= LADDER_RUNGS ? LADDER_RUNGS - 1 : to;
    if ((uint32_t)to == l->rung)
        return;
    l->rung = (uint32_t)to;
    l->n_low = 0;
    l->after = now;
}
