/* peer/checkpoints/disk.c -- file operations on one directory of the local disk. The directory
 * stays open, so that renaming it does no harm. */
#include "peer/checkpoints/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int dir_of(void *self)
{
    return *(const int *)self;
}

static int result(int value)
{
    return value < 0 ? -errno : value;
}

/* New files get mode 0666 minus the user's umask, like a model file. */
static int posix_create(void *self, const char *name)
{
    return result(openat(dir_of(self), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

/* Calls write() until all bytes are written, because write() may write only some bytes, or none if
 * a signal interrupts it. */
static int posix_write(void *self, int file, const void *p, size_t n)
{
    const uint8_t *at = p;
    (void)self;
    while (n > 0) {
        ssize_t w = write(file, at, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return w < 0 ? -errno : -EIO;
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

/* An fsync() that a signal interrupts counts as an error. Repeating the call would not be safe:
 * POSIX does not say whether the second call reports data that was lost. */
static int posix_sync(void *self, int file)
{
    (void)self;
    return result(fsync(file));
}

static int posix_close(void *self, int file)
{
    (void)self;
    return result(close(file));
}

/* Refuses to replace a directory, a symbolic link or any other file that is not regular.
 * posix_read() does not follow links either. */
static int posix_rename(void *self, const char *from, const char *to)
{
    struct stat st;
    if (fstatat(dir_of(self), to, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST;
    return result(renameat(dir_of(self), from, dir_of(self), to));
}

static int posix_unlink(void *self, const char *name)
{
    return result(unlinkat(dir_of(self), name, 0));
}

/* File systems that cannot sync a directory return EINVAL, which is not an error. */
static int posix_sync_dir(void *self)
{
    int err = result(fsync(dir_of(self)));
    return err == -EINVAL ? 0 : err;
}

/* Reads up to `n` bytes. *got becomes the number of bytes read, which is smaller than `n` at the
 * end of the file. */
static int read_up_to(int file, uint8_t *bytes, size_t n, size_t *got)
{
    for (*got = 0; *got < n;) {
        ssize_t r = read(file, bytes + *got, n - *got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : 0;
        *got += (size_t)r;
    }
    return 0;
}

/* Reads a regular file of at most `most` bytes into allocated memory. The size is checked before
 * memory is allocated. */
static int read_regular(int file, uint64_t most, uint8_t **bytes, size_t *n)
{
    struct stat st;
    if (fstat(file, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
    if ((uint64_t)st.st_size > most)
        return -EFBIG;
    *bytes = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
    if (*bytes == NULL)
        return -ENOMEM;
    int err = read_up_to(file, *bytes, (size_t)st.st_size, n);
    if (err < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return err;
}

/* O_NONBLOCK: opening a named pipe must not block. O_NOFOLLOW: a symbolic link could lead out of
 * the directory, so it is refused. */
static int posix_read(void *self, const char *name, uint64_t most, uint8_t **bytes, size_t *n)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
    int file = result(openat(dir_of(self), name, flags));
    *bytes = NULL;
    *n = 0;
    if (file < 0)
        return file;
    int err = read_regular(file, most, bytes, n);
    close(file);
    return err;
}

int disk_open(struct disk *d, const char *path)
{
    int *dir = malloc(sizeof *dir);
    if (dir == NULL)
        return -ENOMEM;
    *dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0) {
        int err = -errno;
        free(dir);
        return err;
    }
    *d = (struct disk){.self = dir,
                       .create = posix_create,
                       .write = posix_write,
                       .sync = posix_sync,
                       .close = posix_close,
                       .rename = posix_rename,
                       .unlink = posix_unlink,
                       .sync_dir = posix_sync_dir,
                       .read = posix_read};
    return 0;
}

void disk_close(struct disk *d)
{
    close(dir_of(d->self));
    free(d->self);
    *d = (struct disk){0};
}
