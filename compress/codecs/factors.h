/* compress/codecs/factors.h -- a matrix times a few columns, and its transpose.
 *
 *   P += M Q        m x r from n x r
 *   Q' += M^T P     n x r from m x r
 *
 * M is read tile by tile (matrix.h). Columns stand one after the other; those
 * of n begin `stride` apart, a multiple of FACTORS_LANES, so that the loops run
 * over whole registers. Sums are of floats within a piece of a row (P) or
 * FACTORS_PANEL rows (Q'), in a fixed order, and of doubles beyond: the same on
 * every machine.
 */
#ifndef COMPRESS_CODECS_FACTORS_H
#define COMPRESS_CODECS_FACTORS_H

#include "compress/codecs/matrix.h"

enum { FACTORS_LANES = 16, FACTORS_PANEL = 8 };

struct factors
{
    size_t m, n, r;
    size_t stride;  /* factors_stride(n). */
    float *q;       /* Q; zeros from n to stride. */
    double *p;      /* P: m apart. */
    double *q_next; /* Q'; anything from n to stride. */
};

static inline size_t factors_stride(size_t n)
{
    return (n + FACTORS_LANES - 1) / FACTORS_LANES * FACTORS_LANES;
}

/* P += back * M Q for the tile v of M. Behind v stand FACTORS_LANES finite
 * numbers. */
void factors_add_p(const struct factors *w, const struct matrix_tile *t, const float *v,
                   double back);

/* Q' += M^T P for the tile v of M, with P as floats in src[0..4 m r). Behind v
 * stand rows of zeros up to a multiple of FACTORS_PANEL, and FACTORS_LANES numbers
 * more. */
void factors_add_q(const struct factors *w, const struct matrix_tile *t, const float *v,
                   const uint8_t *src);

#endif
