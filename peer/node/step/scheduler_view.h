/* peer/node/step/scheduler_view.h -- builds the schedule's view of the neighbours. */
#ifndef PEER_NODE_STEP_SCHEDULER_VIEW_H
#define PEER_NODE_STEP_SCHEDULER_VIEW_H

#include "peer/node/step/phases.h"

/* Returns whether, in a run without lock step, this peer owes the neighbour a delta: the
 * neighbour's delta of the next exchange has arrived, and this peer's has not been made. */
bool scheduler_view_owed(const struct phases *ph, const struct neighbour *b);
/* Writes the schedule's views of all neighbours to ph->seen. If memory is exhausted, returns false,
 * and the node ends. */
bool scheduler_view_edges(struct phases *ph);

#endif
