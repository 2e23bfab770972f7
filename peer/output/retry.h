/* peer/output/retry.h -- decides when a failed write is tried again and when the user is warned.
 *
 *   waits before the next try       1 s, 2 s, 4 s, 8 s, 10 s, 10 s, ... until the time limit
 *   waits before the next warning   10 s, 20 s, 40 s, 60 s, 60 s, ...; first at once
 *
 * All functions are pure: the caller passes the time.
 */
#ifndef PEER_OUTPUT_RETRY_H
#define PEER_OUTPUT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* One series of retries. Set all bytes to zero before the first try. */
struct retry
{
    /* True once the first try has failed. */
    bool begun;
    int64_t end_us;       /* Time at which retrying ends, in microseconds. */
    int64_t try_every_us; /* Interval between the next two tries, in microseconds. */
    /* Time of the next warning, and interval to the one after it, in microseconds. */
    int64_t warn_at_us, warn_every_us;
};

/* Reports that a try failed. The first failure starts the time limit of `patience_us`. Returns the
 * time to wait before the next try in microseconds, 0 if the limit is reached. `*say` is true if
 * the user should be warned now. */
int64_t retry_failed(struct retry *r, int64_t now_us, int64_t patience_us, bool *say);

/* Returns the time left before retrying ends, in microseconds, at least 0. */
int64_t retry_left_us(const struct retry *r, int64_t now_us);

#endif
