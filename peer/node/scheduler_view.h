/* peer/node/scheduler_view.h -- builds the schedule's view of one neighbour. */
#ifndef PEER_NODE_SCHEDULER_VIEW_H
#define PEER_NODE_SCHEDULER_VIEW_H

#include "peer/node/phases.h"

/* Returns the view of neighbour b for the next decision. */
struct schedule_edge scheduler_view_edge(const struct phases *ph, const struct neighbour *b);

#endif
