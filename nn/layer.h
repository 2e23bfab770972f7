/* nn/layer.h -- one layer of a network, behind a table of operations.
 *
 * A layer knows its shapes and where its parameters lie in the model's flat
 * vector; it holds no state. What it works on is passed in as a struct
 * layer_pass, for a batch of n samples. Two layouts of a batch:
 *
 *   maps      [c][n][h][w]   feature maps, channel outermost: all columns of
 *                            a convolution's product lie side by side, so one
 *                            product serves several samples
 *   vectors   [n][features]  dense layers; features in PyTorch's c,h,w order
 *
 * LAYER_FLATTEN turns maps into vectors. With one channel the two coincide.
 *
 * Any layer may end in a ReLU (`relu`). ReLU and max-pooling commute, so a
 * network does it after pooling, on a quarter of the values.
 *
 * Reading may run up to LAYER_SLACK floats beyond the end of `in` (never used,
 * but the memory must be there).
 */
#ifndef NN_LAYER_H
#define NN_LAYER_H

#include "nn/vec.h"

enum {
    LAYER_SLACK = 16,             /* Floats. */
    LAYER_TILE_BYTES = 256 * 1024 /* Of im2col columns: fits in L2. */
};

enum layer_kind { LAYER_CONV, LAYER_DENSE, LAYER_MAXPOOL, LAYER_FLATTEN };

struct shape
{
    uint32_t c, h, w;
};

struct layer
{
    enum layer_kind kind;
    struct shape in, out;
    uint32_t kernel, pad; /* LAYER_CONV: square, stride 1, zeros around. */
    bool relu;
    size_t weight, bias;  /* Offsets in the flat vector, where it has them. */
};

struct layer_pass
{
    uint32_t n;     /* Samples. */
    const float *x; /* The model's flat vector. */
    float *grad;    /* Its gradient: the layer writes all of its own part. */
    const float *in;
    float *out;
    float *d_out;   /* Gradient by `out`; the layer may spoil it. */
    float *d_in;    /* Written in full; NULL where nobody needs it. */
    float *scratch; /* layer_op.scratch() floats. */
};

struct layer_op
{
    const char *name; /* Of its parameters: "conv" gives "conv1.weight". */
    bool maps_in, maps_out;

    /* Parameters: weights as rows x cols (0 x 0: none), bias of `rows`. */
    void (*params)(const struct layer *l, size_t *rows, size_t *cols);

    size_t (*scratch)(const struct layer *l, uint32_t n);

    /* in -> out */
    void (*forward)(const struct layer *l, const struct layer_pass *p);

    /* d_out -> grad, d_in, given in and out of the forward pass. */
    void (*backward)(const struct layer *l, const struct layer_pass *p);
};

extern const struct layer_op layer_conv, layer_dense, layer_maxpool,
    layer_flatten;

const struct layer_op *layer_op(enum layer_kind kind);

static inline size_t shape_size(struct shape s)
{
    return (size_t)s.c * s.h * s.w;
}

/* For the layers: v = max(v + bias, 0), or v + bias, for one channel's run;
 * NaN stays NaN. d = 0 wherever out is not positive. The sum of a run, eight
 * lanes in double. */
void layer_bias(float *v, size_t n, float bias, bool relu);
void layer_relu_mask(float *restrict d, const float *restrict out, size_t n);
float layer_sum(const float *v, size_t n);

#endif
