/* peer/cmd/metrics_ports.h -- assigns the --metrics addresses of `hearsay local`: peer i listens on
 * the port plus i. */
#ifndef PEER_CMD_METRICS_PORTS_H
#define PEER_CMD_METRICS_PORTS_H

#include "peer/cmd/cmd.h"
#include "peer/run_log/monitor.h"

/* Checks that --metrics leaves enough ports for n peers and prints the first address. Returns
 * CMD_OK, also without --metrics, or CMD_USAGE after a message on stderr. */
int cmd_metrics_ports_check(const struct options *o, uint32_t n);
/* Writes the --metrics address of child i to `out`, and returns `out`. --metrics must have been
 * checked. */
const char *cmd_metrics_ports_address(const struct options *o, uint32_t i,
                                      char out[DIARY_MONITOR_ADDRESS]);

#endif
