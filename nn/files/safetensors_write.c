/* nn/files/safetensors_write.c -- writing a model file: the old one or the new one, never half.
 *
 *   PATH.tmp-PID-i   create (never an existing file), write, fsync
 *   rename to PATH   fsync of its directory
 *
 * so that a crash at any moment leaves PATH as it was or as it should be.
 */
#include "nn/files/safetensors.h"

#include "nn/files/file.h"

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
    ALIGN = 8,    /* The data begin at a multiple of it; spaces fill up. */
    CHUNK = 4096, /* Floats turned into bytes at a time. */
    NAMES_TRIED = 100
};

/* Metadata as "__metadata__"; none is written where there is none, as the format has it. */
static int put_meta(json_t *root, const struct safetensors_meta *meta, const char *path,
                    char error[FILE_ERROR_MAX])
{
    if (meta == NULL || meta->key == NULL)
        return 0;
    json_t *map = json_object();
    size_t n = 0;
    for (; meta->key != NULL; meta++, n++)
        if (json_object_set_new(map, meta->key, json_string(meta->value)) < 0) {
            json_decref(map);
            return file_error(error, path, "metadata \"%.48s\": expected UTF-8", meta->key);
        }
    if (json_object_set_new(root, "__metadata__", map) < 0)
        return file_world_error(error, path, "cannot write", ENOMEM);
    return n <= SAFETENSORS_META_MAX
               ? 0
               : file_error(error, path, "metadata: found %zu pairs, expected at most %d", n,
                            SAFETENSORS_META_MAX);
}

/* One line of the header. jansson says only at the end that memory was short somewhere. */
static int put_tensor(json_t *root, const struct segment *s, const char *path,
                      char error[FILE_ERROR_MAX])
{
    json_t *shape = json_array();
    size_t n = 1;
    int bad = 0;
    for (uint32_t i = 0; i < s->n_dims; i++) {
        bad |= json_array_append_new(shape, json_integer((json_int_t)s->dims[i]));
        n *= s->dims[i];
    }
    assert(n == s->n);
    json_t *tensor = json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape,
                               "data_offsets", (json_int_t)(s->offset * sizeof(float)),
                               (json_int_t)((s->offset + s->n) * sizeof(float)));
    bad |= json_object_set_new(root, s->name, tensor);
    return bad ? file_world_error(error, path, "cannot write", ENOMEM) : 0;
}

/* The header's text, padded with spaces to a multiple of ALIGN. */
static int header_text(const char *path, const struct segment *s, size_t n,
                       const struct safetensors_meta *meta, char **text, char error[FILE_ERROR_MAX])
{
    *text = NULL;
    json_t *root = json_object();
    int err = put_meta(root, meta, path, error);
    for (size_t i = 0; i < n && err == 0; i++)
        err = put_tensor(root, &s[i], path, error);
    char *compact = err == 0 ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (err < 0)
        return err;
    size_t len = compact != NULL ? strlen(compact) : 0, padded = (len + ALIGN - 1) / ALIGN * ALIGN;
    if (padded > SAFETENSORS_HEADER_MAX)
        err = file_error(error, path, "metadata: found %zu bytes, expected at most %d", len,
                         SAFETENSORS_HEADER_MAX);
    else if (compact == NULL || (*text = malloc(padded + 1)) == NULL)
        err = file_world_error(error, path, "cannot write", ENOMEM);
    if (err == 0) {
        memset(*text, ' ', padded);
        memcpy(*text, compact, len);
        (*text)[padded] = '\0';
    }
    free(compact);
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
static int put_all(int fd, const char *text, const float *x, size_t n)
{
    uint64_t len = strlen(text);
    uint8_t b[8];
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)(len >> (8 * i));
    int err = put_bytes(fd, b, sizeof b);
    if (err == 0)
        err = put_bytes(fd, text, (size_t)len);
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
static int replace(const char *path, const char *text, const float *x, size_t n)
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
    char *text;
    int err = header_text(path, s, n, meta, &text, error);
    if (err < 0)
        return err;
    err = replace(path, text, x, n_floats);
    free(text);
    return err < 0 ? file_world_error(error, path, "cannot write", -err) : 0;
}
