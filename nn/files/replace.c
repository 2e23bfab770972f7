/* nn/files/replace.c -- opens all outputs of the program: regular files are replaced atomically,
 * pipes and devices are written to, inputs are refused. */
#include "nn/files/replace.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    NAMES_TRIED = 100,
    /* Largest number of symbolic links to follow in a path: the limit of the Linux kernel. */
    LINKS_MAX = 40,
    RIGHTS = 0777
};

static const char mark[] = ".tmp-";

/* ---- Inputs of this program, which it never replaces ---- */

struct input
{
    dev_t dev;
    ino_t ino;
};

static struct
{
    atomic_bool on;
    atomic_flag busy; /* Spin lock that guards the list of inputs: the fields after this one. */
    struct input *at;
    size_t n, cap;
} inputs = {.busy = ATOMIC_FLAG_INIT};

static void lock_inputs(void)
{
    while (atomic_flag_test_and_set(&inputs.busy))
        ;
}

static bool find_input(const struct stat *st)
{
    for (size_t i = 0; i < inputs.n; i++)
        if (inputs.at[i].dev == st->st_dev && inputs.at[i].ino == st->st_ino)
            return true;
    return false;
}

static bool is_input(const struct stat *st)
{
    lock_inputs();
    bool found = find_input(st);
    atomic_flag_clear(&inputs.busy);
    return found;
}

void replace_protect_inputs(void)
{
    atomic_store(&inputs.on, true);
}

/* If there is no memory to remember the file as an input, the file is left out of the list of
 * inputs. The program could then overwrite the file later, but reading it still succeeds. */
void replace_add_input(int fd)
{
    struct stat st;
    if (!atomic_load(&inputs.on) || fstat(fd, &st) < 0)
        return;
    lock_inputs();
    if (!find_input(&st)) {
        if (inputs.n == inputs.cap) {
            size_t cap = inputs.cap > 0 ? 2 * inputs.cap : 16;
            struct input *more = realloc(inputs.at, cap * sizeof *more);
            inputs.at = more != NULL ? more : inputs.at;
            inputs.cap = more != NULL ? cap : inputs.cap;
        }
        if (inputs.n < inputs.cap)
            inputs.at[inputs.n++] = (struct input){st.st_dev, st.st_ino};
    }
    atomic_flag_clear(&inputs.busy);
}

/* ---- Inspecting the path of an output ---- */

/* Replaces `path`, which is a symbolic link, by the target of the link. A relative target is
 * relative to the directory of the link. */
