/* peer/node/result/final_model.h -- stores the final model, and tries again if the write fails.
 *
 * The last job asks the driver to write the model (effect write_model). The driver reports with the
 * event KEPT whether the model is stored. The final model has one of three states, and the record
 * of this peer shows which:
 *
 *   - `pending`: the model is not stored yet. If KEPT reports success, the state becomes `stored`
 *     and the record FINISHED. If KEPT reports a failure, write_model is repeated after 1, 2, 4, 8,
 *     10, 10, ... s. The last write is --quorum-timeout after the first failure. If it fails, the
 *     state becomes `lost` and the record FAILED.
 *   - `stored`: if the model does not stay final (final_model_reopen()), the state becomes
 *     `pending` and the record TRAINED.
 *   - `lost`: the model could not be stored.
 *
 * A peer with a pending model has not ended its run. The other members therefore wait for this peer
 * as they wait for a member that still mixes. After a second rollback the record is FAILED although
 * the model is stored (rollback.h), because the stored model is then an old one.
 */
#ifndef PEER_NODE_RESULT_FINAL_MODEL_H
#define PEER_NODE_RESULT_FINAL_MODEL_H

#include <stdint.h>

struct node;

enum final_model_state {
    FINAL_MODEL_PENDING, /* The final model does not exist yet, or is not stored yet. */
    FINAL_MODEL_STORED,  /* The final model is stored, and the other peers are informed. */
    FINAL_MODEL_LOST     /* All writes up to the time limit failed. The peer has failed. */
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
/* Sets the state to FINAL_MODEL_PENDING: the model is no longer final, and the next final model
 * replaces the stored one. Called when the attempt of the finish protocol was aborted, or the
 * certificate does not cover this peer's model. */
void final_model_reopen(struct node *n);
/* Requests the next write of the model if its time has come. Called in each step of the node. */
void final_model_update(struct node *n);

#endif
