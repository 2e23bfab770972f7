/* peer/uv/twice.h -- is a signal a request of its own, or the echo of the one before it?
 *
 * timeout(1) and some supervisors signal their child and then its group, so that one request comes
 * twice within milliseconds. Nobody asks by hand twice as fast as that.
 */
#ifndef PEER_UV_TWICE_H
#define PEER_UV_TWICE_H

#include <stdbool.h>
#include <stdint.h>

enum { UV_TWICE_US = 500 * 1000 };

/* The last signal that counted. All zero: none yet. */
struct uv_twice
{
    int number;
    int64_t at_us;
};

/* Signal `number` came at now_us of a monotonic clock. True, and t is unchanged, where it is of the
 * kind that counted last, less than UV_TWICE_US ago. May be called in a signal handler. */
bool uv_twice(struct uv_twice *t, int number, int64_t now_us);

/* Is SIGHUP ignored? True before a handler is installed if the program was started by nohup(1), which must
 * stay in effect. */
bool uv_hangup_ignored(void);

#endif
