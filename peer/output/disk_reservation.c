/* peer/output/disk_reservation.c -- reserves disk space by allocating a temporary file that has
 * no name. */
#include "peer/output/disk_reservation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_MOST = 1100, /* Size of a path buffer in bytes, enough for a directory and a file name. */
    /* Bytes reserved per model file in addition to its parameters: for the header of the file, its
     * metadata, and summary.json. */
    BESIDE_A_MODEL = 1 << 15
};

void disk_reservation_release(struct disk_reservation *r)
{
    if (r->held)
        close(r->fd);
    r->held = false;
}

static int take(struct disk_reservation *r, const char *dir)
{
    char path[PATH_MOST];
    int n = snprintf(path, sizeof path, "%s/.reserve-XXXXXX", dir);
    if (n < 0 || n >= (int)sizeof path)
        return -ENAMETOOLONG;
    r->fd = mkstemp(path);
    if (r->fd < 0)
        return -errno;
    (void)fcntl(r->fd, F_SETFD, FD_CLOEXEC);
    unlink(path);
    r->held = true;
    int err = -posix_fallocate(r->fd, 0, (off_t)r->bytes);
    if (err < 0)
        disk_reservation_release(r);
    return err == -EOPNOTSUPP || err == -EINVAL ? 0 : err;
}

uint64_t disk_reservation_bytes(size_t n_params, uint32_t n_files)
{
    return n_files * ((uint64_t)n_params * sizeof(float) + BESIDE_A_MODEL);
}

int disk_reservation_hold(struct disk_reservation *r, const char *dir, size_t n_params,
                          uint32_t n_files)
{
    disk_reservation_release(r);
    r->bytes = disk_reservation_bytes(n_params, n_files);
    return take(r, dir);
}

void disk_reservation_hold_again(struct disk_reservation *r, const char *dir)
{
    disk_reservation_release(r);
    if (r->bytes > 0)
        (void)!take(r, dir);
}

int disk_reservation_check(const char *dir, const char *const *names, char *path, size_t n_path)
{
    struct stat st;
    for (; *names != NULL; names++) {
        int n = snprintf(path, n_path, "%s/%s", dir, *names);
        if (n < 0 || (size_t)n >= n_path)
            return -ENAMETOOLONG;
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return -EISDIR;
    }
    snprintf(path, n_path, "%s", dir);
    return access(dir, W_OK | X_OK) < 0 ? -errno : 0;
}
