/* compress/codecs/matrix.h -- a matrix sent as the product of two thin factors.
 *
 * What the codecs of matrices (lowrank, atomo) have in common. For a tensor of
 * m rows and n columns and r pairs of columns:
 *
 *   factors:  P, r columns of m f32 | Q, r columns of n f32      C = P Q^T
 *   plain:    v itself, m n f32                                  C = v
 *
 * Plain is what vectors and small tensors get: those where m n <= 2 r (m + n),
 * so that factors would not be half the size (the same rule as PyTorch's, with
 * its default). It keeps r below min(m, n) / 2.
 *
 * C is summed over the columns in order, each a product and an addition in
 * float: every holder of a replica gets the same bits. Columns of P are unit
 * vectors to a float's precision, or zero; Q carries the scale.
 */
#ifndef COMPRESS_CODECS_MATRIX_H
#define COMPRESS_CODECS_MATRIX_H

#include "compress/codec.h"

/* Are factors of rank r at most half the size of the matrix? */
bool matrix_pays(const struct codec_shape *shape, size_t r);

/* ---- plain ---- */

size_t matrix_plain_size(const struct codec_shape *shape);

/* Bytes of scratch that matrix_plain_encode() needs. */
size_t matrix_plain_scratch(const struct codec_shape *shape);

/* Write the values; nothing (*len 0) where all are zero. 0 or -ERANGE. */
int matrix_plain_encode(const struct codec_source *s, void *scratch, uint8_t *dst, size_t *len,
                        struct compress_stat *stat);

/* Length of the values in src[0..len), or 0 if they are not proper. */
size_t matrix_plain_check(const struct codec_shape *shape, const uint8_t *src, size_t len);
size_t matrix_plain_apply(const struct codec_shape *shape, const uint8_t *src, struct target *t);

/* ---- factors ---- */

/* Bytes of P and Q. */
size_t matrix_size(const struct codec_shape *shape, size_t r);

/* Where column k of each begins in them. */
size_t matrix_p_at(const struct codec_shape *shape, size_t k);
size_t matrix_q_at(const struct codec_shape *shape, size_t r, size_t k);

/* Write v[i] scale as floats, without -0, for i < n. */
void matrix_put(uint8_t *dst, const double *v, size_t n, double scale);

/* Is all of Q zero? */
bool matrix_is_nothing(const struct codec_shape *shape, size_t r, const uint8_t *src);

/* May the factors in src[0..matrix_size()) be applied, and is Q not all
 * zero? True means that every value of C is below CODEC_LIMIT. */
bool matrix_check(const struct codec_shape *shape, size_t r, const uint8_t *src);

void matrix_apply(const struct codec_shape *shape, size_t r, const uint8_t *src, struct target *t);

/* |v - C|^2, from C as it is decoded. */
double matrix_error2(const struct codec_shape *shape, size_t r, const uint8_t *src,
                     const struct codec_source *s);

/* ---- reading a matrix ---- */

/* Elements at..at+n of a matrix: whole rows if they fit in CODEC_CHUNK, else a
 * part of one row. */
struct matrix_tile
{
    size_t at, n;
    size_t row, rows, col, cols;
};

/* The tile that begins at an element: 0, or where the one before ended. */
struct matrix_tile matrix_tile_at(const struct codec_shape *shape, size_t at);

/* v = x - x_hat of elements at..at+n; returns as codec_load(). */
uint32_t matrix_load(float *v, const struct codec_source *s, size_t at, size_t n);

/* v[i] *= scale, which is a power of two. */
void matrix_scale(float *v, float scale, size_t n);

#endif
