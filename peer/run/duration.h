/* peer/run/duration.h -- options whose values are times: 30s, 2.5, 10m, 24h, off. */
#ifndef PEER_RUN_DURATION_H
#define PEER_RUN_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#define DURATION_EXPECTED                                                                          \
    "seconds from 0.001, as 30s or 2.5, minutes, as 10m, hours, as 24h, or off"

/* Reads a time in microseconds; off is 0. False: it is none, and *us is 0. */
bool duration_read(const char *text, int64_t *us);

#endif
