/* peer/node/verdict.c -- the judgement, from a few figures. */
#include "peer/node/verdict.h"

#include <math.h>
#include <stdio.h>

enum {
    FIRST = 10, /* Rounds whose mean is the loss to begin with, */
    LEAST = 30  /* and without so many nothing is said of the loss. */
};

static const double kNewest = 0.1; /* Weight of the newest loss. */
static const double kWorse = 1;    /* Nats, */
static const double kMost = 0.7;   /* in this share of the newest rounds. */
static const double kFar = 1;      /* Of |mean|. */
static const double kGrown = 3;    /* Of Xi in the third quarter. */

void verdict_init(struct verdict *v)
{
    *v = (struct verdict){.loss_first = (double)NAN,
                          .loss_last = (double)NAN,
                          .xi_half = (double)NAN,
                          .drift = (double)NAN};
}

void verdict_loss(struct verdict *v, uint64_t round, double loss)
{
    uint64_t n = ++v->n_losses;
    if (n == 1) {
        v->loss_first = round == 0 ? loss : (double)NAN;
        v->loss_last = loss;
        return;
    }
    if (n <= FIRST)
        v->loss_first += (loss - v->loss_first) / (double)n;
    bool above = loss > v->loss_first + kWorse;
    v->above += kNewest * ((above ? 1.0 : 0.0) - v->above);
    v->loss_last += kNewest * (loss - v->loss_last);
}

void verdict_drift(struct verdict *v, double xi, double relative, uint64_t round, uint64_t n_rounds)
{
    uint64_t half = n_rounds / 2, late = n_rounds - n_rounds / 10;
    if (isfinite(xi) && round >= half && round < half + n_rounds / 4 && !(xi <= v->xi_half))
        v->xi_half = xi;
    if (round < late || !(xi > kGrown * v->xi_half))
        return;
    double far = isfinite(relative) ? relative : xi > 0 ? (double)INFINITY : 0;
    if (far <= v->drift)
        return;
    v->drift = far;
    v->drift_round = round;
}

bool verdict_ran_away(const struct verdict *v, char why[VERDICT_TEXT])
{
    bool loss = v->n_losses >= LEAST && v->above > kMost;
    bool drift = v->drift > kFar;
    if (loss)
        snprintf(why, VERDICT_TEXT, "the training loss ended at %.4g, having begun at %.4g",
                 v->loss_last, v->loss_first);
    else if (drift)
        snprintf(why, VERDICT_TEXT,
                 "at round %llu the models were farther apart than their mean is long "
                 "(relative drift %.3g)",
                 (unsigned long long)v->drift_round, v->drift);
    return loss || drift;
}
