/* peer/run/duration.h -- parses option values that are durations: 30s, 2.5, 10m, 24h, off. */
#ifndef PEER_RUN_DURATION_H
#define PEER_RUN_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Description of a valid duration, for error messages. */
#define DURATION_EXPECTED                                                                          \
    "a duration of at least 0.001 s, such as 30s, 2.5 (seconds), 10m or 24h, or off"

/* Parses a duration from 0.001 s to 1e9 s and sets `*us` to it, in microseconds. "off" gives 0.
 * Returns false and sets `*us` to 0 if `text` is not such a duration. */
bool duration_parse(const char *text, int64_t *us);

#endif
