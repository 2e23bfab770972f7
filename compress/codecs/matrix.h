/* compress/codecs/matrix.h -- a matrix sent as the product of two thin factors.
 *
 * For a tensor of m rows and n columns, and rank r:
 *
 *   factors:  P, r columns of m f32 | Q, r columns of n f32      C = P Q^T
 *   plain:    v itself, m n f32                                  C = v
 *
 * Vectors and small tensors are sent as plain floats: those with m n <= 2 r (m + n), for which
 * factors would take more than half the size (the default rule of PyTorch). Therefore r < min(m,
 * n) / 2 whenever factors are used.
 *
 * C is summed over the columns in order, each step a multiplication and an addition of floats.
 * Every peer that holds a replica gets the same bits. The columns of P are unit vectors up to
 * rounding, or zero; Q contains the scale.
 */
#ifndef COMPRESS_CODECS_MATRIX_H
#define COMPRESS_CODECS_MATRIX_H

#include "compress/codec.h"

/* Returns true if factors of rank r take at most half the size of the matrix. */
bool matrix_pays(const struct codec_shape *shape, size_t r);

/* ---- Plain floats ---- */

size_t matrix_plain_size(const struct codec_shape *shape);

/* Returns the bytes of scratch that matrix_plain_encode() needs. */
size_t matrix_plain_scratch(const struct codec_shape *shape);

/* Writes the values as floats; *len is 0 if all are zero. Returns 0 or -ERANGE. */
int matrix_plain_encode(const struct codec_source *s, void *scratch, uint8_t *dst, size_t *len,
                        struct compress_stat *stat);

/* Returns the length of the values at src[0..len), or 0 if they are not valid. */
size_t matrix_plain_check(const struct codec_shape *shape, const uint8_t *src, size_t len);
size_t matrix_plain_apply(const struct codec_shape *shape, const uint8_t *src, struct target *t);

/* ---- Factors ---- */

/* Returns the number of bytes of P and Q together. */
size_t matrix_size(const struct codec_shape *shape, size_t r);

/* Byte offset of column k of P, and of column k of Q, in the encoded factors. */
size_t matrix_p_at(const struct codec_shape *shape, size_t k);
size_t matrix_q_at(const struct codec_shape *shape, size_t r, size_t k);

/* Writes v[i] * scale as floats without -0, for i < n. */
void matrix_put(uint8_t *dst, const double *v, size_t n, double scale);

/* Returns true if all elements of Q are zero. */
bool matrix_is_nothing(const struct codec_shape *shape, size_t r, const uint8_t *src);

/* Returns true if the factors at src are valid and Q is not all zero. Every element of C is then
 * below CODEC_LIMIT. */
bool matrix_check(const struct codec_shape *shape, size_t r, const uint8_t *src);

void matrix_apply(const struct codec_shape *shape, size_t r, const uint8_t *src, struct target *t);

/* Returns |v - C|^2, computed with C as the receiver decodes it. */
double matrix_error2(const struct codec_shape *shape, size_t r, const uint8_t *src,
                     const struct codec_source *s);

/* ---- Reading a matrix ---- */

/* Elements [at, at + n) of a matrix: whole rows if a row fits in CODEC_CHUNK elements, otherwise
 * a part of one row. */
struct matrix_tile
{
    size_t at, n;
    size_t row, rows, col, cols;
};

/* Returns the tile that begins at element `at`, which is 0 or the end of the previous tile. */
struct matrix_tile matrix_tile_at(const struct codec_shape *shape, size_t at);

/* Computes v = x - x_hat for elements [at, at + n). Returns the same as codec_load(). */
uint32_t matrix_load(float *v, const struct codec_source *s, size_t at, size_t n);

/* Multiplies v by `scale`, a power of two. */
void matrix_scale(float *v, float scale, size_t n);

#endif
