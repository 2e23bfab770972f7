/* peer/uv/log_backoff.h -- log backoff: reports a repeated event at growing intervals.
 *
 * The first event is reported at once. Later reports are at least 10 s, 20 s, 40 s, ... apart,
 * up to 10 minutes. After more than 10 minutes without an event, the next event is reported at
 * once.
 */
#ifndef PEER_UV_LOG_BACKOFF_H
#define PEER_UV_LOG_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* Backoff state of one kind of event. Initialise all fields to zero. */
struct log_backoff
{
    uint64_t n; /* Number of events so far, reported or not. */
    uint64_t last_ms, tell_ms, gap_ms;
};

/* Counts one event at time `now_ms`, in milliseconds. Returns true if the caller must report the
 * event. */
bool log_backoff_count(struct log_backoff *c, uint64_t now_ms);

#endif
