/* tests/unit/compress_matrices.h -- matrices with known singular values, for
 * the tests of lowrank and atomo. */
#ifndef TESTS_UNIT_COMPRESS_MATRICES_H
#define TESTS_UNIT_COMPRESS_MATRICES_H

#include "tests/unit/compress_vectors.h"

#include "compress/coding/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    SIDE_MAX = 64, /* Largest side of a matrix that is made from its singular values. */
    CELLS_MAX = SIDE_MAX * SIDE_MAX
};

/* Makes k orthonormal columns u[0..k) of n values each. */
static inline void orthonormal(double u[SIDE_MAX][SIDE_MAX], size_t n, size_t k, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, n, k));
    for (size_t i = 0; i < k; i++) {
        for (size_t a = 0; a < n; a++)
            u[i][a] = rng_normal(&r);
        for (size_t sweep = 0; sweep < 2; sweep++)
            for (size_t j = 0; j < i; j++) {
                double dot = 0.0;
                for (size_t a = 0; a < n; a++)
                    dot += u[i][a] * u[j][a];
                for (size_t a = 0; a < n; a++)
                    u[i][a] -= dot * u[j][a];
            }
        double norm = 0.0;
        for (size_t a = 0; a < n; a++)
            norm += u[i][a] * u[i][a];
        for (size_t a = 0; a < n; a++)
            u[i][a] /= sqrt(norm);
    }
}

/* A matrix M = sum of sigma[i] u[i] v[i]^T with known singular values. */
struct known
{
    size_t m, n, k;
    double sigma[SIDE_MAX];
    double u[SIDE_MAX][SIDE_MAX], v[SIDE_MAX][SIDE_MAX];
    float x[CELLS_MAX];
};

/* Computes the singular vectors u and v and the matrix x from the fields m, n, k and sigma. */
static inline void known_make(struct known *w, uint64_t seed)
{
    assert(w->m <= SIDE_MAX && w->n <= SIDE_MAX);
    orthonormal(w->u, w->m, w->k, seed);
    orthonormal(w->v, w->n, w->k, seed + 1);
    for (size_t a = 0; a < w->m; a++)
        for (size_t b = 0; b < w->n; b++) {
            double sum = 0.0;
            for (size_t i = 0; i < w->k; i++)
                sum += w->sigma[i] * w->u[i][a] * w->v[i][b];
            w->x[a * w->n + b] = (float)sum;
        }
}

/* Returns the coefficient of the singular triple i in x: u[i]^T x v[i]. */
static inline double known_part(const struct known *w, const float *x, size_t i)
{
    double sum = 0.0;
    for (size_t a = 0; a < w->m; a++)
        for (size_t b = 0; b < w->n; b++)
            sum += w->u[i][a] * (double)x[a * w->n + b] * w->v[i][b];
    return sum;
}

static inline void rig_open_matrix(struct bench_rig *r, const char *spec, size_t m, size_t n)
{
    struct segment s = {.n = m * n, .rows = m, .cols = n};
    rig_open_model(r, spec, &s, 1);
}

/* Asserts that the message is refused if the 32 bits at byte `at` are changed to `bits`. */
static inline void refuse_bits(struct bench_rig *r, size_t at, uint32_t bits)
{
    uint32_t keep = bytes_get_u32(r->bytes + at);
    assert_true(compress_validate(r->c, r->bytes, r->len));
    bytes_put_u32(r->bytes + at, bits);
    if (compress_validate(r->c, r->bytes, r->len))
        fail_msg("byte %zu: %08x passes", at, bits);
    bytes_put_u32(r->bytes + at, keep);
}

/* Every truncation of the message must be refused, and the message with one more byte, too. */
static inline void refuse_lengths(struct bench_rig *r)
{
    uint8_t *copy = malloc(r->len + 1);
    assert_non_null(copy);
    memcpy(copy, r->bytes, r->len);
    copy[r->len] = 0;
    assert_true(compress_validate(r->c, copy, r->len));
    assert_false(compress_validate(r->c, copy, r->len + 1));
    for (size_t cut = 0; cut < r->len; cut++)
        assert_false(compress_validate(r->c, copy, cut));
    free(copy);
}

static const size_t matrix_shapes[][2] = {{1, 1},   {1, 37},   {37, 1},    {2, 3},    {16, 400},
                                          {45, 45}, {500, 10}, {120, 256}, {7, 1100}, {3, 2500}};

enum { MATRIX_SHAPES = sizeof matrix_shapes / sizeof matrix_shapes[0], MATRIX_CELLS = 120 * 256 };

/* The error that a message states must be right, and at most as large as the vector. `plain`: the
 * codec sends the matrix as it is, because its factors would not be half as large. */
static inline void check_message(struct bench_rig *r, const float *v, bool plain, const char *what)
{
    double x2 = vec_norm2(v, r->n), e2 = vec_dist2(v, r->out, r->n);
    if (!(e2 <= x2 * (1.0 + 1e-5)))
        fail_msg("%s: leaves %g of %g", what, e2, x2);
    if (!(fabs(r->stat.x2 - x2) <= 1e-12 * x2))
        fail_msg("%s: x2 %.9g, exact %.9g", what, r->stat.x2, x2);
    if (!(fabs(r->stat.e2 - e2) <= 1e-5 * e2 + 1e-12 * x2))
        fail_msg("%s: e2 %.9g, exact %.9g of %.9g", what, r->stat.e2, e2, x2);
    if (plain && (e2 != 0.0 || r->len != (x2 > 0.0 ? 1 + 4 * r->n : 1)))
        fail_msg("%s: plain, but e2 %g in %zu bytes", what, e2, r->len);
}

#endif
