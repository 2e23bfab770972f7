/* peer/node/step/divergence.c -- judges from losses and drift figures whether training diverged. */
#include "peer/node/step/divergence.h"

#include "nn/math/number.h"
#include "nn/math/state.h"

#include <math.h>
#include <stdio.h>

enum {
    FIRST = 10, /* loss_mean is the mean of this number of losses at the start of training. */
    /* With fewer loss values than this, the moving share of bad rounds is not used: training
     * diverged only if the last losses are all far too high (clearly_worse()). */
    LEAST = 30,
    ENOUGH = 100, /* A run with fewer rounds is not expected to have learnt anything. */
    /* With fewer samples than this, an accuracy may equal the share of the most frequent label by
     * chance. */
    TESTED = 100,
    STREAK = 10 /* Number of far too high losses in a row that proves divergence (clear_factor). */
};

/* Weight of the newest loss in the moving average `above`. last_weight() derives its weight in the
 * moving average `loss_last` from this value. */
static const double newest_weight = 0.1;
/* If the first loss is the mean of fewer samples than this, each loss has less weight in the moving
 * average of the losses. */
static const double steady_samples = 64;
/* A round counts as worse than an untrained model if its loss is this far above the initial loss,
 * in nats. */
static const double worse_nats = 1;
/* Training diverged if the share of recent rounds with a model worse than an untrained one exceeds
 * this value. The share is a moving average of 1 for each such round and 0 for any other round. */
static const double most_share = 0.7;
/* A loss is far too high if it is above this multiple of the initial loss, and also more than
 * worse_nats above the initial loss. */
static const double clear_factor = 3;
/* The first loss may be low by chance. Therefore this value, in nats, divided by the square root of
 * the number of samples of the first loss, is added to that loss. */
static const double noise_nats = 2;
/* The final loss is better than guessing only if the gain exceeds this share of the loss of
 * guessing. A smaller gain may come from unequal class sizes or from chance. */
static const double guess_share = 0.01;
/* The models of the peers are too far apart if their relative drift exceeds this value. */
static const double far_apart = 1;
/* Models are too far apart only if the drift Xi also exceeds this multiple of its largest value in
 * the third quarter of training. */
static const double grown_factor = 3;

void divergence_init(struct divergence *v)
{
    *v = (struct divergence){.loss_first = (double)NAN,
                             .loss_mean = (double)NAN,
                             .loss_last = (double)NAN,
                             .xi_half = (double)NAN,
                             .drift = (double)NAN};
}

/* Returns the initial loss: the lesser of the very first loss and the mean of the first losses. A
 * divergence within the first rounds raises the mean, but not the very first loss. The very first
 * loss may be low by chance, so a tolerance (noise_nats) is added to it. A mean below `guess`, the
 * loss of guessing, counts as `guess`. Such a mean does not last: a shard with one label is learnt
 * within ten rounds, but its loss rises again when the peers' models are mixed. NaN: this peer was
 * not present from the start. */
static double begun(const struct divergence *v, double guess)
{
    double first = v->loss_first + noise_nats / sqrt((double)v->n_samples);
    double mean = v->loss_mean < guess ? guess : v->loss_mean;
    return first < mean ? first : mean;
}

/* Returns the weight of the newest loss in loss_last. If the first loss has few samples, the weight
 * is lower, because a single bad batch must not dominate the average. In a short run the weight is
 * higher, so that the average covers at most the last third of all losses. */
static double last_weight(const struct divergence *v)
{
    double n = (double)v->n_losses, share = (double)v->n_samples / steady_samples;
    double least = newest_weight * LEAST / n;
    double weight = newest_weight * (share < 1 ? share : 1);
    return n <= 3 ? 1 : weight < least ? least : weight;
}

