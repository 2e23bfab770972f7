/* nn/layers/winograd_transform.h -- the transforms of nn/layers/winograd.h, over vectors.
 *
 * A strip is a row of 2x2 output tiles of one sample. Behind a transform, each
 * tile is a row in each of 16 matrices (4x4 of them, row by row), whose
 * columns are channels:
 *
 *   maps [place][channels]                 matrix xi [tile][columns]
 *     in[0..3]  . . . . . .                  matrix + xi apart
 *     out[0,1]  . . . . . .                  columns <= channels: a slice
 */
#ifndef NN_LAYERS_WINOGRAD_TRANSFORM_H
#define NN_LAYERS_WINOGRAD_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    WINOGRAD_LANES = 16 /* Channels are processed in runs of this length. */
};

struct winograd_strip
{
    size_t w;           /* Number of positions in a row; even. */
    size_t channels;    /* Floats from one position to the next. */
    size_t columns;     /* Number of channels to process, from the pointers on. */
    size_t apart;       /* Floats from one matrix to the next. */
    float *matrix;      /* Row of the first tile in the first matrix. */
    const float *in[4]; /* Rows of the input map. */
    float *out[2];
    const float *bias; /* Or NULL. */
    bool add, relu;    /* add: add to the output; relu: then apply ReLU. */
};

struct winograd_kernels
{
    bool (*runs_here)(void);

    /* Transforms in[0..3], rows 2y - 1 to 2y + 2 of the map with zeros left and right, to V. */
    void (*strip_in)(const struct winograd_strip *s);

    /* M -> out[0..1]: rows 2y, 2y + 1. */
    void (*strip_out)(const struct winograd_strip *s);

    /* in[0..1], rows of a gradient by the output -> its matrices, with signs
     * as weights_out() expects them. */
    void (*strip_gradient)(const struct winograd_strip *s);

    /* Transforms the weights of 16 pairs of channels, g[9][16], to 16 matrices and back. */
    void (*weights_in)(float *u, size_t apart, const float *g);
    void (*weights_out)(float *g, const float *m, size_t apart);
};

/* All kernels, the best first. NULL ends the list. */
extern const struct winograd_kernels *const winograd_all[];

/* Returns the first kernels that this CPU supports. */
const struct winograd_kernels *winograd_kernels(void);

#endif
