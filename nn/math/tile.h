/* nn/math/tile.h -- products of small or skinny matrices, without packing.
 *
 *   c (m x n) = a (m x k*runs) * b (k*runs x n)      or += if `add`
 *
 * OpenBLAS copies both factors to a packed order before it multiplies. In the products of a
 * convolution, one side is often only 16 or 27, and the copy takes much of the time. This code
 * holds a tile of c in registers, for example 12 rows of 2 vectors with AVX-512. The code reads a
 * float by float and b by whole vectors, both without a copy:
 *
 *   for each k:
 *       load 2 vectors of row k of b
 *       for each row i of the tile: copy a(i, k) to all lanes of a vector, do 2 multiply-adds
 *
 * The strides of a are arbitrary, so a transposed matrix only needs other strides:
 *
 *   a(i, k) at a[i a_row + k a_col]
 *
 * The inner dimension consists of `runs` runs of k elements. In a, the next run starts a_run floats
 * further. In b, the rows of the next run follow without a gap. A convolution is such a product
 * with overlapping rows: a row of a is an output position, and a run is a row of the kernel.
 *
 * Multiply-adds are fused if the CPU supports it (FMA). Results are therefore equal on one CPU
 * type, and differ in the last bits between types. Each element is summed over ascending k,
 * starting with the bias, whatever m and n are. (If a_row is 1 and m is small, even and odd k have
 * separate sums.) The error is at most k * runs * eps * |a| |b|.
 */
#ifndef NN_MATH_TILE_H
#define NN_MATH_TILE_H

#include <stdbool.h>
#include <stddef.h>

struct tile_product
{
    /* Sizes of the product (see the formula at the top of this file). They may be 0. */
    size_t m, n, k;
    const float *a;
    size_t a_row, a_col;
    /* runs: number of runs (groups of k consecutive elements) of the inner dimension; 0 counts as
     * 1. a_run: floats from one run to the next in `a`. */
    size_t runs, a_run;
    /* Matrix with k * runs rows and n columns. Nothing beyond the n floats of a row is read. */
    const float *b;
    size_t ldb;
    /* Matrix m x n, which overlaps neither a nor b. Nothing beyond the n floats of a row is read or
     * written. */
    float *c;
    size_t ldc;
    bool add;          /* True: add the product to the old c. False: overwrite c. */
    const float *bias; /* Bias of the n columns, added to each row of c. NULL: no bias. */
    bool relu;         /* True: apply ReLU to the result. NaN is kept. */
};

void tile_product(const struct tile_product *t);

/* Computes the same as tile_product() with plain loops and sums in double. Reference for tests. */
void tile_product_ref(const struct tile_product *t);

/* Kernels for one vector width. tile_product() uses the first kernels in tile_all[] that this CPU
 * supports. */
struct tile_kernels
{
    size_t lanes; /* Number of floats in a vector: 16 (AVX-512), 8 (AVX2) or 4. */
    bool (*runs_here)(void);
    void (*product)(const struct tile_product *t);
};

/* The tile kernels for each vector width that was compiled, the widest first. NULL ends the
 * list. */
extern const struct tile_kernels *const tile_all[];

/* Returns the vector width, in floats, of the kernels that tile_product() uses on this CPU. */
size_t tile_lanes(void);

#endif
