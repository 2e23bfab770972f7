/* peer/node/finish/timers.h -- delays of the finish protocol, in microseconds of node time. */
#ifndef PEER_NODE_FINISH_TIMERS_H
#define PEER_NODE_FINISH_TIMERS_H

#include <stdint.h>

/* Least time between the first two ballots of one coordinator. Doubles with each ballot, three times
 * at most. */
#define FINISH_RETRY_US (INT64_C(300) * 1000)
/* A wave without all answers is given up after this time. Doubles with each ballot, four times at
 * most. */
#define FINISH_WAVE_US (INT64_C(2) * 1000 * 1000)
/* Time after which the member with the next rank coordinates, too. */
#define FINISH_TAKEOVER_US (INT64_C(3) * 1000 * 1000)
/* A peer whose model is frozen, and that no wave has reached for this time, dials the
 * coordinator. */
#define FINISH_LONELY_US (INT64_C(1) * 1000 * 1000)
#endif
