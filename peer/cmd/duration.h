/* peer/cmd/duration.h -- options whose values are times: 30s, 2.5, 10m, 24h, off. */
#ifndef PEER_CMD_DURATION_H
#define PEER_CMD_DURATION_H

#include "peer/cmd/cmd.h"

/* The value of a text option in microseconds, 0: off. CMD_OK, or CMD_USAGE with a line. */
int cmd_duration(const struct options *o, const char *name, int64_t *us);

#endif
