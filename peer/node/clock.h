/* peer/node/clock.h -- node time: the driver's clock without the time for which the process was
 * paused.
 *
 * A process is paused by SIGSTOP, by a machine that sleeps, or by a machine that is too busy to run
 * it. During a pause the process receives nothing, so the pause must not make other peers look
 * silent, and must not end a timeout. Node time therefore stops during a pause. All times inside
 * the node are node times.
 *
 *   driver time  0 ---- 10 s (paused until 50 s) 50 ---- 60
 *   node time    0 ---- 10                       10 ---- 20
 */
#ifndef PEER_NODE_CLOCK_H
#define PEER_NODE_CLOCK_H

#include <stdint.h>

/* Clock of one node. Initially zero. */
struct node_clock
{
    int64_t paused_us; /* Sum of all pauses. Equal to driver time minus node time. */
    int64_t last_us;   /* Node time of the last step. */
};

/* Returns the node time of a step that begins at driver time `driver_us`. due_us: node time by
 * which the driver should have reported NODE_TIMER; 0: no time was set. A step more than PAUSE_US
 * (200 ms) after due_us shows that the process was paused: node time then does not advance, and
 * *pause_us is the length of the pause, else 0. */
int64_t node_clock_now(struct node_clock *c, int64_t driver_us, int64_t due_us, int64_t *pause_us);

/* Returns the driver time of the node time node_us. INT64_MAX means never, and is returned
 * unchanged. */
int64_t node_clock_driver_us(const struct node_clock *c, int64_t node_us);

#endif
