/* peer/node/step/scheduler_view.h -- builds the schedule's view of the neighbours. */
#ifndef PEER_NODE_STEP_SCHEDULER_VIEW_H
#define PEER_NODE_STEP_SCHEDULER_VIEW_H

#include "peer/node/step/phases.h"

/* Writes the views of all neighbours to ph->seen. Returns false if memory is exhausted. The node
 * then ends. */
/* Returns whether this peer owes the neighbour a delta without lock step: the neighbour's delta of
 * the next exchange has arrived, and this peer's has not been made. */
bool scheduler_view_owed(const struct phases *ph, const struct neighbour *b);
bool scheduler_view_edges(struct phases *ph);

#endif
