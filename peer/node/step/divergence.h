/* peer/node/step/divergence.h -- judges whether training diverged, or whether nothing was learnt.
 *
 * A peer collects losses and drift figures while it trains, and judges at the end of training. A
 * loss that is not finite is handled at once (rollback.h). Training diverged if one of these signs
 * is found:
 *
 *   - Loss: this peer has at least 30 losses, and in more than about 70 % of the last ten to twenty
 *     rounds (a moving average) the loss was more than one nat above the initial loss. Such a model
 *     is worse than an untrained one. The mean of the losses is not used, because it depends too
 *     much on rare large losses of small batches.
 *   - Clear loss: each of the last ten losses was more than three times the initial loss, and more
 *     than one nat above it. A peer with fewer than 30 losses examines the last third of them, and
 *     at least two.
 *   - Distance: in some round of the last tenth of training, the relative drift was above 1, and
 *     the drift Xi was more than three times its largest value in the third quarter of training.
 *     Mixing no longer held the models together.
 *
 * The initial loss is the lesser of two values: the mean of the first ten losses, and the very
 * first loss. A divergence within the first ten rounds would raise the mean, but not the very first
 * loss. As the first loss may be low by chance, 2 nats / sqrt(number of its samples) are added to
 * it. A mean below the loss of guessing is replaced by the loss of guessing, because such a low
 * mean does not last: a shard with few labels is learnt within ten rounds, and its loss is higher
 * again once the peers' models are mixed.
 *
 * The drift at the end of a run does not show a divergence, because the consensus phase makes all
 * models equal, even bad ones.
 */
#ifndef PEER_NODE_STEP_DIVERGENCE_H
#define PEER_NODE_STEP_DIVERGENCE_H

#include "nn/train/trainer.h"

#include <stdbool.h>
#include <stdint.h>

struct state; /* Reads or writes a checkpoint. Defined in nn/math/state.h. */

/* Size of a text that says why training failed, in bytes with the NUL. */
enum { DIVERGENCE_TEXT = 160 };

/* Figures of one peer's training. Saved in checkpoints. */
struct divergence
{
    double loss_first; /* Mean loss of round 0. NaN: this peer was not present in round 0. */
    double loss_mean; /* Mean of the first ten losses. NaN: this peer was not present in round 0. */
    /* Moving average of the losses, over more losses if n_samples is below 64. NaN: no loss yet. */
    double loss_last;
    /* Share of the recent losses that were more than one nat above the initial loss, in [0, 1].
     * Computed as a moving average. */
    double above;
    uint64_t n_losses;  /* Number of losses so far. */
    uint64_t n_samples; /* Number of samples of the first loss. */
    /* Number of losses in a row, up to the newest one, that were more than three times the initial
     * loss and more than one nat above it. */
    uint64_t n_clear;
    double xi_half; /* Largest drift Xi in the third quarter of training. NaN: not known. */
    /* Largest relative drift in the last tenth of training, among the figures whose drift Xi is
     * above 3 * xi_half. INFINITY: one of these figures came without the length of the mean model.
     * NaN: there was no such figure. */
    double drift;
    /* Round at whose start `drift` was measured. Valid if `drift` is not NaN. */
    uint64_t drift_round;
};

/* Initialises *v without any losses or drift figures. */
void divergence_init(struct divergence *v);

/* Adds the loss of `round`. The loss is the mean over the n_samples samples of all local steps of
 * the round. guess: loss of guessing uniformly, in nats (0: unknown). Must be called in the order
 * of the rounds. */
void divergence_loss(struct divergence *v, uint64_t round, double loss, uint64_t n_samples,
                     double guess);

/* Adds a drift figure. xi: the drift Xi of the models at the start of `round`. relative: xi divided
 * by the length of the mean model, or not finite if that length is not known. n_rounds: length of
 * the run. A figure may be added more than once. */
void divergence_drift(struct divergence *v, double xi, double relative, uint64_t round,
                      uint64_t n_rounds);

/* Returns whether the trained model is no better than a model that ignores its inputs. The result
 * is true if at least 100 losses were added, and one of two conditions holds:
 *
 *   - The moving average of the training loss is at least 0.99 times `guess`, where `guess` is the
 *     loss of guessing uniformly (0: unknown).
 *   - divergence_majority() returns true for the last evaluation, `tested`.
 *
 * why[] then names the condition, as a clause. The cause may be a run that was too short. */
bool divergence_learnt_nothing(const struct divergence *v, double guess,
                               const struct trainer_report *tested, char why[DIVERGENCE_TEXT]);

/* Returns whether the evaluation `tested` is no more accurate than always choosing the most
 * frequent label. If so, why[] gives both figures, as a clause. False if there are fewer than 100
 * samples, or only one label. */
bool divergence_majority(const struct trainer_report *tested, char why[DIVERGENCE_TEXT]);

/* Returns whether training diverged by one of the signs at the top of this file. If so, why[] names
 * the sign, as a clause. */
bool divergence_ran_away(const struct divergence *v, char why[DIVERGENCE_TEXT]);

/* Saves or restores *v, as fields of the open section of a checkpoint (nn/math/state.h). */
void divergence_state(struct divergence *v, struct state *s);

#endif
