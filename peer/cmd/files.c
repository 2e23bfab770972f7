/* peer/cmd/files.c -- paths and small files of commands. */
#include "peer/cmd/files.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"
#include "peer/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_MAX = 4096 /* Bytes of a file's beginning that tell whose it is. */ };

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

int cmd_may_write(const struct options *o, const char *path, const void *mark, size_t n, bool force,
                  const char *not_ours)
{
    uint8_t head[HEAD_MAX];
    char error[FILE_ERROR_MAX];
    struct stat st;
    size_t got;
    bool whole;
    int err = replace_check(path);
    if (err < 0)
        return cmd_fail(o, CMD_USAGE, "cannot write %s: %s", path, replace_why(err));
    if (force || replace_is_stream(path) || (stat(path, &st) < 0 && errno == ENOENT))
        return CMD_OK;
    bool ours = S_ISREG(st.st_mode)
                && (st.st_size == 0
                    || (file_head(path, head, n < HEAD_MAX ? n : HEAD_MAX, &got, &whole, error) == 0
                        && got >= n && memcmp(head, mark, n) == 0));
    return ours ? CMD_OK : cmd_fail(o, CMD_USAGE, "%s exists, and is %s", path, not_ours);
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
