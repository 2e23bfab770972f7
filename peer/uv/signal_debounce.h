/* peer/uv/signal_debounce.h -- signal debounce: distinguishes a new signal from a duplicate.
 *
 * timeout(1) and some supervisors signal their child process and then its process group. One
 * request then arrives as two equal signals within milliseconds. A user cannot send two requests
 * that fast.
 */
#ifndef PEER_UV_SIGNAL_DEBOUNCE_H
#define PEER_UV_SIGNAL_DEBOUNCE_H

#include <stdbool.h>
#include <stdint.h>

enum { UV_TWICE_US = 500 * 1000 };

/* The last signal that was not a duplicate. All zero: no signal yet. */
struct uv_twice
{
    int number;
    int64_t at_us;
};

/* Returns true, and leaves `t` unchanged, if signal `number` at `now_us` (monotonic clock,
 * microseconds) is a duplicate: equal to the signal in `t` and less than UV_TWICE_US after it.
 * Otherwise stores the signal in `t` and returns false. Safe to call in a signal handler. */
bool uv_twice(struct uv_twice *t, int number, int64_t now_us);

/* Returns true if SIGHUP is ignored. Call before a SIGHUP handler is installed: a program
 * started by nohup(1) inherits the ignored signal and must keep ignoring it. */
bool uv_hangup_ignored(void);

#endif
