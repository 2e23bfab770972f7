/* compress/codecs/matrix.c -- matrices as two factors or as plain floats, for lowrank and atomo.
 *
 * The product C = P Q^T is computed tile by tile, and each tile is added to the replica at once. A
 * decoder therefore needs a buffer of 4 KiB and not of a whole matrix. Both ends run the same loop
 * in the same order, so C has the same bits everywhere.
 */
#include "compress/codecs/matrix.h"

#include "compress/coding/bytes.h"
#include "compress/dense.h"

#include "nn/math/vec.h"

/* Largest element that a received factor P may have. The columns of P are unit vectors, with
 * elements of at most 1. The excess over 1 allows for rounding. */
#define UNIT_MOST 1.001f

/* Bit pattern of the float infinity. NaN has larger bit patterns. */
enum { INFINITY_BITS = 0x7f800000 };

extern const struct codec codec_none;
static const struct codec_stage plain = {.codec = &codec_none};

/* The factors must take less than half the size of the matrix. The PowerSGD hook of PyTorch uses
 * the same rule with its default min_compression_rate = 2. */
bool matrix_pays(const struct codec_shape *shape, size_t r)
{
    return shape->n > 2 * r * (shape->rows + shape->cols);
}

/* ---- Matrices that are sent as plain floats ---- */

size_t matrix_plain_size(const struct codec_shape *shape)
{
    return dense_size(&plain, shape->n);
}

size_t matrix_plain_scratch(const struct codec_shape *shape)
{
    return 2 * dense_scratch(&plain, shape->n) * sizeof(float);
}

/* The codec `none` encodes the matrix as plain floats. `scratch` holds the two working buffers of
 * that codec. */
int matrix_plain_encode(const struct codec_source *s, void *scratch, uint8_t *dst, size_t *len,
                        struct compress_stat *stat)
{
    float *v = scratch;
    struct dense_scratch work = {v, v + dense_scratch(&plain, s->n)};
    int err = dense_encode(&plain, s, &work, dst, stat);
    *len = err == 0 && stat->x2 > 0.0 ? dense_size(&plain, s->n) : 0;
    return err;
}

size_t matrix_plain_check(const struct codec_shape *shape, const uint8_t *src, size_t len)
{
    size_t size = matrix_plain_size(shape);
    return len >= size && dense_check(&plain, src, shape->n) ? size : 0;
}

size_t matrix_plain_apply(const struct codec_shape *shape, const uint8_t *src, struct target *t)
{
    return dense_apply(&plain, src, t, shape->n);
}

/* ---- Matrices that are sent as factors P and Q ---- */

size_t matrix_size(const struct codec_shape *shape, size_t r)
{
    return 4 * r * (shape->rows + shape->cols);
}

size_t matrix_p_at(const struct codec_shape *shape, size_t k)
{
    return 4 * k * shape->rows;
}

/* In the encoded factors the columns of P come first, then the columns of Q. */
size_t matrix_q_at(const struct codec_shape *shape, size_t r, size_t k)
{
    return 4 * (r * shape->rows + k * shape->cols);
}

/* Rounding may produce a -0, which matrix_check() rejects. Adding 0 turns it into +0. */
VEC_CLONES void matrix_put(uint8_t *restrict dst, const double *restrict v, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        bytes_put_float(dst + 4 * i, (float)(v[i] * scale) + 0.0f);
}

/* Returns the bit pattern of the largest magnitude of the n floats at src, or UINT32_MAX if one of
 * them is -0. Infinity and NaN have larger bit patterns than all numbers. */
VEC_CLONES static uint32_t largest(const uint8_t *src, size_t n)
{
    uint32_t max = 0;
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bytes_get_u32(src + 4 * i);
        uint32_t size = bits & 0x7fffffffu;
        max = size > max ? size : max;
        bad |= bits == 0x80000000u;
    }
    return bad ? UINT32_MAX : max;
}

bool matrix_is_nothing(const struct codec_shape *shape, size_t r, const uint8_t *src)
{
    return largest(src + matrix_q_at(shape, r, 0), r * shape->cols) == 0;
}

/* Checks that no element of the decoded matrix C = P Q^T can reach the limit of codecs. Uses a
 * bound that costs much less than C: no element exceeds the sum of max |p| * max |q| over the r
 * columns, where p and q are the elements of a column of P and of Q. */
