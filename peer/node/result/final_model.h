/* peer/node/result/final_model.h -- stores the final model, and tries again if the write fails.
 *
 * The final model has one of three states, and the record of this peer shows which:
 *
 *   - `pending`: the model is not stored yet. If the event KEPT says that it is stored, the state
 *     becomes `stored` and the record FINISHED. If KEPT says that the write failed, the effect
 *     write_model is repeated after 1, 2, 4, 8, 10, 10, ... s. If the write still fails after
 *     --quorum-timeout, the state becomes `lost` and the record FAILED.
 *   - `stored`: if the model does not stay final (final_model_reopen()), the state becomes
 *     `pending` and the record TRAINED.
 *   - `lost`: the model could not be stored.
 *
 * With the event KEPT the driver reports whether the model is stored. The effect write_model of the
 * last job causes the first KEPT. The time limit begins with the first failed write, and the last
 * write is at the time limit. A peer with a pending model has not ended its run. The other members
 * therefore wait for it as they wait for a member that still mixes. After a second rollback the
 * record is also FAILED (rollback.h), because the stored model is then an old one.
 */
#ifndef PEER_NODE_RESULT_FINAL_MODEL_H
#define PEER_NODE_RESULT_FINAL_MODEL_H

#include <stdint.h>

struct node;

enum final_model_state {
    FINAL_MODEL_PENDING, /* The final model does not exist yet, or is not stored yet. */
    FINAL_MODEL_STORED,  /* The final model is stored, and the other peers are informed. */
    FINAL_MODEL_LOST     /* All writes failed until the time limit. The peer has failed. */
};

/* Whether the final model is stored, and the time of the next write. */
struct final_model;

/* Returns the data of a final model in the state FINAL_MODEL_PENDING, or NULL if memory is
 * exhausted. The caller frees it with free(). */
struct final_model *final_model_open(void);
/* Returns the state of this peer's final model. */
enum final_model_state final_model_state(const struct node *n);

/* Handles the event KEPT: the driver has stored the final model (`why` NULL), or could not for the
 * reason `why`. Ignored unless this peer is in the finishing phase and waits for the event. */
void final_model_kept(struct node *n, const char *why);
/* Called when the attempt of the finish protocol was aborted, or the certificate does not cover
 * this peer's model. The model is no longer final, and the next final model replaces the stored
 * one. */
void final_model_reopen(struct node *n);
/* Writes the model again at the time of the next write. Called in each step of the node. */
void final_model_update(struct node *n);

#endif
