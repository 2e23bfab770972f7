/* peer/node/result/final_model.h -- stores the final model, and tries again if the write fails.
 *
 *   state     event                                              next state
 *   --------  -------------------------------------------------  ----------------------------------
 *   pending   KEPT: stored                                       stored: record FINISHED
 *   pending   KEPT: not stored                                   pending: effect write_model again
 *                                                                after 1, 2, 4, 8, 10, 10, ... s
 *   stored    final_model_reopen(): attempt aborted              pending: record TRAINED
 *   pending   KEPT: not stored, --quorum-timeout has passed      lost: record FAILED
 *
 * The effect write_model of the last job causes the first event KEPT. The time limit begins with
 * the first failed write, and the last write is at the time limit. A peer with a pending model has
 * not ended its run. The other members therefore wait for it as they wait for a member that still
 * mixes. After a second rollback the record is also FAILED (rollback.h), because the stored model
 * is then an old one.
 *
 * Only final_model.c writes struct final_model.
 */
#ifndef PEER_NODE_RESULT_FINAL_MODEL_H
#define PEER_NODE_RESULT_FINAL_MODEL_H

#include <stdint.h>

struct node;

enum final_model_state {
    FINAL_MODEL_PENDING, /* There is no final model yet, or it is not stored yet. */
    FINAL_MODEL_STORED,  /* The final model is stored, and the other peers are informed. */
    FINAL_MODEL_LOST     /* All writes failed until the time limit. The peer has failed. */
};

/* Whether the final model is stored, and the time of the next write. All zeros at the start. */
struct final_model
{
    enum final_model_state state;
    /* Wait after the next failed write, in microseconds. 0: no write has failed. */
    int64_t wait_us;
    int64_t since_us; /* Node time of the first failed write. Valid if wait_us > 0. */
    int64_t retry_us; /* Node time of the next write. 0: no write is due. */
};

/* Handles the event KEPT. `why`: why the driver could not store the final model. NULL: it is
 * stored. The event is ignored unless this peer is in the finishing phase and waits for it. */
void final_model_kept(struct node *n, const char *why);
/* Called when the attempt of the finish protocol was aborted. The peer mixes again, and its next
 * final model replaces the stored one. */
void final_model_reopen(struct node *n);
/* Writes the model again if a write is due. Called in each step of the node. */
void final_model_update(struct node *n);

#endif
