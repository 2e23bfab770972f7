/* peer/cmd/monitor.h -- assigns the --metrics addresses of `hearsay local`: peer i listens on
 * the port plus i. */
#ifndef PEER_CMD_MONITOR_H
#define PEER_CMD_MONITOR_H

#include "peer/cmd/cmd.h"
#include "peer/diary/monitor.h"

/* Checks that --metrics leaves enough ports for n peers and prints the first address. Returns
 * CMD_OK, also without --metrics, or CMD_USAGE after a message on stderr. */
int cmd_monitor_check(const struct options *o, uint32_t n);
/* Writes the --metrics address of child i to `out`, and returns `out`. --metrics must have been
 * checked. */
const char *cmd_monitor_child(const struct options *o, uint32_t i, char out[DIARY_MONITOR_ADDRESS]);

#endif