static int follow(char path[REPLACE_PATH_MAX])
{
    char target[REPLACE_PATH_MAX], joined[REPLACE_PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    const char *slash = target[0] != '/' ? strrchr(path, '/') : NULL;
    int dir = slash != NULL ? (int)(slash - path) + 1 : 0;
    int len = snprintf(joined, sizeof joined, "%.*s%s", dir, path, target);
    if (len < 0 || (size_t)len >= sizeof joined)
        return -ENAMETOOLONG;
    memcpy(path, joined, (size_t)len + 1);
    return 0;
}

/* Resolves the symbolic links of `path` to the final file. Links to streams (pipes, sockets,
 * devices) are not resolved, because links in /proc/self/fd have targets that are not paths. Sets
 * *there to true if the file exists. Returns 0 or a negative errno. */
static int look(char resolved[REPLACE_PATH_MAX], const char *path, struct stat *st, bool *there)
{
    int n = snprintf(resolved, REPLACE_PATH_MAX, "%s", path);
    if (n < 0 || n >= REPLACE_PATH_MAX)
        return -ENAMETOOLONG;
    *there = stat(path, st) == 0;
    if (!*there && errno != ENOENT)
        return -errno;
    if (*there && S_ISDIR(st->st_mode))
        return -EISDIR;
    if (*there && is_input(st))
        return -REPLACE_INPUT;
    if (*there && !S_ISREG(st->st_mode))
        return 0;
    struct stat link;
    for (int i = 0; lstat(resolved, &link) == 0 && S_ISLNK(link.st_mode); i++) {
        int err = i < LINKS_MAX ? follow(resolved) : -ELOOP;
        if (err < 0)
            return err;
    }
    return 0;
}

int replace_check(const char *path)
{
    char resolved[REPLACE_PATH_MAX];
    struct stat st;
    bool there;
    return look(resolved, path, &st, &there);
}

const char *replace_why(int err)
{
    assert(err < 0);
    if (err == -REPLACE_INPUT)
        return "the file is an input of this command; expected another file to write to";
    if (err == -EISDIR)
        return "the path is a directory; expected a file to write to";
    return strerror(-err);
}

/* ---- Writing an output ---- */

static int open_socket(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path)
        return -ENAMETOOLONG;
    memcpy(to.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd >= 0 ? fd : -errno;
}

/* Opens a stream (a pipe, a socket or a device) without O_CREAT and O_TRUNC. If a regular file has
 * replaced the stream since the path was checked, the regular file is not truncated. */
static int open_stream(struct replace *r, const struct stat *st)
{
    r->streams = true;
    if (S_ISSOCK(st->st_mode))
        r->fd = open_socket(r->path);
    else if ((r->fd = open(r->path, O_WRONLY | O_NOCTTY | O_CLOEXEC)) < 0)
        r->fd = -errno;
    return r->fd < 0 ? r->fd : 0;
}

static int open_temporary(struct replace *r)
{
    for (int i = 0; i < NAMES_TRIED; i++) {
        int n = snprintf(r->name, sizeof r->name, "%s%s%ld-%d", r->path, mark, (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof r->name)
            return -ENAMETOOLONG;
        r->fd = open(r->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (r->fd >= 0 || errno != EEXIST)
            return r->fd >= 0 ? 0 : -errno;
    }
    return -EEXIST;
}

int replace_begin(struct replace *r, const char *path)
{
    struct stat st;
    bool there;
    r->streams = false;
    int err = look(r->path, path, &st, &there);
    if (err < 0)
        return err;
    if (there && !S_ISREG(st.st_mode))
        return open_stream(r, &st);
    err = open_temporary(r);
    if (err == 0 && there && fchmod(r->fd, st.st_mode & RIGHTS) < 0 && errno != EPERM)
        err = replace_end(r, -errno);
    return err;
}

/* Calls write() and suppresses SIGPIPE. Writing to a pipe without a reader then gives the error
 * EPIPE, even if the program does not ignore the signal. */
static ssize_t write_quietly(int fd, const void *bytes, size_t n)
{
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t w = write(fd, bytes, n);
    int err = errno;
    if (w < 0 && err == EPIPE)
        sigtimedwait(&pipe_signal, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = err;
    return w;
}

/* write() may accept only some of the bytes, or be interrupted before it accepts any. */
int replace_put(struct replace *r, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        ssize_t w = r->streams ? write_quietly(r->fd, p, n) : write(r->fd, p, n);
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
    /* EINVAL: the file system cannot sync a directory. This is no error. */
    int err = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return err;
}

/* Syncs the directory of a file after rename(). Without this, a crash of the machine could undo
 * rename(). */
static int sync_directory_of(const char *path)
{
    char dir[REPLACE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = slash != NULL ? (int)(slash - path) : 1;
    snprintf(dir, sizeof dir, "%.*s", n > 0 ? n : 1, slash != NULL ? path : ".");
    return replace_sync(dir);
}

/* The old file stays until the new one is complete and synced to the disk. rename() then replaces
 * the old file atomically. */
int replace_end(struct replace *r, int err)
{
    if (err == 0 && !r->streams && fsync(r->fd) < 0)
        err = -errno;
    if (close(r->fd) < 0 && err == 0)
        err = -errno;
    if (r->streams)
        return err;
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
