/* peer/node/result/result_facts.h -- the facts about the end of a node's run, from which verdict.h
 * derives the verdict.
 *
 * This file implements node_facts() of node.h. It reads all modules of the node and changes none.
 */
#ifndef PEER_NODE_RESULT_RESULT_FACTS_H
#define PEER_NODE_RESULT_RESULT_FACTS_H

#include "peer/node/state.h"

/* Returns the exit code of the verdict on a run that has ended by itself, not by a request. */
int result_facts_code(const struct node *n);

#endif