void divergence_loss(struct divergence *v, uint64_t round, double loss, uint64_t n_samples,
                     double guess)
{
    uint64_t n = ++v->n_losses;
    if (n == 1) {
        v->loss_first = v->loss_mean = round == 0 ? loss : (double)NAN;
        v->loss_last = loss;
        v->n_samples = n_samples > 0 ? n_samples : 1;
        return;
    }
    if (n <= FIRST)
        v->loss_mean += (loss - v->loss_mean) / (double)n;
    double limit = begun(v, guess);
    bool above = loss > limit + worse_nats;
    v->above += newest_weight * ((above ? 1.0 : 0.0) - v->above);
    v->n_clear = above && loss > clear_factor * limit ? v->n_clear + 1 : 0;
    v->loss_last += last_weight(v) * (loss - v->loss_last);
}

/* Returns whether the last STREAK losses were all far above the initial loss. In a short run the
 * last third of the losses is examined instead, but at least two losses. */
static bool clearly_worse(const struct divergence *v)
{
    uint64_t third = (v->n_losses + 2) / 3;
    uint64_t least = third < 2 ? 2 : third < STREAK ? third : STREAK;
    return v->n_clear >= least;
}

void divergence_drift(struct divergence *v, double xi, double relative, uint64_t round,
                      uint64_t n_rounds)
{
    uint64_t half = n_rounds / 2, late = n_rounds - n_rounds / 10;
    if (isfinite(xi) && round >= half && round < half + n_rounds / 4 && !(xi <= v->xi_half))
        v->xi_half = xi;
    if (round < late || !(xi > grown_factor * v->xi_half))
        return;
    double far = isfinite(relative) ? relative : xi > 0 ? (double)INFINITY : 0;
    if (far <= v->drift)
        return;
    v->drift = far;
    v->drift_round = round;
}

bool divergence_majority(const struct trainer_report *tested, char why[DIVERGENCE_TEXT])
{
    bool nothing =
        tested->n_samples >= TESTED && tested->majority < 1 && tested->accuracy <= tested->majority;
    if (nothing)
        snprintf(
            why, DIVERGENCE_TEXT,
            "the accuracy is %.2f %%, and always guessing the most frequent label gives %.2f %%",
            100 * tested->accuracy, 100 * tested->majority);
    return nothing;
}

bool divergence_learnt_nothing(const struct divergence *v, double guess,
                               const struct trainer_report *tested, char why[DIVERGENCE_TEXT])
{
    if (v->n_losses < ENOUGH)
        return false;
    if (guess > 0 && v->loss_last >= (1 - guess_share) * guess) {
        snprintf(why, DIVERGENCE_TEXT,
                 "the training loss ended at %.4g, and guessing has a loss of %.4g", v->loss_last,
                 guess);
        return true;
    }
    return divergence_majority(tested, why);
}

bool divergence_ran_away(const struct divergence *v, char why[DIVERGENCE_TEXT])
{
    bool loss = (v->n_losses >= LEAST && v->above > most_share) || clearly_worse(v);
    bool drift = v->drift > far_apart;
    char far[NUMBER_TEXT_MAX];
    if (loss)
        snprintf(why, DIVERGENCE_TEXT, "the training loss ended at %.4g, having begun at %.4g",
                 v->loss_last, v->loss_first < v->loss_mean ? v->loss_first : v->loss_mean);
    else if (drift)
        snprintf(why, DIVERGENCE_TEXT,
                 "at round %llu the consensus distance exceeded the norm of the mean model "
                 "(relative drift %s)",
                 (unsigned long long)v->drift_round, number_said(v->drift, far));
    return loss || drift;
}

void divergence_state(struct divergence *v, struct state *s)
{
    state_f64(s, &v->loss_first);
    state_f64(s, &v->loss_mean);
    state_f64(s, &v->loss_last);
    state_f64(s, &v->above);
    state_u64(s, &v->n_losses);
    state_u64(s, &v->n_samples);
    state_u64(s, &v->n_clear);
    state_f64(s, &v->xi_half);
    state_f64(s, &v->drift);
    state_u64(s, &v->drift_round);
}
