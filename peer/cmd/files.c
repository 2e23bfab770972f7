/* peer/cmd/files.c -- builds paths of files under --out, and reports files that cannot be
 * written. */
#include "peer/cmd/files.h"

#include "nn/files/replace.h"
#include "peer/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cmd_path(char out[CMD_PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(out, CMD_PATH_MAX, "%s/%s", dir, name);
    return n < CMD_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int cmd_cannot_write(const struct options *o, const char *flag, const char *path, int err)
{
    bool usage = err == -REPLACE_INPUT || err == -EISDIR;
    return cmd_fail(o, usage ? CMD_USAGE : CMD_FAILED, "%s%s%scannot write %s: %s",
                    flag != NULL ? "--" : "", flag != NULL ? flag : "", flag != NULL ? ": " : "",
                    path, replace_why(err));
}
