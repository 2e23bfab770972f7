/* peer/cmd/metrics_ports.h -- gives each peer of `hearsay local` its own address for --metrics:
 * peer i listens on the given port plus i. */
#ifndef PEER_CMD_METRICS_PORTS_H
#define PEER_CMD_METRICS_PORTS_H

#include "peer/cmd/cmd.h"
#include "peer/run_log/monitor.h"

/* Checks that enough ports follow the port of --metrics for n peers and that this process can listen
 * on them, and prints the first address.
 * Returns CMD_OK, also if --metrics is not given, or CMD_USAGE after a message on stderr. */
int cmd_metrics_ports_check(const struct options *o, uint32_t n);
/* Writes the --metrics address of peer i to `out`, and returns `out`. cmd_metrics_ports_check()
 * must have succeeded before. */
const char *cmd_metrics_ports_address(const struct options *o, uint32_t i,
                                      char out[DIARY_MONITOR_ADDRESS]);

#endif
