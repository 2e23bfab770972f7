/* peer/output/promise.c -- writes, reads and removes the file `promise` of an output directory. The
 * file stores what a peer has promised in the finish protocol. */
#include "peer/output/promise.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Sets path[] to the path of the file DIR/promise. Returns false if the path is too long. */
static bool find_path(char path[REPLACE_PATH_MAX], const char *dir)
{
    return snprintf(path, REPLACE_PATH_MAX, "%s/promise", dir) < REPLACE_PATH_MAX;
}

int promise_write(const char *dir, const uint8_t *bytes, size_t n)
{
    char path[REPLACE_PATH_MAX];
    return find_path(path, dir) ? replace_file(path, bytes, n) : -ENAMETOOLONG;
}

void promise_read(struct promise *p, const char *dir)
{
    char path[REPLACE_PATH_MAX], why[FILE_ERROR_MAX];
    int fd = find_path(path, dir) ? file_open_fd(path, why) : -ENAMETOOLONG;
    bool absent = fd == -ENOENT;
    ssize_t n = fd >= 0 ? read(fd, p->bytes, sizeof p->bytes) : -1;
    p->n = absent ? 0 : n > 0 && (size_t)n < sizeof p->bytes ? (size_t)n : 1;
    if (fd >= 0)
        close(fd);
}

void promise_remove(const char *dir)
{
    char path[REPLACE_PATH_MAX];
    if (find_path(path, dir))
        (void)unlink(path);
}
