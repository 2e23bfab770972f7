/* compress/codecs/matrix.h -- a matrix sent as the product of two thin factors.
 *
 * For a tensor of m rows and n columns, and rank r:
 *
 *   factors:  P, r columns of m f32 | Q, r columns of n f32      C = P Q^T
 *   plain:    v itself, m n f32                                  C = v
 *
 * Vectors and small tensors, with m n <= 2 r (m + n), are sent as plain floats, because factors
 * would take at least half the size (the default rule of PyTorch). Therefore r < min(m, n) / 2
 * whenever factors are used.
 *
 * C is summed over the r columns in order. Each step is one multiplication and one addition of
 * floats, so every peer that holds a replica gets the same bits. Each column of P is a unit vector
 * (except for rounding) or zero. The columns of Q contain the scale.
 */
#ifndef COMPRESS_CODECS_MATRIX_H
#define COMPRESS_CODECS_MATRIX_H

#include "compress/codec.h"

/* Returns true if factors of rank r take less than half the size of the matrix. */
bool matrix_pays(const struct codec_shape *shape, size_t r);

/* ---- Matrices that are sent as plain floats ---- */

/* Returns the number of bytes of the matrix as plain floats. */
size_t matrix_plain_size(const struct codec_shape *shape);

/* Returns the number of bytes of scratch memory that matrix_plain_encode() needs. */
size_t matrix_plain_scratch(const struct codec_shape *shape);

/* Encodes the difference as plain floats. *len becomes 0 if all elements are zero. Returns 0 or
 * -ERANGE. */
int matrix_plain_encode(const struct codec_source *s, void *scratch, uint8_t *dst, size_t *len,
                        struct compress_stat *stat);

/* Returns the number of bytes of the plain floats at the start of src[0..len), or 0 if they are not
 * valid. */
size_t matrix_plain_check(const struct codec_shape *shape, const uint8_t *src, size_t len);
/* Adds the plain floats at src to the replica. Returns their number of bytes. */
size_t matrix_plain_apply(const struct codec_shape *shape, const uint8_t *src, struct target *t);

/* ---- Matrices that are sent as factors P and Q ---- */

/* Returns the number of bytes of the factors P and Q together. */
size_t matrix_size(const struct codec_shape *shape, size_t r);

/* Offset in bytes of column k of P, or of column k of Q, in the encoded factors. */
size_t matrix_p_at(const struct codec_shape *shape, size_t k);
size_t matrix_q_at(const struct codec_shape *shape, size_t r, size_t k);

/* Writes v[0..n) times `scale` as floats. A -0 is written as +0. */
void matrix_put(uint8_t *dst, const double *v, size_t n, double scale);

/* Returns true if all elements of Q are zero, so that C is zero. */
bool matrix_is_nothing(const struct codec_shape *shape, size_t r, const uint8_t *src);

/* Returns true if the factors at src are valid and Q is not all zero. Every element of C is then
 * below CODEC_LIMIT in magnitude. */
bool matrix_check(const struct codec_shape *shape, size_t r, const uint8_t *src);

/* Decodes the factors at src and adds C = P Q^T to the replica. */
void matrix_apply(const struct codec_shape *shape, size_t r, const uint8_t *src, struct target *t);

/* Returns the squared error |v - C|^2, with C computed as the receiver computes it. */
double matrix_error2(const struct codec_shape *shape, size_t r, const uint8_t *src,
                     const struct codec_source *s);

/* ---- Reading a matrix tile by tile ---- */

/* A tile: elements [at, at + n) of a matrix. A tile has as many whole rows as fit into CODEC_CHUNK
 * elements. If a single row does not fit, a tile is a part of one row. */
struct matrix_tile
{
    size_t at, n;
    size_t row, rows, col, cols;
};

/* Returns the tile that begins at element `at`, which must be 0 or the end of the previous tile. */
struct matrix_tile matrix_tile_at(const struct codec_shape *shape, size_t at);

/* Writes elements [at, at + n) of the difference x - x_hat to v. Returns the bit pattern of the
 * largest magnitude, as codec_load() does. */
uint32_t matrix_load(float *v, const struct codec_source *s, size_t at, size_t n);

/* Multiplies v by `scale`, a power of two. */
void matrix_scale(float *v, float scale, size_t n);

#endif
