/* peer/tensorboard/logdir.c -- finds a place that is free or ours, and writes behind whole records. */
#include "peer/tensorboard/logdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_NAME_MAX = 160 /* Bytes of a file's name, with a slash. */ };

static const char prefix[] = "events.out.tfevents.";

/* ---- The place. ---- */

/* The n-th directory of this name: NAME, NAME@2, NAME@3 and so on. False: the path is too long. */
static bool nth(char path[LOGDIR_PATH_MAX], const struct logdir_start *s, unsigned n)
{
    char number[16] = "";
    if (n > 1)
        snprintf(number, sizeof number, "@%u", n);
    return snprintf(path, LOGDIR_PATH_MAX, "%s/%s%s", s->dir, s->name, number)
           < LOGDIR_PATH_MAX - FILE_NAME_MAX;
}

/* Is there a file of this run? */
static bool is_of(const char *path, const char *run)
{
    char part[80];
    bool found = false;
    const struct dirent *e;
    DIR *d = opendir(path);
    snprintf(part, sizeof part, ".%.64s.", run);
    while (d != NULL && !found && (e = readdir(d)) != NULL)
        found = strncmp(e->d_name, prefix, strlen(prefix)) == 0 && strstr(e->d_name, part) != NULL;
    if (d != NULL)
        closedir(d);
    return found;
}

/* The newest place of our run, where it is one to be gone on with; else the first that is free, made
 * now, so that no other process takes it. */
static int find_place(char path[LOGDIR_PATH_MAX], const struct logdir_start *s)
{
    struct stat st;
    unsigned ours = 0, n = 1;
    for (; n <= LOGDIR_MOST; n++) {
        if (!nth(path, s, n))
            return -ENAMETOOLONG;
        if (lstat(path, &st) < 0)
            break;
        ours = s->goes_on && is_of(path, s->run) ? n : ours;
    }
    if (ours > 0)
        return nth(path, s, ours) ? 0 : -ENAMETOOLONG;
    for (; n <= LOGDIR_MOST && nth(path, s, n); n++) {
        if (mkdir(path, 0777) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

/* ---- The file. ---- */

static int make_file(struct logdir *l, const struct logdir_start *s)
{
    size_t n = strlen(l->path);
    snprintf(l->path + n, sizeof l->path - n, "/%s%010" PRId64 ".%.64s.%ld", prefix,
             (int64_t)s->wall_s, s->run, s->pid);
    l->fd = open(l->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    return l->fd < 0 ? -errno : 0;
}

/* Without what begins it a file is none. */
static int begin(struct logdir *l, const struct logdir_start *s)
{
    uint8_t record[EVENT_RECORD_MAX];
    int err = logdir_put(l, record, event_begin(record, s->wall_s));
    if (err == 0 && s->goes_on)
        err = logdir_put(l, record, event_again(record, s->wall_s, s->step));
    if (err < 0)
        unlink(l->path);
    return err;
}

/* What could not be begun leaves no directory of its own, so that the next try takes the same. */
int logdir_open(struct logdir *l, const struct logdir_start *s)
{
    char dir[LOGDIR_PATH_MAX];
    *l = (struct logdir){.fd = -1};
    int err = find_place(l->path, s);
    if (err < 0)
        return err;
    memcpy(dir, l->path, sizeof dir);
    err = make_file(l, s);
    if (err == 0)
        err = begin(l, s);
    if (err < 0) {
        logdir_close(l);
        (void)rmdir(dir);
    }
    return err;
}

int logdir_put(struct logdir *l, const uint8_t *record, size_t n)
{
    ssize_t done;
    if (n == 0)
        return 0;
    if (l->fd < 0)
        return -EBADF;
    do
        done = write(l->fd, record, n);
    while (done < 0 && errno == EINTR);
    if (done == (ssize_t)n) {
        l->end += done;
        return 0;
    }
    int err = done < 0 ? -errno : -ENOSPC;
    if (done > 0 && ftruncate(l->fd, l->end) < 0)
        logdir_close(l);
    return err;
}

void logdir_close(struct logdir *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