bool matrix_check(const struct codec_shape *shape, size_t r, const uint8_t *src)
{
    double most = 0.0;
    uint32_t any = 0;
    for (size_t k = 0; k < r; k++) {
        uint32_t p = largest(src + matrix_p_at(shape, k), shape->rows);
        uint32_t q = largest(src + matrix_q_at(shape, r, k), shape->cols);
        if (p > bytes_of_float(UNIT_MOST) || q >= INFINITY_BITS)
            return false;
        most += (double)bytes_to_float(p) * (double)bytes_to_float(q);
        any |= q;
    }
    /* The sum of r products is computed with rounding errors. The factor 1 - 2^-16 lowers the limit
     * by more than these errors. */
    return any != 0 && most < (double)CODEC_LIMIT * (1.0 - 0x1p-16);
}

/* Computes one tile of the decoded matrix C = P Q^T in v. Two columns of P and Q are processed at a
 * time, so that the tile is read and written half as often. The order of additions is the same as
 * for one column at a time. */
VEC_CLONES static void product(float *restrict v, const uint8_t *restrict src,
                               const struct codec_shape *shape, size_t r,
                               const struct matrix_tile *t)
{
    size_t n = t->cols;
    for (size_t i = 0; i < t->rows; i++, v += n) {
        const uint8_t *p = src + 4 * (t->row + i);
        const uint8_t *q = src + 4 * (r * shape->rows + t->col);
        size_t next_p = 4 * shape->rows, next_q = 4 * shape->cols;
        for (size_t j = 0; j < n; j++)
            v[j] = 0.0f;
        size_t k = 0;
        for (; k + 2 <= r; k += 2, p += 2 * next_p, q += 2 * next_q) {
            float a = bytes_get_float(p), b = bytes_get_float(p + next_p);
            for (size_t j = 0; j < n; j++)
                v[j] = (v[j] + a * bytes_get_float(q + 4 * j))
                       + b * bytes_get_float(q + next_q + 4 * j);
        }
        if (k < r) {
            float a = bytes_get_float(p);
            for (size_t j = 0; j < n; j++)
                v[j] += a * bytes_get_float(q + 4 * j);
        }
    }
}

void matrix_apply(const struct codec_shape *shape, size_t r, const uint8_t *src, struct target *t)
{
    float v[CODEC_CHUNK];
    for (size_t at = 0; at < shape->n;) {
        struct matrix_tile tile = matrix_tile_at(shape, at);
        product(v, src, shape, r, &tile);
        target_add(t, at, v, tile.n);
        at += tile.n;
    }
}

/* The decoded matrix C is computed by the same function as at the receiver, so the error includes
 * the receiver's rounding. */
double matrix_error2(const struct codec_shape *shape, size_t r, const uint8_t *src,
                     const struct codec_source *s)
{
    float v[CODEC_CHUNK], c[CODEC_CHUNK];
    double e2 = 0.0;
    for (size_t at = 0; at < shape->n;) {
        struct matrix_tile tile = matrix_tile_at(shape, at);
        matrix_load(v, s, at, tile.n);
        product(c, src, shape, r, &tile);
        e2 += vec_dist2(v, c, tile.n);
        at += tile.n;
    }
    return e2;
}

/* ---- Reading a matrix tile by tile ---- */

/* A tile consists of whole rows, because loops over a tile run along its rows. Only a row longer
 * than CODEC_CHUNK is cut. */
struct matrix_tile matrix_tile_at(const struct codec_shape *shape, size_t at)
{
    struct matrix_tile t = {
        .at = at, .row = at / shape->cols, .rows = 1, .col = at % shape->cols, .cols = shape->cols};
    if (shape->cols > CODEC_CHUNK) {
        size_t left = shape->cols - t.col;
        t.cols = left < CODEC_CHUNK ? left : CODEC_CHUNK;
    } else {
        size_t left = shape->rows - t.row, fit = CODEC_CHUNK / shape->cols;
        t.rows = left < fit ? left : fit;
    }
    t.n = t.rows * t.cols;
    return t;
}

uint32_t matrix_load(float *v, const struct codec_source *s, size_t at, size_t n)
{
    return codec_load(v, s->x + at, codec_x_hat(s, at), n);
}

VEC_CLONES void matrix_scale(float *v, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] *= scale;
}
