/* compress/codecs/factors.h -- products of a matrix, and of its transpose, with a few columns.
 *
 *   P += M Q        P is m x r, M is m x n, Q is n x r
 *   Q' += M^T P     Q' is n x r
 *
 * M is read tile by tile (matrix.h). P, Q and Q' are stored column by column. Columns of length n
 * begin `stride` elements apart, a multiple of FACTORS_LANES, so that loops process whole
 * registers. Partial sums are floats: for P within the part of a row that is in a tile, for Q'
 * within FACTORS_PANEL rows. The sums of these partial sums are doubles. The order of additions is
 * fixed, so all machines get the same result.
 */
#ifndef COMPRESS_CODECS_FACTORS_H
#define COMPRESS_CODECS_FACTORS_H

#include "compress/codecs/matrix.h"

/* Number of elements that a loop processes in one step, and number of rows in a panel. A panel is a
 * group of rows that are processed together. */
enum { FACTORS_LANES = 16, FACTORS_PANEL = 8 };

/* Matrices of one step of power iteration, for a matrix M of m rows and n columns and for rank
 * r. */
struct factors
{
    size_t m, n, r;
    /* Distance in elements between the starts of two columns that have n elements:
     * factors_stride(n). */
    size_t stride;
    /* Factor Q with which the step begins. Elements n to stride - 1 of each column are zero. */
    float *q;
    double *p;      /* Factor P = M Q. Its columns begin m elements apart. */
    double *q_next; /* Factor Q' = M^T P. Elements n to stride - 1 of each column are undefined. */
};

/* Returns n rounded up to a multiple of FACTORS_LANES. */
static inline size_t factors_stride(size_t n)
{
    return (n + FACTORS_LANES - 1) / FACTORS_LANES * FACTORS_LANES;
}

/* Adds M Q, multiplied by the factor `back`, to the factor P, where M is the matrix to compress.
 * Uses only the elements of M in the tile `t`. v holds these elements, followed by at least
 * FACTORS_LANES finite numbers. */
void factors_add_p(const struct factors *w, const struct matrix_tile *t, const float *v,
                   double back);

/* Adds M^T P to the factor Q', where M is the matrix to compress. Uses only the elements of M in
 * the tile `t`. v holds these elements, followed by rows of zeros up to a multiple of
 * FACTORS_PANEL rows, and by FACTORS_LANES more numbers. P is given as 4 m r bytes of floats at
 * src, as in a message. */
void factors_add_q(const struct factors *w, const struct matrix_tile *t, const float *v,
                   const uint8_t *src);

#endif
