#include "compress/compress.h"

#include "compress/sparse.h"
#include "compress/spec.h"

#include "nn/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* First byte of a unit. */
enum {
    UNIT_ZERO,
    UNIT_BODY
};

/* What is compressed by itself: the whole vector or one segment. */
struct unit
{
    size_t offset, n;
};

struct compress
{
    struct spec spec;
    struct sparse chain; /* Points into spec. */
    struct unit *units;
    size_t n_units, dim, bound, nominal;
    struct sparse_scratch scratch;
};

int compress_canonical(const char *spec, char canonical[COMPRESS_SPEC_MAX],
                       char error[COMPRESS_ERROR_MAX])
{
    struct spec s;
    int err = spec_parse(&s, spec, error);
    if (err == 0)
        spec_print(&s, canonical);
    return err;
}

static bool selects(const struct compress *c)
{
    return c->spec.selector.codec != NULL;
}

static void bind_units(struct compress *c, enum compress_scope scope,
                       const struct segment *segments, size_t n_segments)
{
    c->dim = 0;
    for (size_t i = 0; i < n_segments; i++) {
        assert(segments[i].offset == c->dim); /* They tile the vector. */
        c->units[i] = (struct unit){c->dim, segments[i].n};
        c->dim += segments[i].n;
    }
    c->n_units = n_segments;
    if (scope == COMPRESS_MODEL) {
        c->units[0] = (struct unit){0, c->dim};
        c->n_units = 1;
    }
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Sizes of messages and of scratch, each the largest a unit needs. */
static int plan(struct compress *c)
{
    size_t floats = 1;
    size_t picks = 1;
    size_t bytes = 1;
    for (size_t i = 0; i < c->n_units; i++) {
        size_t n = c->units[i].n;
        size_t coded = n;
        if (selects(c)) {
            const struct codec_stage *s = &c->spec.selector;
            coded = s->codec->selector->keep(s->arg, n);
            picks = larger(picks, coded + CODEC_CHUNK);
            if (n > 0)
                bytes = larger(bytes, s->codec->selector->scratch(s->arg, n));
            c->bound += n > 0 ? sparse_bound(&c->chain, n) : 0;
            c->nominal += n > 0 ? sparse_nominal(&c->chain, n) : 0;
        } else {
            c->bound += dense_size(&c->spec.coder, n);
            c->nominal += dense_size(&c->spec.coder, n);
        }
        floats = larger(floats, dense_scratch(&c->spec.coder, coded));
    }
    c->bound += c->n_units; /* The first bytes. */
    c->nominal += c->n_units;
    c->scratch.dense.v = malloc(floats * sizeof(float));
    c->scratch.dense.work = malloc(floats * sizeof(float));
    c->scratch.pick.index = malloc(picks * sizeof(uint32_t));
    c->scratch.pick.value = malloc(picks * sizeof(float));
    c->scratch.pick.scratch = malloc(bytes);
    bool full = c->scratch.dense.v != NULL && c->scratch.dense.work != NULL &&
                c->scratch.pick.index != NULL &&
                c->scratch.pick.value != NULL && c->scratch.pick.scratch != NULL;
    return full ? 0 : -ENOMEM;
}

int compress_open(struct compress **out, const char *spec,
                  enum compress_scope scope, const struct segment *segments,
                  size_t n_segments)
{
    char error[COMPRESS_ERROR_MAX];
    *out = NULL;
    struct compress *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    c->units = calloc(n_segments + 1, sizeof *c->units);
    int err = c->units == NULL ? -ENOMEM : spec_parse(&c->spec, spec, error);
    if (err == 0) {
        c->chain = (struct sparse){&c->spec.selector, &c->spec.coder};
        bind_units(c, scope, segments, n_segments);
        err = c->dim > UINT32_MAX ? -EINVAL : plan(c);
    }
    if (err != 0) {
        compress_close(c);
        return err;
    }
    *out = c;
    return 0;
}

void compress_close(struct compress *c)
{
    if (c == NULL)
        return;
    free(c->scratch.dense.v);
    free(c->scratch.dense.work);
    free(c->scratch.pick.index);
    free(c->scratch.pick.value);
    free(c->scratch.pick.scratch);
    free(c->units);
    free(c);
}

size_t compress_dim(const struct compress *c)
{
    return c->dim;
}

size_t compress_bound(const struct compress *c)
{
    return c->bound;
}

size_t compress_nominal(const struct compress *c)
{
    return c->nominal;
}

/* One unit, its first byte included. */
static int encode_unit(struct compress *c, const struct codec_source *s,
                       uint8_t *dst, size_t *len, struct compress_stat *stat)
{
    int err;
    if (selects(c)) {
        err = sparse_encode(&c->chain, s, &c->scratch, dst + 1, len, stat);
    } else {
        err = dense_encode(&c->spec.coder, s, &c->scratch.dense, dst + 1, stat);
        *len = dense_size(&c->spec.coder, s->n);
    }
    bool zero = !(stat->x2 > 0.0);
    dst[0] = zero ? UNIT_ZERO : UNIT_BODY;
    *len = zero ? 1 : 1 + *len;
    return err;
}

int compress_encode(struct compress *c, uint64_t draw, const float *x,
                    const float *x_hat, uint8_t *dst, size_t *len,
                    struct compress_stat *stat)
{
    struct compress_stat total = {0};
    size_t at = 0;
    for (size_t i = 0; i < c->n_units; i++) {
        const struct unit *u = &c->units[i];
        struct codec_source s = {.x = x + u->offset,
                                 .x_hat = x_hat + u->offset,
                                 .n = u->n,
                                 .key = rng_at(draw, i)};
        struct compress_stat part = {0};
        size_t n_bytes = 1;
        dst[at] = UNIT_ZERO;
        if (u->n > 0) {
            int err = encode_unit(c, &s, dst + at, &n_bytes, &part);
            if (err != 0)
                return err;
        }
        total.x2 += part.x2;
        total.e2 += part.e2;
        at += n_bytes;
    }
    assert(at <= c->bound);
    *len = at;
    *stat = total;
    return 0;
}

/* Length of the unit's body in src[0..len), or 0 if it is not proper. */
static size_t check_body(const struct compress *c, const uint8_t *src,
                         size_t len, size_t n)
{
    if (n == 0)
        return 0; /* Only ever zero. */
    if (selects(c))
        return sparse_check(&c->chain, src, len, n);
    size_t size = dense_size(&c->spec.coder, n);
    if (len < size || !dense_check(&c->spec.coder, src, n))
        return 0;
    return size;
}

bool compress_validate(const struct compress *c, const uint8_t *src,
                       size_t len)
{
    if (len > c->bound)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < c->n_units; i++) {
        if (at == len || src[at] > UNIT_BODY)
            return false;
        if (src[at++] == UNIT_ZERO)
            continue;
        size_t body = check_body(c, src + at, len - at, c->units[i].n);
        if (body == 0)
            return false;
        at += body;
    }
    return at == len;
}

VEC_CLONES static void add(float *restrict y, const float *restrict v,
                           size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += v[i];
}

static size_t apply_dense(const struct codec_stage *coder, const uint8_t *src,
                          float *x_hat, size_t n)
{
    float v[CODEC_CHUNK];
    for (size_t at = 0, count; at < n; at += count) {
        count = dense_decode(coder, src, n, at, v);
        add(x_hat + at, v, count);
    }
    return dense_size(coder, n);
}

void compress_apply(const struct compress *c, const uint8_t *src, size_t len,
                    float *x_hat)
{
    size_t at = 0;
    for (size_t i = 0; i < c->n_units; i++) {
        const struct unit *u = &c->units[i];
        assert(at < len);
        if (src[at++] == UNIT_ZERO)
            continue;
        if (selects(c)) {
            at += sparse_apply(&c->chain, src + at, len - at,
                               x_hat + u->offset, u->n);
        } else {
            assert(dense_size(&c->spec.coder, u->n) <= len - at);
            at += apply_dense(&c->spec.coder, src + at, x_hat + u->offset,
                              u->n);
        }
    }
    assert(at == len);
}
