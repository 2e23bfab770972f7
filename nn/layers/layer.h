/* nn/layers/layer.h -- one layer of a network, behind a table of operations.
 *
 * A layer has shapes and the positions of its parameters in the model's flat vector, but no state.
 * Each call gets its data in a struct layer_pass, for a batch of n samples. All data has one
 * layout:
 *
 *   [n][h][w][c]      channels innermost: a position has c consecutive floats
 *     images          h x w positions of c channels
 *     vectors         one position: h = w = 1
 *     sequences       h = time, w = 1; the token ids of a text are floats, c = 1
 *     sparse rows     not in this layout, but in layer_pass.rows
 *
 * A network is a graph: `from` and `with` are the layers whose outputs a layer reads. Both come
 * before it in the model's list. If several layers read one output, their gradients are added:
 * `add_in` and `add_with` say whether a layer overwrites the gradient or adds to it.
 *
 * Each array of floats is followed by LAYER_SLACK unused floats, which may be read and written.
 * Kernels may therefore process whole vectors beyond the end of an array.
 */
#ifndef NN_LAYERS_LAYER_H
#define NN_LAYERS_LAYER_H

#include "nn/math/vec.h"

#include <assert.h>

enum {
    LAYER_SLACK = 16, /* Number of unused floats after each array, for loops over whole vectors. */
    LAYER_PARAMS_MAX = 4,
    LAYER_VOCABULARY = 256, /* Number of token ids of LAYER_EMBED: one per byte value. */
    LAYER_INPUT = -1,       /* Value of layer.from if the layer reads the input of the model. */
    LAYER_NONE = -2         /* Value of layer.with if the layer has no second input. */
};

enum layer_kind {
    LAYER_DENSE,  /* Dense layer: out = in * weight^T + bias, at every position. */
    LAYER_SPARSE, /* Dense layer on sparse rows. Allowed only as the first layer of a model. */
    LAYER_CONV,   /* Convolution with a square kernel and zero padding. */
    /* Normalisation by batch, group or position. Then the second input `with` is added, and ReLU is
     * applied if `relu`. */
    LAYER_NORM,
    LAYER_MAXPOOL, /* 2x2 max-pooling with stride 2, for even h and w; then ReLU if `relu`. */
    LAYER_AVGPOOL, /* Average pooling over all positions. */
    LAYER_FLATTEN, /* Flatten: reorders [h][w][c] to PyTorch's order c, h, w. */
    /* Shortcut of a residual block that changes the shape: takes every second position, and sets
     * the new channels to zero. */
    LAYER_SHORTCUT,
    LAYER_ADD,       /* Adds two inputs: out = in + with. */
    LAYER_GELU,      /* GELU activation in its tanh form. */
    LAYER_EMBED,     /* Embedding: looks up token ids in a table, and adds position vectors. */
    LAYER_LSTM,      /* One LSTM layer over time, starting from a zero state. */
    LAYER_ATTENTION, /* Causal multi-head attention on concatenated q, k and v. */
    LAYER_KINDS
};

enum norm_kind { NORM_BATCH, NORM_GROUP, NORM_PLACE };

struct shape
{
    uint32_t c, h, w;
};

struct layer
{
    enum layer_kind kind;
    struct shape in, out;
    int from, with;
    /* LAYER_CONV only: side of the square kernel, stride, and number of zeros on each side of the
     * map. */
    uint32_t kernel, stride, pad;
    /* LAYER_NORM only: whether means are taken over the batch, a group of channels or a position
     * (nn/layers/norm.h). */
    enum norm_kind norm;
    /* NORM_GROUP: number of groups of channels. LAYER_ATTENTION: number of heads. */
    uint32_t groups;
    /* Index of an LSTM layer: 0, 1, ..., as in the parameter name "weight_ih_l0". */
    uint32_t depth;
    bool bias; /* True: the layer has a bias. Used by the kinds DENSE, SPARSE and CONV. */
    /* LAYER_EMBED only: the layer has a second table, indexed by time, whose rows are added. */
    bool positions;
    /* True: apply ReLU to the output. Used by the kinds DENSE, SPARSE, CONV, NORM and MAXPOOL. */
    bool relu;
    /* Position of each of the layer's parameters in the flat parameter vector. */
    size_t at[LAYER_PARAMS_MAX];
};

