/* nn/files/safetensors_write.c -- writing a model file: the old one or the new one, never half.
 *
 *   PATH.tmp-PID-i   create (never an existing file), write, fsync
 *   rename to PATH   fsync of its directory
 *
 * so that a crash at any moment leaves PATH as it was or as it should be.
 */
#include "nn/files/safetensors.h"

#include "nn/files/file.h"
#include "nn/files/safetensors_header.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 4096, /* Floats turned into bytes at a time. */
    NAMES_TRIED = 100
};

static int put_segment(json_t *root, const struct segment *s, const char *path,
                       char error[FILE_ERROR_MAX])
{
    struct safetensors_tensor t = {.name = s->name,
                                   .begin = s->offset * sizeof(float),
                                   .end = (s->offset + s->n) * sizeof(float),
                                   .n_dims = s->n_dims};
    for (uint32_t i = 0; i < s->n_dims; i++)
        t.dims[i] = s->dims[i];
    return safetensors_header_put(root, &t, path, error);
}

static int header_text(const char *path, const struct segment *s, size_t n,
                       const struct safetensors_meta *meta, struct safetensors_text *text,
                       char error[FILE_ERROR_MAX])
{
    json_t *root = json_object();
    int err = safetensors_header_put_meta(root, meta, path, error);
    for (size_t i = 0; i < n && err == 0; i++)
        err = put_segment(root, &s[i], path, error);
    if (err == 0)
        err = safetensors_header_text(root, SAFETENSORS_HEADER_MAX, text, path, error);
    json_decref(root);
    return err;
}

/* write() may take a part, or be interrupted before it took any. */
static int put_bytes(int fd, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -errno;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* Little-endian by shifts, so that the file is the same from any machine. */
static int put_floats(int fd, const float *x, size_t n)
{
    uint8_t b[CHUNK * sizeof(float)];
    int err = 0;
    for (size_t at = 0; at < n && err == 0; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK;
        for (size_t i = 0; i < m; i++) {
            uint32_t bits;
            memcpy(&bits, x + at + i, sizeof bits);
            for (size_t k = 0; k < sizeof bits; k++)
                b[i * sizeof bits + k] = (uint8_t)(bits >> (8 * k));
        }
        err = put_bytes(fd, b, m * sizeof(float));
    }
    return err;
}

/* Everything into an open file, on its way to the disk when this returns. */
static int put_all(int fd, const struct safetensors_text *text, const float *x, size_t n)
{
    int err = put_bytes(fd, text->text, text->n);
    if (err == 0)
        err = put_floats(fd, x, n);
    if (err == 0 && fsync(fd) < 0)
        err = -errno;
    return err;
}

/* A new file beside `path`, with the rights that the user's umask gives. */
static int open_temporary(const char *path, char name[PATH_MAX])
{
    for (int i = 0; i < NAMES_TRIED; i++) {
        int n = snprintf(name, PATH_MAX, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        if (n < 0 || n >= PATH_MAX)
            return -ENAMETOOLONG;
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

/* The new name is on the disk only once its directory is. */
static int sync_directory(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = slash != NULL ? (int)(slash - path) : 1;
    snprintf(dir, sizeof dir, "%.*s", n > 0 ? n : 1, slash != NULL ? path : ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fsync(fd) < 0 && errno != EINVAL ? -errno : 0; /* Some file systems cannot. */
    close(fd);
    return err;
}

/* The old file stays until the new one is whole and on the disk: rename() then puts one in the
 * place of the other at once. */
static int replace(const char *path, const struct safetensors_text *text, const float *x, size_t n)
{
    char name[PATH_MAX];
    int fd = open_temporary(path, name);
    if (fd < 0)
        return fd;
    int err = put_all(fd, text, x, n);
    if (close(fd) < 0 && err == 0)
        err = -errno;
    if (err == 0 && rename(name, path) < 0)
        err = -errno;
    if (err < 0)
        unlink(name);
    return err < 0 ? err : sync_directory(path);
}

int safetensors_write(const char *path, const float *x, const struct segment *s, size_t n,
                      const struct safetensors_meta *meta, char error[FILE_ERROR_MAX])
{
    size_t n_floats = 0;
    for (size_t i = 0; i < n; i++) {
        assert(s[i].offset == n_floats); /* They tile. */
        n_floats += s[i].n;
    }
    struct safetensors_text text;
    int err = header_text(path, s, n, meta, &text, error);
    if (err < 0)
        return err;
    err = replace(path, &text, x, n_floats);
    free(text.text);
    return err < 0 ? file_world_error(error, path, "cannot write", -err) : 0;
}
