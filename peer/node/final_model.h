/* peer/node/final_model.h -- stores the final model: on this peer's disk, or on another peer's.
 *
 *   effect write_model --event KEPT, stored------------------------------------> record FINISHED
 *                      `-event KEPT, not stored--> offered to others            --> record FAILED
 *                                                  (model_handoff.h)
 *
 * The record is FAILED even if another peer has stored the model, and after a second rollback
 * (rollback.h). The functions are a part of the node: they write `kept`, `unkept` and `offers` of
 * struct node.
 */
#ifndef PEER_NODE_FINAL_MODEL_H
#define PEER_NODE_FINAL_MODEL_H

#include "peer/node/state.h"

/* Handles the event KEPT: the driver has stored the final model (`stored`), or could not store it.
 * The event is ignored unless this peer is in the finishing phase and waits for it. */
void final_model_kept(struct node *n, bool stored);
/* Checks whether the offer of the model to other peers is over, and then reports the end of this
 * peer. Called in each step of the node. */
void final_model_update(struct node *n);
/* Handles a HAND message: an offer of another peer's model, or an answer to this peer's offer. */
void final_model_hand(struct node *n, const struct link *l, const struct wire_message *m);

#endif
