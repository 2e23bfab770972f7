/* nn/layers/norm_block.h -- inner loops of nn/layers/norm_columns.c over a part of a span, with
 * per-column constants repeated along the values. */
#ifndef NN_LAYERS_NORM_BLOCK_H
#define NN_LAYERS_NORM_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

enum {
    LAYER_NORM_WIDE = 32 /* A period is a multiple of it. */
};

/* Sums by column of n floats that begin with a period, a pair for each value,
 * added to first and second: of (x - mean) and its square; or where there is a
 * g, of g and g (x - mean). SHORT rows are summed in float, these in double. */
struct layer_norm_sums
{
    double *first, *second;
    const float *x, *g; /* g: NULL forward. */
    const float *mean, *scale, *bias;
    bool masked; /* g by the ReLU, worked out from x. */
};

void layer_norm_add_sums(const struct layer_norm_sums *s, size_t n, size_t period);

/* out = (x - mean) scale + bias, + with, ReLU: n floats from `at` on, of one
 * period at most. */
struct layer_norm_line
{
    const float *x, *with; /* with: may be NULL. */
    float *out;
    const float *mean, *scale, *bias;
    bool relu;
};

void layer_norm_line(const struct layer_norm_line *k, size_t at, size_t n);

/* d_in = g scale - (x - mean) slope - level, or += that; likewise. */
struct layer_norm_back
{
    const float *x, *g;
    float *d_in;
    const float *mean, *scale, *bias, *slope, *level;
    bool masked, add;
};

void layer_norm_back(const struct layer_norm_back *k, size_t at, size_t n);

/* g = d where the output is positive, else 0. */
void layer_norm_mask(float *restrict g, const float *restrict d, const float *restrict out,
                     size_t n);

#endif
