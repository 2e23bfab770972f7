/* peer/cmd/stop.h -- catches Ctrl-C, SIGTERM and SIGHUP for a command that computes in the main
 * thread. The command polls whether such a signal has arrived. */
#ifndef PEER_CMD_STOP_H
#define PEER_CMD_STOP_H

#include <stdbool.h>

/* After this call the first SIGINT, SIGTERM or SIGHUP only sets a flag. A second signal has its
 * default effect, which ends the process, so that even a computation that never polls can be ended.
 * A duplicate of the first signal does not count as the second one (peer/uv/signal_debounce.h). If
 * SIGHUP is ignored because of nohup(1), it stays ignored. */
void cmd_stop_catch(void);

/* Returns true if SIGINT, SIGTERM or SIGHUP has arrived since cmd_stop_catch(). */
bool cmd_stop_asked(void);

#endif
