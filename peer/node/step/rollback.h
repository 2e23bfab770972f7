/* peer/node/step/rollback.h -- returns to the last good model if training diverges.
 *
 * The caller calls two functions in each round:
 *
 *   - rollback_mark() is called before the local steps. It copies the model and the trainer's
 *     state if there is no copy yet, or if the last copy is at least 64 rounds old and the model is
 *     good: its loss is low, and it is not far from the last copy.
 *   - rollback_look() is called after the local steps, before anything is encoded. It checks
 *     whether training diverged. If so, it restores the last copy, so that no neighbour receives
 *     the bad model.
 *
 * After the first rollback training continues. A second divergence restores the copy again, and
 * ends the run (job.c).
 *
 * Training has diverged if one of these holds:
 *
 *   - The loss or a parameter is not finite, or the length of the model |x| is above 1e19.
 *   - The loss is above 100 times (limit + 1 nat), where `limit` is about the first loss. No small
 *     batch has such a loss while training works.
 *   - The model is more than 32 times as far from the last copy as after any earlier round, and its
 *     distance is more than 32 times the length of the copy. In addition, the loss of 64 held-out
 *     samples is above the limit of the previous rule. This rule catches the first step of a
 *     learning rate that is far too large.
 *
 * A slower divergence is detected at the end of training (divergence.h). Replicas are not rolled
 * back: to the neighbours, a rollback looks like the update of a round. The decision depends only
 * on what the trainer reports, so a synchronous run remains a function of its seed. If training
 * does not diverge, this module changes no bit of the model.
 */
#ifndef PEER_NODE_STEP_ROLLBACK_H
#define PEER_NODE_STEP_ROLLBACK_H

#include "nn/math/state.h"
#include "nn/train/trainer.h"
#include "peer/node/step/divergence.h"

/* The last good model of one peer, and the figures by which divergence is detected. */
struct rollback
{
    const struct trainer *trainer; /* The run's trainer. NULL: this struct is not open. */
    size_t dim;                    /* Number of trained parameters. */
    float *good;       /* Copy of the last good model: all n_params floats of the trainer. Owned. */
    uint64_t round;    /* Round in which the last good model was copied, before the local steps. */
    bool has;          /* True: a copy of a good model exists. */
    struct state kept; /* State of the trainer when the last good model was copied. */
    double first;      /* Loss of the first round with a finite loss. NaN: there was none yet. */
    /* Reference loss, with which later losses are compared: the first finite loss, or 0 if that is
     * negative, plus 2 nats / sqrt(number of its samples). NaN: there was no finite loss yet. */
    double limit;
    /* Loss of the last round. If the loss of held-out samples showed a divergence: that loss. */
    double loss;
    bool untold;  /* True: the trainer did not report the loss of the last round. */
    double norm2; /* |good|^2: squared length of the last good model. */
    /* Largest squared distance |x - good|^2 of the model x from the copy of the last good model,
     * over all rounds after which training had not diverged. */
    double most2;
    uint32_t n;   /* Number of rollbacks. */
    uint64_t now; /* Round of the current or last local steps. */
};

/* Opens *r for trainer t, which must outlive *r. Returns 0 or -ENOMEM. rollback_close() also
 * accepts a struct of zeros, and one for which rollback_open() failed. */
int rollback_open(struct rollback *r, const struct trainer *t);
void rollback_close(struct rollback *r);

/* Called before the local steps of `round`, with the model x. Copies x and the trainer's state if
 * there is no copy yet, or if the last copy is old enough and x is good. O(n_params) if a copy is
 * due, else O(1). */
void rollback_mark(struct rollback *r, const float *x, uint64_t round);

/* Called after the local steps, with their report. Returns whether training diverged. If so,
 * restores x and the trainer's state from the copy, which was made before the local steps of
 * r->round. If there was no memory for the trainer's state, only x is restored. O(n_params). */
bool rollback_look(struct rollback *r, float *x, const struct trainer_report *report);

/* Saves or restores the figures by which divergence is detected, as fields of the open section of a
 * checkpoint. The last good model is not included, because after a restart the restored model takes
 * its place. */
void rollback_state(struct rollback *r, struct state *s);

enum { ROLLBACK_TEXT = 256 /* Size of the text of a rollback warning, in bytes with the NUL. */ };

/* Writes a warning about the rollback that has just happened. */
void rollback_say(const struct rollback *r, char out[ROLLBACK_TEXT]);

/* Writes the reason why the run diverged, as a clause for the verdict. */
void rollback_why(const struct rollback *r, char why[DIVERGENCE_TEXT]);

#endif
