/* peer/node/step/models.h -- routes MODEL_REQ and MODEL messages to the modules model_server and
 * join.
 *
 * The functions access several modules. They are part of the node itself, like the handlers in
 * node.c.
 */
#ifndef PEER_NODE_STEP_MODELS_H
#define PEER_NODE_STEP_MODELS_H

#include "peer/node/state.h"

/* Returns whether the mixing of this round is part of the next job. Requests of observers then wait
 * for this job, because observers compare models after the mixing. */
bool models_mix(const struct node *n);

/* Sends the peer at link l the model or the pieces that it has requested, if they are available
 * now. */
void models_serve(struct node *n, const struct link *l);

/* Handle a message that arrived on session l. The first function handles MODEL_REQ, the second
 * MODEL. */
void models_asked(struct node *n, const struct link *l, const struct wire_message *m);
void models_came(struct node *n, const struct link *l, const struct wire_message *m);

#endif
