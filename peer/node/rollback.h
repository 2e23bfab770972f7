/* peer/node/rollback.h -- a training that runs away goes back to its last good state, once.
 *
 *   mark   before local steps: every COPY rounds a copy of the model, and of what the trainer keeps
 *   steps
 *   look   after them, and before anything is encoded: has it run away?
 *            first time    x and the trainer are as at the last copy; nobody hears of what was
 *            second time   likewise, and the run is over
 *
 * It has run away, where
 *
 *   - the loss or a parameter is not finite, or |x| is over 1e19, or
 *   - the loss is SPIKE times a nat more than where it began: no batch, however small, does that to
 *     a training that goes on, or
 *   - a round went FAR times as far as any since the copy, and as the model is long, and the loss of a
 *     few held-out samples is as large as that: so the very first step of a learning rate
 *     that is far too large goes to nobody.
 *
 * What is slower is judged at the end (verdict.h). Replicas stay as they are: a model that has gone back
 * is, to its neighbours, one that a round has moved. The decision is a function of what
 * the trainer reports, so that a synchronous run stays one of its seed; where nothing runs away
 * no bit of it changes.
 */
#ifndef PEER_NODE_ROLLBACK_H
#define PEER_NODE_ROLLBACK_H

#include "nn/math/state.h"
#include "nn/train/trainer.h"
#include "peer/node/divergence.h"

struct rollback
{
    const struct trainer *trainer; /* NULL: not open. */
    size_t dim;                    /* Trained parameters. */
    float *good;                   /* The last good model, n_params floats, of the moment when */
    uint64_t round;                /* this round began. */
    bool has;
    struct state kept; /* What the trainer had then. */
    double first;      /* The first loss; NaN: none yet. */
    double limit;      /* The same, and two nats by the root of its samples. */
    double loss;       /* The last round's; where held-out samples decided, theirs. */
    bool untold;       /* It is not known. */
    double norm2;      /* |good|^2 */
    double most2;      /* The largest |x - good|^2 that was no runaway. */
    uint32_t n;        /* Times that it went back. */
    uint64_t now;      /* The round that is under way, or was last. */
};

/* The trainer has to outlive it. 0 or -ENOMEM. Close what was opened, or is all zero. */
int rollback_open(struct rollback *r, const struct trainer *t);
void rollback_close(struct rollback *r);

/* Local steps of `round` are about to move x. */
void rollback_mark(struct rollback *r, const float *x, uint64_t round);

/* They have, and reported this. True: training ran away; x and the trainer are as they were when
 * r->round began (or, without memory for the trainer's part, x is). */
bool rollback_look(struct rollback *r, float *x, const struct trainer_report *report);

/* What it judges by, for a restart: fields of the open section. The last good state is not among
 * them; after a restart that is the one with which training goes on. */
void rollback_state(struct rollback *r, struct state *s);

/* It has just gone back: what people are told of that. */
enum { ROLLBACK_TEXT = 256 };
void rollback_say(const struct rollback *r, char out[ROLLBACK_TEXT]);

/* How it ended, as a clause. */
void rollback_why(const struct rollback *r, char why[DIVERGENCE_TEXT]);

#endif