/* One parameter tensor of a layer. */
struct layer_param
{
    /* Last part of the parameter's name, such as "weight" or "bias_ih_l0". */
    const char *of;
    uint32_t n_dims, dims[4]; /* Shape of the tensor, in PyTorch's layout. */
    /* Flags that are copied to the segment of the tensor (struct segment, nn/math/vec.h). */
    bool decays, trained, nonnegative;
    /* Initial values are uniform in [value - bound, value + bound], as in PyTorch. */
    float bound;
    float value; /* Centre of the uniform distribution of the initial values. */
};

/* Sparse rows of a batch. The entries of row i have the indices start[i] to start[i + 1] - 1. */
struct sparse_rows
{
    /* Array of n + 1 indices, ascending. Row i has the entries start[i] to start[i + 1] - 1. */
    const size_t *start;
    /* Column of each entry. Columns ascend within a row and are below in.c, the number of
     * features. */
    const uint32_t *column;
    const float *value;
};

struct layer_pass
{
    uint32_t n; /* Number of samples in the batch. */
    /* True: a pass of training. Norm layers use the statistics of the batch, and layers store
     * values for the backward pass in `keep`. */
    bool training;
    const float *x; /* Parameters of the whole model, the flat vector. */
    /* Gradient of all parameters of the model. The layer overwrites the part of its own parameters.
     * For running statistics it writes (running - batch statistic) instead of a gradient. */
    float *grad;
    const float *in, *with;
    const struct sparse_rows *rows; /* Input of LAYER_SPARSE, which does not use `in`. */
    float *out;
    float *d_out; /* Gradient of the output. The layer may overwrite it. */
    /* Gradients of the two inputs `in` and `with`. NULL: the gradient is not needed. */
    float *d_in, *d_with;
    /* True: the layer adds the gradient to d_in or d_with. False: the layer overwrites d_in or
     * d_with. */
    bool add_in, add_with;
    /* Memory of op->keep() floats that the forward pass writes and the backward pass reads. NULL if
     * the pass is not part of training. */
    float *keep;
    /* Scratch memory of op->scratch() floats. Its content is lost after the call. */
    float *scratch;
};

struct layer_op
{
    const char *name;

    /* Writes the parameters of the layer in the order of layer.at[]. Returns their number. A NULL
     * function means that the layer has no parameters. */
    size_t (*params)(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX]);

    /* Return the number of floats that layer_pass.keep and layer_pass.scratch need for a batch of
     * n. Both numbers grow with n. A NULL function means 0 floats. */
    size_t (*keep)(const struct layer *l, uint32_t n);
    size_t (*scratch)(const struct layer *l, uint32_t n, bool training);

    /* Forward pass: computes `out` and `keep` from the inputs `in` and `with`. */
    void (*forward)(const struct layer *l, const struct layer_pass *p);

    /* Backward pass: computes `grad`, `d_in` and `d_with` from `d_out` and the values of the
     * forward pass. */
    void (*backward)(const struct layer *l, const struct layer_pass *p);

    /* Returns the multiply-adds in the matrix products of one sample's forward pass. Used by
     * benchmarks. */
    double (*products)(const struct layer *l);
};

extern const struct layer_op layer_dense, layer_sparse, layer_conv, layer_norm, layer_maxpool,
    layer_avgpool, layer_flatten, layer_shortcut, layer_add, layer_gelu, layer_embed, layer_lstm,
    layer_attention;

const struct layer_op *layer_op(enum layer_kind kind);

static inline size_t shape_places(struct shape s)
{
    return (size_t)s.h * s.w;
}

static inline size_t shape_size(struct shape s)
{
    return (size_t)s.c * s.h * s.w;
}

static inline size_t layer_lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Functions for the layers (nn/layers/layer.c). ReLU keeps NaN, so that NaN reaches the loss and is
 * detected there. */

/* Adds bias[cols] to each row of v[rows][cols], then applies ReLU if `relu`. A NULL bias adds
 * nothing. */
void layer_bias(float *v, const float *bias, size_t rows, size_t cols, bool relu);

/* Backward pass of ReLU: sets the gradient d[i] to 0 where the output out[i] of the ReLU is not
 * positive. */
void layer_relu_mask(float *restrict d, const float *restrict out, size_t n);

/* Sets sum[cols] to the column sums of v[rows][cols]. Up to 16 rows are summed in float, and the
 * results in double. The error is at most 2^-20 of the sum of |v|. */
void layer_column_sums(float *sum, const float *v, size_t rows, size_t cols);

/* Writes the transpose of from[rows][cols] to to[cols][rows]. */
void layer_transpose(float *restrict to, const float *restrict from, size_t rows, size_t cols);

/* Copies n floats from from[] to to[]. `add`: adds them to to[] instead. */
void layer_give(float *restrict to, const float *restrict from, size_t n, bool add);

#endif
