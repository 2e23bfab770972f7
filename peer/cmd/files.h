/* peer/cmd/files.h -- paths of what commands keep under --out, and small files. */
#ifndef PEER_CMD_FILES_H
#define PEER_CMD_FILES_H

#include "peer/secure/keyfile.h"

#include <stdbool.h>
#include <stddef.h>

struct options;

enum { CMD_PATH_MAX = 1024 };

/* DIR/NAME; asserts nothing: a path that is too long is -ENAMETOOLONG. */
__attribute__((warn_unused_result)) int cmd_path(char out[CMD_PATH_MAX], const char *dir,
                                                 const char *name);

/* Reports that `path` cannot be written, for a negative errno of nn/files/replace.h. `flag`: the
 * option that names `path`; NULL: none. Returns the exit code. */
int cmd_cannot_write(const struct options *o, const char *flag, const char *path, int err);

/* A small file as a text that ends with NUL; -EFBIG where it has cap bytes or more. */
__attribute__((warn_unused_result)) int cmd_read_text(const char *path, char *text, size_t cap,
                                                      char error[KEYFILE_ERROR_MAX]);

#endif
