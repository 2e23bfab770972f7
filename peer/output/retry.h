/* peer/output/retry.h -- decides when a failed write is tried again and when the user is warned.
 *
 * The waits between tries are 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, ... until the time limit. The first
 * warning is given at once, and the waits between warnings are 10 s, 20 s, 40 s, 60 s, 60 s, ...
 *
 * All functions are pure: the caller passes the time.
 */
#ifndef PEER_OUTPUT_RETRY_H
#define PEER_OUTPUT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Retries of one failed write. Set all bytes to zero before the first try. */
struct retry
{
    /* True once the first try has failed. */
    bool begun;
    int64_t end_us;       /* Time at which retrying ends, in microseconds. */
    int64_t try_every_us; /* Time to wait after the next failed try to write, in microseconds. */
    /* warn_at_us: time of the next warning, in microseconds. warn_every_us: time from that warning
     * to the one after it, in microseconds. */
    int64_t warn_at_us, warn_every_us;
};

/* Called after a failed try. Retrying ends `patience_us` after the first failure. Returns the time
 * to wait before the next try in microseconds, or 0 if retrying has ended. `*say` is true if the
 * user should be warned now. */
int64_t retry_failed(struct retry *r, int64_t now_us, int64_t patience_us, bool *say);

/* Returns the time left before retrying ends, in microseconds, at least 0. */
int64_t retry_left_us(const struct retry *r, int64_t now_us);

#endif
