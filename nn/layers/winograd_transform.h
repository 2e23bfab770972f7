/* nn/layers/winograd_transform.h -- the transforms of nn/layers/winograd.h, over vectors.
 *
 * A strip is a row of 2x2 output tiles of one sample. A transform turns each tile into one row of
 * each of 16 matrices. Matrix xi belongs to element xi of the 4x4, row by row. The columns of a
 * matrix are channels:
 *
 *   maps         [position][channels]   rows in[0..3] are read, rows out[0..1] are written
 *   matrix xi    [tile][columns]        `columns` of the channels (a slice); the next matrix is
 *                                       `apart` floats further
 */
#ifndef NN_LAYERS_WINOGRAD_TRANSFORM_H
#define NN_LAYERS_WINOGRAD_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    WINOGRAD_LANES = 16 /* Number of channels that are processed together as a run. */
};

struct winograd_strip
{
    size_t w;        /* Number of positions in a row of the map, an even number. */
    size_t channels; /* Number of floats from one position of the map to the next. */
    /* Number of channels to process, starting at the pointers `matrix`, `in` and `out`. */
    size_t columns;
    size_t apart; /* Number of floats from one of the 16 matrices to the next. */
    /* Address of the row for the strip's first tile, in the first of the 16 matrices. */
    float *matrix;
    /* in: rows of the map to read, 4 rows of the inputs or 2 rows of the output's gradient. */
    const float *in[4];
    float *out[2];
    const float *bias; /* Bias of the channels to process. NULL: no bias. */
    bool add, relu;    /* add: add the old output to the result. relu: then apply ReLU. */
};

struct winograd_kernels
{
    bool (*runs_here)(void);

    /* Transforms the input rows in[0..3] to the matrices of V (nn/layers/winograd.h). The input
     * rows of strip y (the output rows 2y and 2y + 1) are rows 2y - 1 to 2y + 2 of the map.
     * Positions left and right of the map count as zeros. */
    void (*strip_in)(const struct winograd_strip *s);

    /* Transforms the products, the matrices of M (nn/layers/winograd.h), to the output rows
     * out[0..1]. The output rows of strip y are rows 2y and 2y + 1 of the map. */
    void (*strip_out)(const struct winograd_strip *s);

    /* Transforms in[0..1], two rows of the output's gradient dY, to A dY A^T: one row in each of
     * the 16 matrices. Some signs differ from the formula (nn/layers/winograd.h). weights_out()
     * corrects these signs. */
    void (*strip_gradient)(const struct winograd_strip *s);

    /* weights_in() transforms the 3x3 weights of 16 pairs of channels, g[9][16], to 16 matrices.
     * weights_out() transforms the gradient of these matrices back to g[9][16]. */
    void (*weights_in)(float *u, size_t apart, const float *g);
    void (*weights_out)(float *g, const float *m, size_t apart);
};

/* The Winograd transforms for each vector width that was compiled, the widest first. NULL ends the
 * list. */
extern const struct winograd_kernels *const winograd_all[];

/* Returns the first entry of winograd_all[] that this CPU supports, which has the widest
 * vectors. */
const struct winograd_kernels *winograd_kernels(void);

#endif
