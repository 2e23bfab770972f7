/* peer/cmd/files.h -- builds paths of files under --out, and reports files that cannot be
 * written. */
#ifndef PEER_CMD_FILES_H
#define PEER_CMD_FILES_H

#include "peer/secure/keyfile.h"

#include <stdbool.h>
#include <stddef.h>

struct options;

enum { CMD_PATH_MAX = 1024 };

/* Writes "DIR/NAME" to `out`. Returns 0, or -ENAMETOOLONG if the path is too long. */
__attribute__((warn_unused_result)) int cmd_path(char out[CMD_PATH_MAX], const char *dir,
                                                 const char *name);

/* Reports on stderr that the file `path` cannot be written. `err`: negative errno from
 * nn/files/replace.h. `flag`: option that names the file, or NULL. Returns the exit code for this
 * error. */
int cmd_cannot_write(const struct options *o, const char *flag, const char *path, int err);

#endif
