/* peer/cmd/stop.h -- catches Ctrl-C, SIGTERM and SIGHUP for a command that computes in the main
 * thread and polls for them. */
#ifndef PEER_CMD_STOP_H
#define PEER_CMD_STOP_H

#include <stdbool.h>

/* From this call on, the first SIGINT, SIGTERM or SIGHUP only sets a flag. A SIGHUP that
 * nohup(1) ignores stays ignored. The second signal has its default effect, unless it is a
 * duplicate of the first (peer/uv/signal_debounce.h), so that a computation that never polls can still be
 * ended. */
void cmd_stop_catch(void);

/* Returns true if SIGINT, SIGTERM or SIGHUP has arrived since cmd_stop_catch(). */
bool cmd_stop_asked(void);

#endif
