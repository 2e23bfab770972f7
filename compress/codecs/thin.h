/* compress/codecs/thin.h -- a matrix times a few columns, and its transpose.
 *
 *   P += M Q        m x r from n x r
 *   Q' += M^T P     n x r from m x r
 *
 * M is read tile by tile (matrix.h). Columns stand one after the other; those
 * of n begin `stride` apart, a multiple of THIN_LANES, so that the loops run
 * over whole registers. Sums are of floats within a piece of a row (P) or
 * THIN_PANEL rows (Q'), in a fixed order, and of doubles beyond: the same on
 * every machine.
 */
#ifndef COMPRESS_CODECS_THIN_H
#define COMPRESS_CODECS_THIN_H

#include "compress/codecs/matrix.h"

enum { THIN_LANES = 16, THIN_PANEL = 8 };

struct thin
{
    size_t m, n, r;
    size_t stride;  /* thin_stride(n). */
    float *q;       /* Q; zeros from n to stride. */
    double *p;      /* P: m apart. */
    double *q_next; /* Q'; anything from n to stride. */
};

static inline size_t thin_stride(size_t n)
{
    return (n + THIN_LANES - 1) / THIN_LANES * THIN_LANES;
}

/* P += back * M Q for the tile v of M. Behind v stand THIN_LANES finite
 * numbers. */
void thin_forward(const struct thin *w, const struct matrix_tile *t, const float *v, double back);

/* Q' += M^T P for the tile v of M, with P as floats in src[0..4 m r). Behind v
 * stand rows of zeros up to a multiple of THIN_PANEL, and THIN_LANES numbers
 * more. */
void thin_backward(const struct thin *w, const struct matrix_tile *t, const float *v,
                   const uint8_t *src);

#endif
