/* tests/unit/compress_vectors.h -- test vectors of several kinds, and a compressor with its buffers
 * for tests. */
#ifndef TESTS_UNIT_COMPRESS_VECTORS_H
#define TESTS_UNIT_COMPRESS_VECTORS_H

#include "compress/compress.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum vector_kind {
    VECTOR_GAUSS,
    VECTOR_LAPLACE,
    VECTOR_HEAVY, /* sign(g) * g^4, where g is normally distributed. */
    VECTOR_ONE_HOT,
    VECTOR_CONSTANT,
    VECTOR_ALTERNATING,
    VECTOR_ZERO,
    VECTOR_HUGE_TINY,
    VECTOR_DENORMAL,
    VECTOR_TIES,
    /* Test vector that consists mostly of zeros, like gradients of weights with dead inputs. */
    VECTOR_SPARSE,
    VECTOR_KINDS
};

static inline float vector_element(enum vector_kind kind, struct rng *r, size_t i, size_t n)
{
    double g = rng_normal(r);
    double u = rng_unit(r);
    switch (kind) {
    case VECTOR_GAUSS:
        return (float)g;
    case VECTOR_LAPLACE:
        return (float)((g < 0 ? -1.0 : 1.0) * -log(1.0 - u));
    case VECTOR_HEAVY:
        return (float)((g < 0 ? -1.0 : 1.0) * g * g * g * g);
    case VECTOR_ONE_HOT:
        return i == n / 3 ? -2.5f : 0.0f;
    case VECTOR_CONSTANT:
        return -0.7f;
    case VECTOR_ALTERNATING:
        return i % 2 == 0 ? 1.25f : -1.25f;
    case VECTOR_ZERO:
        return i % 2 == 0 ? 0.0f : -0.0f;
    case VECTOR_HUGE_TINY:
        return i == n / 2 ? 1e18f : (float)g * 1e-12f;
    case VECTOR_DENORMAL:
        return (float)g * 0x1p-146f;
    case VECTOR_TIES:
        return (float)(1 + (int)(3 * u)) * (g < 0 ? -0.5f : 0.5f);
    case VECTOR_SPARSE:
        return u < 0.9 ? 0.0f : (float)g;
    case VECTOR_KINDS:
        break;
    }
    return NAN;
}

static inline void vector_fill(float *v, size_t n, enum vector_kind kind, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, (uint64_t)kind, n));
    for (size_t i = 0; i < n; i++)
        v[i] = vector_element(kind, &r, i, n);
}

enum {
#ifdef HEARSAY_SANITIZED
    /* Builds with sanitizers need no guard bytes: a sanitizer detects each access beyond a
     * block. */
    RIG_GUARD = 0,
#else
    RIG_GUARD = 64,
#endif
    RIG_FENCE = 0xa5
};

/* A compressor with buffers of exactly the promised sizes, each with guard bytes behind it. */
struct bench_rig
{
    struct compress *c;
    size_t n, len;
    uint8_t *bytes;
    float *out; /* Decoded vector C(v). */
    struct compress_stat stat;
};

static inline void *fenced(size_t n_bytes)
{
    uint8_t *p = malloc(n_bytes + RIG_GUARD + (n_bytes == 0));
    assert(p != NULL);
    memset(p + n_bytes, RIG_FENCE, RIG_GUARD);
    return p;
}

static inline bool fence_stands(const void *block, size_t n_bytes)
{
    const uint8_t *p = block;
    for (size_t i = 0; i != RIG_GUARD; i++)
        if (p[n_bytes + i] != RIG_FENCE)
            return false;
    return true;
}

static inline void rig_open_model(struct bench_rig *r, const char *spec, const struct segment *s,
                                  size_t n_segments)
{
    *r = (struct bench_rig){0};
    int err = compress_open(&r->c, spec, s, n_segments);
    assert(err == 0);
    for (size_t i = 0; i < n_segments; i++)
        r->n += s[i].n;
    r->bytes = fenced(compress_bound(r->c));
    r->out = fenced(r->n * sizeof *r->out);
}

static inline void rig_open(struct bench_rig *r, const char *spec, size_t n)
{
    struct segment all = {.n = n, .rows = 1, .cols = n};
    rig_open_model(r, spec, &all, 1);
}

static inline void rig_check_fences(const struct bench_rig *r)
{
    assert(fence_stands(r->bytes, compress_bound(r->c)));
    assert(fence_stands(r->out, r->n * sizeof *r->out));
}

static inline void rig_close(struct bench_rig *r)
{
    rig_check_fences(r);
    compress_close(r->c);
    free(r->bytes);
    free(r->out);
}

/* Encodes v with x_hat = 0, and decodes the message into r->out. Returns the result of
 * compress_encode(). */
static inline int rig_code(struct bench_rig *r, uint64_t draw, const float *v)
{
    for (size_t i = 0; i < r->n; i++)
        r->out[i] = 0.0f;
    struct compress_input in = {.draw = draw, .x = v, .x_hat = r->out};
    int err = compress_encode(r->c, &in, r->bytes, &r->len, &r->stat);
    if (err == 0) {
        assert(r->len <= compress_bound(r->c));
        assert(compress_validate(r->c, r->bytes, r->len));
        compress_apply(r->c, r->bytes, r->len, r->out);
    }
    return err;
}

/* Returns the measured contraction 1 - |v - C(v)|^2 / |v|^2 of one message. */
static inline double rig_delta(struct bench_rig *r, uint64_t draw, const float *v)
{
    int err = rig_code(r, draw, v);
    assert(err == 0);
    return 1.0 - vec_dist2(v, r->out, r->n) / vec_norm2(v, r->n);
}

enum {
    /* PIN_N: length of a vector. PIN_SEEDS: number of draws for a measured contraction. */
    PIN_N = 65536,
    PIN_SEEDS = 8
};

/* Returns the measured contraction of a compressor, averaged over PIN_SEEDS draws. */
static inline double rig_mean_delta(const char *spec, enum vector_kind kind)
{
    static float v[PIN_N];
    struct bench_rig r;
    double sum = 0.0;
    rig_open(&r, spec, PIN_N);
    for (uint64_t seed = 1; seed <= PIN_SEEDS; seed++) {
        vector_fill(v, PIN_N, kind, seed);
        sum += rig_delta(&r, seed, v);
    }
    rig_close(&r);
    return sum / PIN_SEEDS;
}

#endif
