/* peer/node/clock.c -- detects pauses of the process, and subtracts them from the driver's
 * clock. */
#include "peer/node/clock.h"

#include "peer/node/timers.h"

#include <assert.h>

int64_t node_clock_now(struct node_clock *c, int64_t driver_us, int64_t due_us, int64_t *pause_us)
{
    int64_t now_us = driver_us - c->paused_us;
    *pause_us = 0;
    if (due_us > 0 && now_us - due_us > PAUSE_US) {
        *pause_us = now_us - c->last_us;
        c->paused_us += *pause_us;
        now_us = c->last_us;
    }
    assert(c->paused_us >= 0 && now_us >= c->last_us);
    c->last_us = now_us;
    return now_us;
}

int64_t node_clock_driver_us(const struct node_clock *c, int64_t node_us)
{
    return node_us == INT64_MAX ? INT64_MAX : node_us + c->paused_us;
}
