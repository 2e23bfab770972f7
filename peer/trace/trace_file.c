/* peer/trace/trace_file.c -- opens the file of a trace, refuses files that are not traces, and
 * appends lines without waiting. */
#include "peer/trace/trace_file.h"

#include "nn/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(int err, char error[TRACE_FILE_ERROR], const char *why)
{
    snprintf(error, TRACE_FILE_ERROR, "%s", why);
    return err;
}

/* Checks that the file begins like a trace. *torn: true if its last line has no newline, because
 * the disk was full or the process was killed. */
static bool is_trace(const char *path, off_t size, bool *torn)
{
    char begin[sizeof TRACE_FILE_HEADER] = "", last = '\n';
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool read_ok = fd >= 0 && pread(fd, begin, sizeof begin - 1, 0) == (ssize_t)sizeof begin - 1
                   && pread(fd, &last, 1, size - 1) == 1;
    if (fd >= 0)
        close(fd);
    *torn = last != '\n';
    return read_ok && strcmp(begin, TRACE_FILE_HEADER) == 0;
}

/* Locks an open regular file, and checks that it is empty or a trace. `replaces`: empties the file.
 * Otherwise ends an incomplete last line with a newline. */
static int prepare_regular(int fd, const char *path, bool replaces, char error[TRACE_FILE_ERROR])
{
    struct stat st;
    bool torn = false;
    /* Other errors of flock() are ignored, because some file systems cannot lock files. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return fail(-EBUSY, error, "another process writes its trace to this file");
    if (fstat(fd, &st) < 0)
        return fail(-errno, error, strerror(errno));
    if (st.st_size > 0 && !is_trace(path, st.st_size, &torn))
        return fail(-EEXIST, error, "the file exists and is no trace; expected another file");
    if (replaces ? ftruncate(fd, 0) < 0 : torn && write(fd, "\n", 1) != 1)
        return fail(-errno, error, strerror(errno));
    return 0;
}

int trace_file_open(struct trace_file *f, const char *path, bool replaces,
                    char error[TRACE_FILE_ERROR])
{
    struct stat st;
    *f = (struct trace_file){.fd = -1};
    int err = replace_check(path);
    if (err < 0)
        return fail(err, error, replace_why(err));
    /* O_NONBLOCK: a pipe without a reader, or with a slow one, must not stop the run. */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENXIO)
        return fail(-ENXIO, error, "the path is a socket, or a pipe from which no process reads");
    if (fd < 0)
        return fail(-errno, error, strerror(errno));
    f->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    err = f->regular ? prepare_regular(fd, path, replaces, error) : 0;
    if (err < 0) {
        close(fd);
        return err;
    }
    f->fd = fd;
    return 0;
}

/* Writes n bytes. Returns 0 or a negative errno. */
static int put_bytes(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, bytes, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return w < 0 ? -errno : -EIO;
        bytes += w;
        n -= (size_t)w;
    }
    return 0;
}

int trace_file_put(struct trace_file *f, const char *line)
{
    char text[TRACE_FILE_LINE];
    if (f->fd < 0)
        return 0;
    size_t n = strnlen(line, sizeof text - 1);
    memcpy(text, line, n);
    text[n++] = '\n';
    off_t end = f->regular ? lseek(f->fd, 0, SEEK_END) : -1;
    int err = put_bytes(f->fd, text, n);
    if (err == 0)
        return 0;
    /* On a full disk only a part of the line may have been written. That part is removed again. If
     * the removal fails, the next start of the trace begins with a newline. */
    if (end >= 0 && ftruncate(f->fd, end) < 0)
        end = -1;
    trace_file_close(f);
    return err;
}

void trace_file_close(struct trace_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
