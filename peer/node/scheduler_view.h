/* peer/node/scheduler_view.h -- builds the schedule's view of the neighbours. */
#ifndef PEER_NODE_SCHEDULER_VIEW_H
#define PEER_NODE_SCHEDULER_VIEW_H

#include "peer/node/phases.h"

/* Writes the views of all neighbours to ph->seen. Returns false if memory is exhausted; the node then
 * ends. */
bool scheduler_view_edges(struct phases *ph);

#endif
