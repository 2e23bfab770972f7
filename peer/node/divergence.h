/* peer/node/divergence.h -- did a run's training run away, or lead nowhere?
 *
 * What a peer can see of divergence at the end of training, short of figures
 * that are not finite (those end a run where they happen):
 *
 *   loss      a nat above where it began, in most of the last ten or twenty
 *             rounds: worse than knowing nothing (a mean would be led astray by
 *             the rare large losses of small batches). This takes 30 rounds.
 *             Or, in a run of any length, three times and a nat above it in all
 *             of the last ten rounds (of a run under 30 rounds: in the last
 *             third of them, and in two at least).
 *             "Where it began" is the mean of the first ten losses, or the first
 *             one (and two nats by the root of its samples, as it may be low by
 *             chance) where that is less: losses that ran away within the first
 *             ten rounds do not raise it.
 *   distance  the peers' models, in the last tenth of training, farther apart
 *             than their mean is long and three times as far as they were when
 *             half of it was done: mixing no longer held them together
 *
 * The consensus phase makes one model of the wreck, whatever it is, and its drift is
 * small; so a run must not be judged by that.
 */
#ifndef PEER_NODE_DIVERGENCE_H
#define PEER_NODE_DIVERGENCE_H

#include "nn/train/trainer.h"

#include <stdbool.h>
#include <stdint.h>

struct state; /* nn/math/state.h */

enum { DIVERGENCE_TEXT = 160 }; /* Bytes of its sentence, with the NUL. */

struct divergence
{
    double loss_first; /* The first loss; NaN: not there from the start. */
    double loss_mean;  /* Mean of the first ten losses; NaN as loss_first. */
    double loss_last;  /* Moving average, over more rounds where a loss is of few samples. */
    double above;      /* The same of: 1 where a loss was a nat above, else 0. */
    uint64_t n_losses;
    uint64_t n_samples;   /* That the first loss is the mean of. */
    uint64_t n_clear;     /* Newest losses in a row that were clearly too large. */
    double xi_half;       /* Largest Xi of the third quarter; NaN: none known. */
    double drift;         /* Worst relative drift of the last tenth whose Xi was three
                          * times that; NaN: none. */
    uint64_t drift_round; /* When that was. */
};

void divergence_init(struct divergence *v);

/* The loss of this round's local steps, the mean of so many samples. */
void divergence_loss(struct divergence *v, uint64_t round, double loss, uint64_t n_samples);

/* An estimate: Xi, and relative to |mean|, of the moment when `round` of
 * n_rounds began. Infinite or NaN beside a finite xi: no mean could be told. */
void divergence_drift(struct divergence *v, double xi, double relative, uint64_t round,
                      uint64_t n_rounds);

/* True if training of at least 100 rounds ended no better than a model that ignores its inputs.
 * Then why[] says so, as a clause. At least one of two conditions holds:
 *
 *   - The moving average of the training loss is at least 0.99 `guess`, where `guess` is the loss
 *     of guessing uniformly (0: unknown).
 *   - The last evaluation had at least 100 samples, and its accuracy is not higher than the share
 *     of the most frequent label.
 *
 * The run may have been too short to learn. */
bool divergence_learnt_nothing(const struct divergence *v, double guess,
                               const struct trainer_report *tested, char why[DIVERGENCE_TEXT]);

/* True if an evaluation of at least 100 samples is no more accurate than always choosing the most
 * frequent label. Then why[] gives both figures, as a clause. */
bool divergence_majority(const struct trainer_report *tested, char why[DIVERGENCE_TEXT]);

/* True where training ran away; then why[] says how, as a clause. */
bool divergence_ran_away(const struct divergence *v, char why[DIVERGENCE_TEXT]);

/* What it has seen so far, for a restart: fields of the open section (nn/math/state.h). */
void divergence_state(struct divergence *v, struct state *s);

#endif
