/* nn/layers/layer.h -- one layer of a network, behind a table of operations.
 *
 * A layer knows its shapes and where its parameters lie in the model's flat
 * vector; it holds no state. What it works on is passed in as a struct
 * layer_pass, for a batch of n samples. One layout serves all:
 *
 *   [n][h][w][c]      channels innermost: a place is a run of c floats
 *     images          h x w places of c channels
 *     vectors         one place: h = w = 1
 *     sequences       h = time, w = 1; a text's token ids are floats, c = 1
 *     sparse rows     no floats at all, but layer_pass.rows
 *
 * A network is a graph: `from` and `with` say whose outputs a layer reads, all
 * of them before it in the model's list. Where a value is read by several
 * layers, their gradients add up: `add_in` and `add_with` say whether a layer
 * writes its part or adds it.
 *
 * Any run of floats is followed by LAYER_SLACK floats of its own that may be
 * read and written (never used), so that kernels may run over its end.
 */
#ifndef NN_LAYERS_LAYER_H
#define NN_LAYERS_LAYER_H

#include "nn/math/vec.h"

#include <assert.h>

enum {
    LAYER_SLACK = 16, /* Floats. */
    LAYER_PARAMS_MAX = 4,
    LAYER_VOCABULARY = 256, /* Number of token ids of LAYER_EMBED: one per byte value. */
    LAYER_INPUT = -1,       /* Value of `from` for the input of the model. */
    LAYER_NONE = -2         /* `with`: nothing. */
};

enum layer_kind {
    LAYER_DENSE,     /* out = in * weight^T + bias, at every position. */
    LAYER_SPARSE,    /* Dense layer on sparse rows. Only the first layer of a model. */
    LAYER_CONV,      /* Convolution with a square kernel and zero padding. */
    LAYER_NORM,      /* Normalises by batch, group or position, adds `with`, then applies ReLU. */
    LAYER_MAXPOOL,   /* 2x2 max-pooling with stride 2 of maps with even sides, then ReLU. */
    LAYER_AVGPOOL,   /* Mean over all positions. */
    LAYER_FLATTEN,   /* Reorders [h][w][c] to PyTorch's order c,h,w. */
    LAYER_SHORTCUT,  /* Takes every second position; new channels are zero. */
    LAYER_ADD,       /* in + with */
    LAYER_GELU,      /* tanh form */
    LAYER_EMBED,     /* Looks up token ids in a table, and adds position vectors. */
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
    uint32_t kernel, stride, pad; /* LAYER_CONV. */
    enum norm_kind norm;          /* LAYER_NORM. */
    /* Number of groups for NORM_GROUP; number of heads for LAYER_ATTENTION. */
    uint32_t groups;
    /* Index of an LSTM layer: 0, 1, ..., as in the parameter name "weight_ih_l0". */
    uint32_t depth;
    bool bias;      /* The layer has a bias. Used by DENSE, SPARSE and CONV. */
    bool positions; /* LAYER_EMBED has a second table, indexed by time. */
    /* Apply ReLU at the end. Used by DENSE, SPARSE, CONV and by kinds that mention it. */
    bool relu;
    size_t at[LAYER_PARAMS_MAX]; /* Index of each of the layer's parameters in the flat vector. */
};

/* One parameter tensor of a layer. */
struct layer_param
{
    /* Last part of the parameter's name: "weight", "bias_ih_l0". */
    const char *of;
    uint32_t n_dims, dims[4];          /* PyTorch's layout. */
    bool decays, trained, nonnegative; /* Properties of the segment (nn/math/vec.h). */
    /* Initial values are uniform in [-bound, bound], as in PyTorch. */
    float bound;
    float value; /* ... around this. */
};

/* Sparse rows of a batch. Row i has the entries start[i] to start[i + 1]. */
struct sparse_rows
{
    const size_t *start;    /* n + 1 */
    const uint32_t *column; /* Column of each entry, ascending within a row and below in.c. */
    const float *value;
};

struct layer_pass
{
    uint32_t n;     /* Samples. */
    bool training;  /* Use batch statistics, and store `keep` for the backward pass. */
    const float *x; /* Flat parameter vector of the model. */
    /* Gradient of the parameters. The layer writes all of its own part. For running statistics
     * the layer writes (running - batch). */
    float *grad;
    const float *in, *with;
    const struct sparse_rows *rows; /* Input of LAYER_SPARSE. */
    float *out;
    float *d_out;          /* Gradient of the output. The layer may overwrite it. */
    float *d_in, *d_with;  /* NULL: the gradient is not needed. */
    bool add_in, add_with; /* Add to d_in and d_with. false: overwrite them. */
    /* Memory of op->keep() floats from the forward to the backward pass. NULL if !training. */
    float *keep;
    float *scratch; /* Memory of op->scratch() floats, valid during the call. */
};

struct layer_op
{
    const char *name;

    /* Writes the parameters of the layer in the order of layer.at[]. Returns their number. NULL:
     * the layer has none. */
    size_t (*params)(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX]);

    /* Return the floats for a batch of n. NULL: none. Both grow with n. */
    size_t (*keep)(const struct layer *l, uint32_t n);
    size_t (*scratch)(const struct layer *l, uint32_t n, bool training);

    /* Computes out and keep from in and with. */
    void (*forward)(const struct layer *l, const struct layer_pass *p);

    /* Computes grad, d_in and d_with from d_out and the values of the forward pass. */
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

/* For the layers (nn/layers/layer.c). NaN stays NaN in a ReLU: it must reach the loss
 * and be seen there. */

/* Adds bias[cols] (NULL: nothing) to v[rows][cols], then applies ReLU if requested. */
void layer_bias(float *v, const float *bias, size_t rows, size_t cols, bool relu);

/* Sets d to 0 where out is not positive. */
void layer_relu_mask(float *restrict d, const float *restrict out, size_t n);

/* sum[cols] = the column sums of v[rows][cols]: 16 rows in float, these in
 * double; error at most 2^-20 of the sum of |v|. */
void layer_column_sums(float *sum, const float *v, size_t rows, size_t cols);

/* Writes the transpose of from[rows][cols] to to[cols][rows]. */
void layer_transpose(float *restrict to, const float *restrict from, size_t rows, size_t cols);

/* Copies from[] to to[], or adds it. */
void layer_give(float *restrict to, const float *restrict from, size_t n, bool add);

#endif
