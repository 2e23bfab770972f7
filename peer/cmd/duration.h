/* peer/cmd/duration.h -- reads options that are times: 30s, 2.5, 10m, 24h, off. */
#ifndef PEER_CMD_DURATION_H
#define PEER_CMD_DURATION_H

#include "peer/cmd/cmd.h"

/* Sets `*us` to the value of the option `name`, in microseconds. "off" gives 0. Returns CMD_OK, or
 * CMD_USAGE after a message on stderr. */
int cmd_duration(const struct options *o, const char *name, int64_t *us);

#endif
