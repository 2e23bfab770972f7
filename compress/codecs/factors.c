/* compress/codecs/factors.c -- the two matrix products of power iteration, M Q and M^T P.
 *
 * Several columns of Q or P are processed together, so that M is read from memory less often. The
 * number of columns is written as the constant 4, 2 or 1, so that the compiler keeps all sums in
 * registers.
 */
#include "compress/codecs/factors.h"

#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

#include <string.h>

enum {
    /* Largest number of columns that a loop processes together. The loop then reads the matrix M
     * once for all of them. */
    TOGETHER = 4
};

/* A vector of FACTORS_LANES floats, in one register or in several on machines with shorter
 * registers. With a plain array, the compiler would store and reload the sums in every step of a
 * loop. */
typedef float lanes __attribute__((vector_size(FACTORS_LANES * sizeof(float))));
typedef double wide __attribute__((vector_size(FACTORS_LANES * sizeof(double))));

/* ---- Product of matrix and factor, P = M Q ---- */

/* Returns the sum of the floats in a vector. They are added as doubles in a fixed order. */
static inline __attribute__((always_inline)) double sum_of(const lanes *v)
{
    double s[4] = {0};
    for (size_t i = 0; i < FACTORS_LANES; i += 4)
        for (size_t j = 0; j < 4; j++)
            s[j] += (double)(*v)[i + j];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* Returns how many columns to process together next, if `left` columns remain: 4, 2 or 1. */
static inline size_t together(size_t left)
{
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* Computes sum[k] = <v, column k of q> for the n elements of v, for k < count. Reads up to
 * FACTORS_LANES elements past the end of v and multiplies them by zeros of q, so these elements
 * must be finite. */
static inline __attribute__((always_inline)) void dots(double *restrict sum,
                                                       const float *restrict v,
                                                       const float *restrict q, size_t stride,
                                                       size_t n, const size_t count)
{
    lanes s[TOGETHER] = {{0}}, a, b;
    for (size_t j = 0; j < n; j += FACTORS_LANES) {
        memcpy(&a, v + j, sizeof a);
        for (size_t k = 0; k < count; k++) {
            memcpy(&b, q + k * stride + j, sizeof b);
            s[k] += a * b;
        }
    }
    for (size_t k = 0; k < count; k++)
        sum[k] = sum_of(&s[k]);
}

/* Computes P += M Q, where M is the matrix to compress and P and Q are its factors. M is processed
 * row by row, because each row of M gives one row of P. */
VEC_CLONES void factors_add_p(const struct factors *w, const struct matrix_tile *t, const float *v,
                              double back)
{
    for (size_t i = 0; i < t->rows; i++, v += t->cols) {
        double *p = w->p + t->row + i;
        for (size_t k = 0, count; k < w->r; k += count) {
            double sum[TOGETHER];
            const float *q = w->q + k * w->stride + t->col;
            count = together(w->r - k);
            if (count == 4)
                dots(sum, v, q, w->stride, t->cols, 4);
            else if (count == 2)
                dots(sum, v, q, w->stride, t->cols, 2);
            else
                dots(sum, v, q, w->stride, t->cols, 1);
            for (size_t c = 0; c < count; c++)
                p[(k + c) * w->m] += back * sum[c];
        }
    }
}

/* ---- Product of transposed matrix and factor, Q' = M^T P ---- */

/* Adds to column k of q the sum of p[k][i] * (row i of v) over the rows of a panel, for k < count.
 * A panel has only FACTORS_PANEL = 8 rows, so its sums can be floats. The sums over panels are
 * doubles. */
static inline __attribute__((always_inline)) void add_panel(double *restrict q, size_t stride,
                                                            const float *restrict v, size_t n,
                                                            float p[TOGETHER][FACTORS_PANEL],
                                                            const size_t count)
{
    for (size_t j = 0; j < n; j += FACTORS_LANES) {
        lanes s[TOGETHER] = {{0}}, a;
        wide sum;
        for (size_t i = 0; i < FACTORS_PANEL; i++) {
            memcpy(&a, v + i * n + j, sizeof a);
            for (size_t k = 0; k < count; k++)
                s[k] += p[k][i] * a;
        }
        for (size_t k = 0; k < count; k++) {
            memcpy(&sum, q + k * stride + j, sizeof sum);
            sum += __builtin_convertvector(s[k], wide);
            memcpy(q + k * stride + j, &sum, sizeof sum);
        }
    }
}

/* Reads a panel of P from the message at src: p[k][i] is row `row` + i of column `first` + k. Rows
 * past the end are zero. */
static void get_panel(float p[TOGETHER][FACTORS_PANEL], const struct factors *w, const uint8_t *src,
                      size_t row, size_t first, size_t count)
{
    size_t left = w->m - row;
    memset(p, 0, TOGETHER * sizeof p[0]);
    for (size_t k = 0; k < count; k++) {
        const uint8_t *column = src + 4 * ((first + k) * w->m + row);
        for (size_t i = 0; i < FACTORS_PANEL && i < left; i++)
            p[k][i] = bytes_get_float(column + 4 * i);
    }
}

VEC_CLONES void factors_add_q(const struct factors *w, const struct matrix_tile *t, const float *v,
                              const uint8_t *src)
{
    for (size_t i = 0; i < t->rows; i += FACTORS_PANEL, v += FACTORS_PANEL * t->cols)
        for (size_t k = 0, count; k < w->r; k += count) {
            float p[TOGETHER][FACTORS_PANEL];
            double *q = w->q_next + k * w->stride + t->col;
            count = together(w->r - k);
            get_panel(p, w, src, t->row + i, k, count);
            if (count == 4)
                add_panel(q, w->stride, v, t->cols, p, 4);
            else if (count == 2)
                add_panel(q, w->stride, v, t->cols, p, 2);
            else
                add_panel(q, w->stride, v, t->cols, p, 1);
        }
}
