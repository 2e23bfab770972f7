/* nn/files/safetensors_write.c -- writes a model file. After a crash the file has either its old or
 * its new contents (nn/files/replace.h). */
#include "nn/files/safetensors.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"
#include "nn/files/safetensors_header.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 4096 /* Number of floats that are encoded at a time. */
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

/* Encodes floats as little-endian by shifts, so the file is the same on machines of any byte
 * order. */
static int put_floats(struct replace *r, const float *x, size_t n)
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
        err = replace_put(r, b, m * sizeof(float));
    }
    return err;
}

static int put_all(struct replace *r, const struct safetensors_text *text, const float *x, size_t n)
{
    int err = replace_put(r, text->text, text->n);
    return err == 0 ? put_floats(r, x, n) : err;
}

int safetensors_write(const char *path, const float *x, const struct segment *s, size_t n,
                      const struct safetensors_meta *meta, char error[FILE_ERROR_MAX])
{
    size_t n_floats = 0;
    for (size_t i = 0; i < n; i++) {
        /* Segments follow each other without gaps, so a segment begins where the previous one
         * ends. */
        assert(s[i].offset == n_floats);
        n_floats += s[i].n;
    }
    struct safetensors_text text;
    int err = header_text(path, s, n, meta, &text, error);
    if (err < 0)
        return err;
    struct replace r;
    err = replace_begin(&r, path);
    if (err == 0)
        err = replace_end(&r, put_all(&r, &text, x, n_floats));
    free(text.text);
    if (err < 0)
        file_error(error, path, "cannot write: %s", replace_why(err));
    return err;
}
