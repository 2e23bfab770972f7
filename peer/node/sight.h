/* peer/node/sight.h -- one neighbour, as the schedule is shown it. */
#ifndef PEER_NODE_SIGHT_H
#define PEER_NODE_SIGHT_H

#include "peer/node/phases.h"

struct schedule_edge sight_edge(const struct phases *ph, const struct neighbour *b);

#endif
