/* peer/cmd/trace_option.h -- the option --trace, which writes the events of peers to a file.
 *
 * peer/trace writes the lines. If the trace can no longer be written, one warning is given, and the
 * run continues without a trace.
 */
#ifndef PEER_CMD_TRACE_OPTION_H
#define PEER_CMD_TRACE_OPTION_H

#include "peer/cmd/cmd.h"
#include "peer/trace/trace.h"
#include "peer/trace/trace_file.h"

/* Table row of the option --trace of `peer` and `sim`. `extent`: string literal for the help text
 * that says which peers' events are written. */
#define CMD_ROW_TRACE(extent)                                                                      \
    {                                                                                              \
        .name = "trace", .kind = OPTION_TEXT, .arg = "FILE",                                       \
        .help = "write the protocol events of " extent " to this file"                             \
    }

/* Name of the trace of each peer of `hearsay local`, in the folder of the peer. */
#define CMD_TRACE_NAME "protocol.trace"

/* Size of a warning about a trace, in bytes with the NUL. */
enum { CMD_TRACE_WARNING = 512 };

struct cmd_trace
{
    const char *path;    /* Value of --trace. NULL: there is no trace. */
    struct trace *trace; /* The open trace. NULL: --trace was not given. */
    struct trace_file file;
    char warning[CMD_TRACE_WARNING]; /* Warning that is not printed yet. "": none. */
};

/* Opens the trace if --trace was given. `origin_us`: the driver time that the trace shows as 0 s.
 * `unix_ms`: the wall-clock time at that moment; -1: the time is simulated, and an existing trace
 * file is replaced. Returns CMD_OK, or an exit code after a message. */
int cmd_trace_open(struct cmd_trace *t, const struct options *o, int64_t origin_us, int64_t unix_ms,
                   const char *name);
/* Returns a warning that the caller must print, and clears it. NULL: there is no warning. */
const char *cmd_trace_take_warning(struct cmd_trace *t);
void cmd_trace_close(struct cmd_trace *t);

#endif
