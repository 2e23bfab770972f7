/* nn/files/replace.c -- writes a file beside the old one, and puts it in its place when it is
 * whole and on the disk. */
#include "nn/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_TRIED = 100 };

static const char mark[] = ".tmp-";

int replace_begin(struct replace *r, const char *path)
{
    int n = snprintf(r->path, sizeof r->path, "%s", path);
    if (n < 0 || (size_t)n >= sizeof r->path)
        return -ENAMETOOLONG;
    for (int i = 0; i < NAMES_TRIED; i++) {
        n = snprintf(r->name, sizeof r->name, "%s%s%ld-%d", path, mark, (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof r->name)
            return -ENAMETOOLONG;
        r->fd = open(r->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (r->fd >= 0 || errno != EEXIST)
            return r->fd >= 0 ? 0 : -errno;
    }
    return -EEXIST;
}

/* write() may take a part, or be interrupted before it took any. */
int replace_put(struct replace *r, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        ssize_t w = write(r->fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -errno;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

int replace_sync(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fsync(fd) < 0 && errno != EINVAL ? -errno : 0; /* Some file systems cannot. */
    close(fd);
    return err;
}

/* The new name is on the disk only once its directory is. */
static int sync_directory_of(const char *path)
{
    char dir[REPLACE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = slash != NULL ? (int)(slash - path) : 1;
    snprintf(dir, sizeof dir, "%.*s", n > 0 ? n : 1, slash != NULL ? path : ".");
    return replace_sync(dir);
}

/* The old file stays until the new one is whole and on the disk: rename() then puts one in the
 * place of the other at once. */
int replace_end(struct replace *r, int err)
{
    if (err == 0 && fsync(r->fd) < 0)
        err = -errno;
    if (close(r->fd) < 0 && err == 0)
        err = -errno;
    if (err == 0 && rename(r->name, r->path) < 0)
        err = -errno;
    if (err < 0)
        unlink(r->name);
    return err < 0 ? err : sync_directory_of(r->path);
}

int replace_file(const char *path, const void *bytes, size_t n)
{
    struct replace r;
    int err = replace_begin(&r, path);
    return err < 0 ? err : replace_end(&r, replace_put(&r, bytes, n));
}

bool replace_is_left_over(const char *name, const char *base)
{
    size_t n = strlen(base);
    return strncmp(name, base, n) == 0 && strncmp(name + n, mark, sizeof mark - 1) == 0;
}
