/* peer/trace/log_line.h -- the form of a message of --log-level: time, level, module, source, text.
 *
 *   2026-11-28T13:29:58.123Z warning wait_log peer-0: waiting for peer-1, which is at round 12
 *   31.250000 debug sessions peer-3: session with peer-1 is up
 *
 * The first four fields contain no blank, except that the source may be "hearsay" and a command. The
 * time is UTC, or in a simulation the simulated time in seconds. The module is the name of the
 * source file that sends the message, without its folder and suffix.
 */
#ifndef PEER_TRACE_LOG_LINE_H
#define PEER_TRACE_LOG_LINE_H

#include "peer/node/node.h"

enum {
    LOG_TIME_SIZE = 40,  /* Size of the text of a time, in bytes, with the NUL. */
    LOG_LINE_SIZE = 8192 /* Size of a line in bytes, with the NUL. Longer lines are cut. */
};

/* Returns the name of a log level: "error", "warning", "info" or "debug". */
const char *log_level_name(enum note_level level);
/* Finds the log level with this name. Returns false if no level has this name. */
bool log_level_read(const char *name, enum note_level *level);

/* Writes a time of the wall clock, in milliseconds since 1970 and not negative, as UTC. */
void log_time_text(int64_t unix_ms, char out[LOG_TIME_SIZE]);

/* Writes a line without a newline. Control characters in `text` become blanks, so that a message is
 * one line. */
void log_line(const char *time, enum note_level level, const char *module, const char *source,
              const char *text, char out[LOG_LINE_SIZE]);

#endif
