/* peer/cmd/files.h -- builds paths under --out and reads small files. */
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

/* Reports on stderr that `path` cannot be written. `err`: a negative errno of
 * nn/files/replace.h. `flag`: the option that names `path`, or NULL. Returns the exit code. */
int cmd_cannot_write(const struct options *o, const char *flag, const char *path, int err);

/* Reads a small file into `text` and ends it with NUL. Returns 0 or a negative errno with a
 * message in `error`; -EFBIG if the file has `cap` bytes or more. */
__attribute__((warn_unused_result)) int cmd_read_text(const char *path, char *text, size_t cap,
                                                      char error[KEYFILE_ERROR_MAX]);

#endif
