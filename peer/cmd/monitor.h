/* peer/cmd/monitor.h -- --metrics of `local`, whose n children have ports that follow each other. */
#ifndef PEER_CMD_MONITOR_H
#define PEER_CMD_MONITOR_H

#include "peer/cmd/cmd.h"
#include "peer/diary/monitor.h"

/* CMD_OK, also without --metrics, or CMD_USAGE after a line where it leaves no room for n peers. */
int cmd_monitor_check(const struct options *o, uint32_t n);
/* What child i is given of a --metrics that was checked: `out`. */
const char *cmd_monitor_child(const struct options *o, uint32_t i, char out[DIARY_MONITOR_ADDRESS]);

#endif
