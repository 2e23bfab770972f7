/* compress/codecs/factors.h -- products of a matrix, and of its transpose, with a few columns.
 *
 *   P += M Q        P is m x r, M is m x n, Q is n x r
 *   Q' += M^T P     Q' is n x r
 *
 * M is read tile by tile (matrix.h). Columns are stored one after the other. Columns of length n
 * begin `stride` elements apart, a multiple of FACTORS_LANES, so that loops process whole
 * registers. Sums within a part of a row (P) or within FACTORS_PANEL rows (Q') are floats, and
 * sums over those are doubles. The order of additions is fixed, so all machines get the same
 * result.
 */
#ifndef COMPRESS_CODECS_FACTORS_H
#define COMPRESS_CODECS_FACTORS_H

#include "compress/codecs/matrix.h"

enum { FACTORS_LANES = 16, FACTORS_PANEL = 8 };

struct factors
{
    size_t m, n, r;
    size_t stride;  /* Distance between two columns of length n: factors_stride(n) elements. */
    float *q;       /* Matrix Q. Elements n to stride of each column are zero. */
    double *p;      /* Matrix P, columns m elements apart. */
    double *q_next; /* Matrix Q'. Elements n to stride of each column are undefined. */
};

static inline size_t factors_stride(size_t n)
{
    return (n + FACTORS_LANES - 1) / FACTORS_LANES * FACTORS_LANES;
}

/* Adds back * M Q to P for the tile v of M. v must be followed by FACTORS_LANES finite numbers. */
void factors_add_p(const struct factors *w, const struct matrix_tile *t, const float *v,
                   double back);

/* Adds M^T P to Q' for the tile v of M, where P is given as 4 m r bytes of floats at src. v must
 * be followed by rows of zeros up to a multiple of FACTORS_PANEL rows, and by FACTORS_LANES more
 * numbers. */
void factors_add_q(const struct factors *w, const struct matrix_tile *t, const float *v,
                   const uint8_t *src);

#endif
