/* peer/node/scheduler_view.h -- one neighbour, as the schedule is shown it. */
#ifndef PEER_NODE_SCHEDULER_VIEW_H
#define PEER_NODE_SCHEDULER_VIEW_H

#include "peer/node/phases.h"

struct schedule_edge scheduler_view_edge(const struct phases *ph, const struct neighbour *b);

#endif
