/* peer/run/options_config.h -- a file of settings, line by line, and settings as such a file.
 *
 *   # what stands behind a hash is for people
 *   topology = "ring"
 *   peers = 8            # names are those of the flags, without their hyphens in front
 *   json = true
 *
 * It is a subset of TOML, and more lenient: a value may also stand without quotes, up to a blank and
 * a hash. In quotes, \" is a quote and \\ a backslash. Pure; inside peer/run/ only.
 */
#ifndef PEER_RUN_OPTIONS_CONFIG_H
#define PEER_RUN_OPTIONS_CONFIG_H

#include "peer/run/options.h"

/* One setting. The texts are in the file's. */
struct options_setting
{
    char *name, *value;
    unsigned line; /* From 1. */
};

/* The next setting of the NUL-terminated text at *at, which is written to and moved on; *line counts
 * from 0. 1: there is one; 0: the end; -EINVAL with half a sentence, of line *line. */
__attribute__((warn_unused_result)) int options_setting_next(char **at, unsigned *line,
                                                             struct options_setting *s,
                                                             char error[OPTIONS_ERROR_MAX]);

/* A flag's value: 1, yes, true or on, or their opposites. False where the text is none of them. */
bool options_read_flag(const char *text, bool *on);

#endif
