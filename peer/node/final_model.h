/* peer/node/final_model.h -- what becomes of a model that is final: stored here, stored elsewhere, or lost.
 *
 *   write_model --KEPT, stored--------------------------------------> FINISHED
 *              `--KEPT, not stored--> offered to others (hand.h) --> FAILED
 *
 * A part of the node itself, as its handlers are: it writes kept, unkept and offers of struct node.
 */
#ifndef PEER_NODE_FINAL_MODEL_H
#define PEER_NODE_FINAL_MODEL_H

#include "peer/node/state.h"

/* The driver has stored our model, or has given up. */
void final_model_kept(struct node *n, bool stored);
/* While it is offered: is that over? */
void final_model_update(struct node *n);
/* A HAND came. */
void final_model_hand(struct node *n, const struct link *l, const struct wire_message *m);

#endif
