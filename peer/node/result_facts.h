/* peer/node/result_facts.h -- what a node knows of how its run ended: the facts for outcome.h.
 *
 * It reads all machines and changes none, so it stands above them, beside node.c.
 */
#ifndef PEER_NODE_RESULT_FACTS_H
#define PEER_NODE_RESULT_FACTS_H

#include "peer/node/state.h"

/* Nobody needs us any more: the exit code of a run that ended by itself. */
int result_facts_code(const struct node *n);

#endif
