/* peer/run/options_config.h -- reads a --config file, line by line. Private to peer/run/.
 *
 *   # a comment
 *   topology = "ring"
 *   peers = 8            # names are those of the flags, without the leading dashes
 *   json = true
 *
 * The format is a subset of TOML with one extension: a value may also be written without quotes,
 * and then ends before a blank followed by #. In quotes, \" is a quote and \\ a backslash. The
 * functions are pure.
 */
#ifndef PEER_RUN_OPTIONS_CONFIG_H
#define PEER_RUN_OPTIONS_CONFIG_H

#include "peer/run/options.h"

/* One setting. Both texts point into the text of the file. */
struct options_setting
{
    char *name, *value;
    unsigned line; /* Line number, from 1. */
};

/* Parses the next setting of the NUL-terminated text at `*at`. The text is modified, and `*at` and
 * `*line` advance; `*line` starts at 0. Returns 1 if a setting was found, 0 at the end of the text,
 * or -EINVAL with a message about line `*line`. */
__attribute__((warn_unused_result)) int options_setting_next(char **at, unsigned *line,
                                                             struct options_setting *s,
                                                             char error[OPTIONS_ERROR_MAX]);

/* Parses the value of a flag: 1, yes, true, on, or 0, no, false, off. Returns false if `text` is
 * not one of these words. */
bool options_read_flag(const char *text, bool *on);

#endif
