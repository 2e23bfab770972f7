/* peer/cmd/stop.h -- Ctrl-C, SIGTERM and SIGHUP, for a command that computes in its own thread and looks. */
#ifndef PEER_CMD_STOP_H
#define PEER_CMD_STOP_H

#include <stdbool.h>

/* From now on the first of these signals is only noted, but for a SIGHUP
 * that nohup(1) ignores. The second has its usual effect, if
 * it is no echo of the first (peer/uv/twice.h): a computation that never looks can still be ended. */
void cmd_stop_catch(void);

/* Has one come? */
bool cmd_stop_asked(void);

#endif
