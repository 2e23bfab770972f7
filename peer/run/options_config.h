/* peer/run/options_config.h -- reads a --config file, line by line. The parser of options and the
 * reader of scenario files (peer/cmd/scenario.c) use it.
 *
 *   # a comment
 *   topology = "ring"
 *   peers = 8            # the name of a flag, without the leading dashes
 *   json = true
 *
 * The format is a subset of TOML with one extension: a value may be written without quotes. Such a
 * value ends before a blank that is followed by #. In a quoted value, \" is a quote and \\ a
 * backslash. The functions have no side effects.
 */
#ifndef PEER_RUN_OPTIONS_CONFIG_H
#define PEER_RUN_OPTIONS_CONFIG_H

#include "peer/run/options.h"

/* One setting of a --config file. `name` and `value` point into the text of the file. */
struct options_setting
{
    char *name, *value;
    unsigned line; /* Number of the setting's line in the file, from 1. */
};

/* Parses the next setting of the NUL-terminated text at `*at`. The text is modified. `*at` advances
 * to the next line, and `*line`, which must be 0 before the first call, to the number of the line
 * that was read. Returns 1 if a setting was found, 0 at the end of the text, or -EINVAL with a
 * message about line `*line`. */
__attribute__((warn_unused_result)) int options_setting_next(char **at, unsigned *line,
                                                             struct options_setting *s,
                                                             char error[OPTIONS_ERROR_MAX]);

/* Parses the value of an option that is on or off: 1, yes, true, on, or 0, no, false, off. Returns
 * false if `text` is another word. */
bool options_read_flag(const char *text, bool *on);

#endif
