/* peer/cmd/log.h -- messages of a command and of its peers on stderr, selected by --log-level.
 *
 * Without --log-level, a message has the form "hearsay peer: peer-0: text". Messages of level info
 * and more severe ones are printed. Of the peers of `local` and `sim`, only warnings and errors are
 * printed. With --log-level LEVEL, a message has a time, level, module, source and text
 * (peer/trace/log_line.h), and messages of LEVEL and more severe ones are printed.
 *
 * --log-level does not concern results and progress lines, which are always printed.
 */
#ifndef PEER_CMD_LOG_H
#define PEER_CMD_LOG_H

#include "peer/cmd/cmd.h"
#include "peer/node/node.h"

/* Table row of the option --log-level. */
#define CMD_ROW_LOG_LEVEL                                                                          \
    {                                                                                              \
        .name = "log-level", .kind = OPTION_CHOICE, .arg = "error|warning|info|debug",             \
        .help = "least severity of printed messages, each with time, level and module; default: "  \
                "info as plain text, and warning for the peers of hearsay local and sim"           \
    }

/* Reads --log-level, if the command has this option. Called once, before the command runs. */
void cmd_log_open(const struct options *o);

/* Returns whether --log-level was given, so that messages have the form of log_line.h. */
bool cmd_log_given(void);
/* Returns whether messages of this level are printed. Without --log-level: info and more severe. */
bool cmd_log_shows(enum note_level level);

/* Prints a message with the present time, if --log-level selects its level (cmd_log_shows()). Must
 * not be called if --log-level was not given (cmd_log_given()). */
void cmd_log_print(enum note_level level, const char *module, const char *source, const char *text);
/* Prints a message of a simulated peer, with the simulated time in microseconds. */
void cmd_log_print_simulated(int64_t now_us, enum note_level level, const char *module,
                             const char *source, const char *text);

#endif
