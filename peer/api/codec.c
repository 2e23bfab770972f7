/* peer/api/codec.c -- public functions for codecs, applied to a vector of the caller.
 *
 * The modules in compress/ assert that their arguments are valid. A program may pass wrong
 * arguments to a public function. Therefore this file checks pointers, sizes and the order of
 * calls, and returns an error code. The bytes of compressed messages are checked in compress/. */
#include "peer/api/hearsay.h"

#include "compress/compress.h"

#include "nn/math/c_locale.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)HEARSAY_CODEC_ERROR_MAX == (int)COMPRESS_ERROR_MAX, "one sentence fits both");

struct hearsay_codec
{
    struct compress *compress;
    size_t floats;
    /* Zeros that stand for x_hat if the caller passes NULL. The zeros are never written, so their
     * pages take no physical memory. */
    float *zeros;
    char spec[COMPRESS_SPEC_MAX]; /* Spec of the codec with all defaults filled in. */
};

/* ---- Opening and closing a codec ---- */

/* Writes an error message to error[], unless `error` is NULL. Returns `code`. */
__attribute__((format(printf, 3, 4))) static int refuse(char *error, int code, const char *format,
                                                        ...)
{
    if (error == NULL)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(error, HEARSAY_CODEC_ERROR_MAX, format, args);
    va_end(args);
    return code;
}

/* Converts one layer to a segment at the end of the vector. The vector has at most 2^32 - 1 floats,
 * because positions in messages have 32 bits. The check divides instead of multiplying, because the
 * product of rows and columns could overflow. */
static int take_layer(struct segment *s, const struct hearsay_layer *l, size_t i, size_t *floats,
                      char *error)
{
    const char *name = l->name != NULL ? l->name : "";
    size_t length = strnlen(name, SEGMENT_NAME_MAX);
    if (length >= SEGMENT_NAME_MAX)
        return refuse(error, HEARSAY_USAGE, "layer %zu: its name is longer than %d bytes", i,
                      SEGMENT_NAME_MAX - 1);
    if (l->rows == 0 || l->cols == 0)
        return refuse(error, HEARSAY_USAGE,
                      "layer %zu is %" PRIu64 " x %" PRIu64 ", expected 1 x 1 or more", i, l->rows,
                      l->cols);
    if (l->rows > UINT32_MAX || l->cols > (UINT32_MAX - *floats) / l->rows)
        return refuse(error, HEARSAY_USAGE,
                      "layer %zu is %" PRIu64 " x %" PRIu64
                      ", which makes the vector longer than %" PRIu32 " floats",
                      i, l->rows, l->cols, UINT32_MAX);
    *s = (struct segment){.offset = *floats,
                          .n = (size_t)(l->rows * l->cols),
                          .rows = (size_t)l->rows,
                          .cols = (size_t)l->cols,
                          .n_dims = 2,
                          .dims = {(uint32_t)l->rows, (uint32_t)l->cols},
                          .trained = true};
    memcpy(s->name, name, length);
    *floats += s->n;
    return HEARSAY_OK;
}

/* Converts all layers to segments. compress_open() copies the segments, so the caller frees
 * `*segments` after that call. */
static int take_layers(struct segment **segments, const struct hearsay_layer *layers, size_t n,
                       size_t *floats, char *error)
{
    if (layers == NULL || n == 0)
        return refuse(error, HEARSAY_USAGE, "found no layer, expected one or more");
    /* A vector has at most 2^32 - 1 floats, and each of its layers has at least one float, so a
     * vector has at most 2^32 - 1 layers. */
    if (n > UINT32_MAX)
        return refuse(error, HEARSAY_USAGE, "there are %zu layers, expected fewer than 2^32", n);
    *segments = calloc(n, sizeof **segments);
    if (*segments == NULL)
        return refuse(error, HEARSAY_SYSTEM, "out of memory for %zu layers", n);
    for (size_t i = 0; i < n; i++) {
        int code = take_layer(&(*segments)[i], &layers[i], i, floats, error);
        if (code != HEARSAY_OK)
            return code;
    }
    return HEARSAY_OK;
}

/* Opens the codec. Spec and layers have already been checked, so only a lack of memory can make
 * this function fail. */
static int allocate(struct hearsay_codec *c, const struct segment *segments, size_t n, char *error)
{
    c->zeros = calloc(c->floats, sizeof *c->zeros);
    int err = c->zeros == NULL ? -ENOMEM : compress_open(&c->compress, c->spec, segments, n);
    if (err == 0)
        return HEARSAY_OK;
    return refuse(error, HEARSAY_SYSTEM, "out of memory for %s and %zu floats", c->spec, c->floats);
}

