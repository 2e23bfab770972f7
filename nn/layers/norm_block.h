/* nn/layers/norm_block.h -- inner loops of batch and group norm (nn/layers/norm_columns.c). Several
 * positions are processed as one row, called a *period*. Values that are constant per column
 * (channel) are repeated to the length of a period. */
#ifndef NN_LAYERS_NORM_BLOCK_H
#define NN_LAYERS_NORM_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

enum {
    /* Number of columns that are processed together. A period (several positions that are processed
     * as one row) is a multiple of this number. */
    LAYER_NORM_WIDE = 32
};

/* Arguments of layer_norm_add_sums(), which sums each column of n floats and adds the sums to
 * first[] and second[]. In the forward pass these are sums of x - mean and of (x - mean)^2. In the
 * backward pass they are sums of g and of g (x - mean), where g is the gradient of the output. The
 * first float must be the first of a period (several positions processed as one row). Up to 16 rows
 * are summed in float, and the results in double. */
struct layer_norm_sums
{
    double *first, *second;
    const float *x, *g; /* g: gradient of the output; NULL in the forward pass. */
    const float *mean, *scale, *bias;
    /* True: the gradient counts as 0 where the output of the ReLU was 0. That output is computed
     * again from x. */
    bool masked;
};

void layer_norm_add_sums(const struct layer_norm_sums *s, size_t n, size_t period);

/* Arguments of layer_norm_line(), the forward formula: out = (x - mean) * scale + bias. `with` is
 * added if it is not NULL, and ReLU is applied if `relu`. One call processes n floats from index
 * `at` on, at most one period (several positions processed as one row). */
struct layer_norm_line
{
    const float *x, *with; /* with: second input, which is added. NULL: none. */
    float *out;
    const float *mean, *scale, *bias;
    bool relu;
};

void layer_norm_line(const struct layer_norm_line *k, size_t at, size_t n);

/* Arguments of layer_norm_back(), which computes the gradient of the input from the gradient g of
 * the output: d_in = g * scale - (x - mean) * slope - level. The caller computes the per-column
 * coefficients slope and level. With `add`, the result is added to d_in. One call processes n
 * floats from index `at` on, at most one period (several positions processed as one row). */
struct layer_norm_back
{
    const float *x, *g;
    float *d_in;
    const float *mean, *scale, *bias, *slope, *level;
    bool masked, add;
};

void layer_norm_back(const struct layer_norm_back *k, size_t at, size_t n);

/* Computes the gradient before a ReLU: g = d where the output of the ReLU is positive, else g =
 * 0. */
void layer_norm_mask(float *restrict g, const float *restrict d, const float *restrict out,
                     size_t n);

#endif
