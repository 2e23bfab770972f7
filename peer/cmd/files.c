/* peer/cmd/files.c -- builds paths and reads small files for the commands. */
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

int cmd_read_text(const char *path, char *text, size_t cap, char error[KEYFILE_ERROR_MAX])
{
    FILE *f = fopen(path, "re");
    if (f != NULL)
        replace_add_input(fileno(f));
    size_t n = f != NULL ? fread(text, 1, cap, f) : 0;
    int err = f == NULL || ferror(f) ? -errno : n == cap ? -EFBIG : 0;
    if (f != NULL)
        fclose(f);
    text[n < cap ? n : cap - 1] = '\0';
    if (err < 0)
        snprintf(error, KEYFILE_ERROR_MAX, "%.300s: %s", path, strerror(-err));
    return err;
}
