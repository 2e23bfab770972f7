/* peer/node/models.h -- models that are asked for, and that come: from messages to orders, join and hand.
 *
 * A part of the node itself, as its handlers are.
 */
#ifndef PEER_NODE_MODELS_H
#define PEER_NODE_MODELS_H

#include "peer/node/state.h"

/* Will a job mix before the next local steps? */
bool models_mix(const struct node *n);

/* Send the link what it has ordered, if it can be had now. */
void models_serve(struct node *n, const struct link *l);

/* A MODEL_REQ came, and a MODEL. */
void models_asked(struct node *n, const struct link *l, const struct wire_message *m);
void models_came(struct node *n, const struct link *l, const struct wire_message *m);

#endif