static int open_codec(struct hearsay_codec *c, const char *spec, const struct hearsay_layer *layers,
                      size_t n_layers, char *error)
{
    char sentence[COMPRESS_ERROR_MAX];
    if (spec == NULL)
        return refuse(error, HEARSAY_USAGE, "found no spec, expected one such as topk:0.01");
    if (compress_canonical(spec, c->spec, sentence) != 0)
        return refuse(error, HEARSAY_USAGE, "%s", sentence);
    struct segment *segments = NULL;
    int code = take_layers(&segments, layers, n_layers, &c->floats, error);
    if (code == HEARSAY_OK)
        code = allocate(c, segments, n_layers, error);
    free(segments);
    return code;
}

int hearsay_codec_open(struct hearsay_codec **out, const char *spec,
                       const struct hearsay_layer *layers, size_t n_layers, char *error)
{
    C_LOCALE_HERE;
    if (out == NULL)
        return refuse(error, HEARSAY_USAGE,
                      "c is NULL, expected a pointer in which the codec can be stored");
    *out = NULL;
    struct hearsay_codec *c = calloc(1, sizeof *c);
    if (c == NULL)
        return refuse(error, HEARSAY_SYSTEM, "out of memory for a codec");
    int code = open_codec(c, spec, layers, n_layers, error);
    if (code != HEARSAY_OK) {
        hearsay_codec_close(c);
        return code;
    }
    *out = c;
    return HEARSAY_OK;
}

void hearsay_codec_close(struct hearsay_codec *c)
{
    if (c == NULL)
        return;
    compress_close(c->compress);
    free(c->zeros);
    free(c);
}

const char *hearsay_codec_spec(const struct hearsay_codec *c)
{
    return c != NULL ? c->spec : "";
}

size_t hearsay_codec_floats(const struct hearsay_codec *c)
{
    return c != NULL ? c->floats : 0;
}

size_t hearsay_codec_bound(const struct hearsay_codec *c)
{
    return c != NULL ? compress_bound(c->compress) : 0;
}

/* ---- Encoding, checking and adding messages ---- */

/* Always passes `stats` to compress_encode(), because without it some encoders do not detect values
 * that are not finite. */
int hearsay_codec_encode(struct hearsay_codec *c, const float *x, const float *x_hat, uint64_t seed,
                         uint64_t round, void *out, size_t cap, size_t *n, double *left)
{
    if (c == NULL || x == NULL || out == NULL || n == NULL || cap < compress_bound(c->compress))
        return HEARSAY_USAGE;
    struct compress_input in = {.draw = rng_key(seed, RNG_DRAW, round, 0),
                                .round = round,
                                .x = x,
                                .x_hat = x_hat != NULL ? x_hat : c->zeros};
    struct compress_stat stat;
    size_t len;
    int err = compress_encode(c->compress, &in, out, &len, &stat);
    if (err != 0)
        return HEARSAY_NOT_FINITE;
    *n = len;
    if (left != NULL)
        *left = stat.x2 > 0.0 ? stat.e2 / stat.x2 : 0.0;
    return HEARSAY_OK;
}

int hearsay_codec_check(const struct hearsay_codec *c, const void *message, size_t n)
{
    return c != NULL && message != NULL && compress_validate(c->compress, message, n);
}

int hearsay_codec_add(const struct hearsay_codec *c, const void *message, size_t n, float *x_hat)
{
    if (x_hat == NULL || !hearsay_codec_check(c, message, n))
        return HEARSAY_USAGE;
    compress_apply(c->compress, message, n, x_hat);
    return HEARSAY_OK;
}

/* ---- The catalogue of codecs ---- */

/* compress_catalogue() writes the texts of a codec to a buffer. Each thread has its own buffer, so
 * threads may call this function at the same time. */
int hearsay_codec_at(size_t i, const char **preset, const char **about)
{
    C_LOCALE_HERE;
    static _Thread_local struct compress_info info;
    size_t n = 0;
    while (n <= i && compress_catalogue(n, &info))
        n++;
    if (n <= i)
        return HEARSAY_USAGE;
    if (preset != NULL)
        *preset = info.preset;
    if (about != NULL)
        *about = info.about;
    return HEARSAY_OK;
}
