/* peer/node/clock.h -- node time: the driver's clock without the time in which the process was paused.
 *
 * A process is paused by SIGSTOP, by a machine that sleeps, or by a machine that is too busy to run it.
 * Nothing can be concluded from such a time: no other peer was silent, no timeout went by. Node time
 * therefore stands still meanwhile. All times inside the node are node times.
 *
 *   driver time  0 ---- 10 s (paused until 50 s) 50 ---- 60
 *   node time    0 ---- 10                       10 ---- 20
 */
#ifndef PEER_NODE_CLOCK_H
#define PEER_NODE_CLOCK_H

#include <stdint.h>

struct node_clock
{
    int64_t paused_us; /* Sum of all pauses: driver time minus node time. */
    int64_t last_us;   /* Node time of the last step. */
};

/* Returns the node time of a step that begins at `driver_us`. `due_us` is the node time at which the
 * driver should have posted a TIMER at the latest; 0: no time was set. A step that begins more than
 * 200 ms after due_us proves a pause: its length is stored in *pause_us (otherwise 0), and node time
 * continues from the last step. */
int64_t node_clock_now(struct node_clock *c, int64_t driver_us, int64_t due_us, int64_t *pause_us);

/* Returns the driver time of a node time; INT64_MAX (never) stays INT64_MAX. */
int64_t node_clock_driver_us(const struct node_clock *c, int64_t node_us);

#endif
