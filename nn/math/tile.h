/* nn/math/tile.h -- products of small or skinny matrices, without packing.
 *
 *   c (m x n) = a (m x k runs) * b (k runs x n)      or += where `add`
 *
 * OpenBLAS copies both factors into an order of its own before it multiplies:
 * for a convolution's products, with a side of 16 or 27, that copy is much of
 * the time. Here a tile of c is held in registers, a is read float by float
 * and b by whole vectors, each from where it lies:
 *
 *   c:   2 vectors of columns      for each k:  load 2 vectors of row k of b,
 *      [ . . . . | . . . . ]                    for each of the rows: spread
 *      [ . . . . | . . . . ]                    a(i, k) to all lanes,
 *        12 rows (AVX-512)                      2 multiply-adds
 *
 * Any two strides of a do, so that a transposed one is a matter of strides:
 *
 *   a(i, k) at a[i a_row + k a_col]
 *
 * and the inner dimension may go over `runs` runs of k, the next of them a_run
 * floats on (in b the rows just go on). A convolution is such a product with
 * overlapping rows: row i a place of the output, a run the kernel's row.
 *
 * Multiply-adds are fused where the CPU can (FMA): results differ between
 * kinds of CPU in the last bits, and are equal on one. Each element is the sum
 * over k ascending, whatever m and n are, from the bias on (where a_row is 1
 * and m small, that of even k plus that of odd k): error at most
 * k runs eps |a| |b|.
 */
#ifndef NN_MATH_TILE_H
#define NN_MATH_TILE_H

#include <stdbool.h>
#include <stddef.h>

struct tile_product
{
    size_t m, n, k; /* Any, also 0. */
    const float *a;
    size_t a_row, a_col;
    size_t runs, a_run; /* runs = 0 says 1. */
    const float *b;     /* (k runs) x n, rows of n floats, not run over. */
    size_t ldb;
    float *c; /* m x n, rows of n floats, not run over; overlaps
                          * neither a nor b. */
    size_t ldc;
    bool add;          /* False: c is written only. */
    const float *bias; /* n, added to each row; or NULL. */
    bool relu;         /* At the end. A NaN stays. */
};

void tile_product(const struct tile_product *t);

/* Computes the same with plain loops, with sums in double. */
void tile_product_ref(const struct tile_product *t);

/* One build of the kernels; tile_product() takes the first that runs here. */
struct tile_kernels
{
    size_t lanes; /* Floats of a vector: 16 (AVX-512), 8 (AVX2), 4. */
    bool (*runs_here)(void);
    void (*product)(const struct tile_product *t);
};

extern const struct tile_kernels *const tile_all[]; /* NULL at the end. */

/* The vectors that tile_product() works with here. */
size_t tile_lanes(void);

#endif
