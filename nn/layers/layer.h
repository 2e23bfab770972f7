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
    LAYER_VOCABULARY = 256, /* Token ids of LAYER_EMBED: bytes. */
    LAYER_INPUT = -1,       /* `from`: the model's input. */
    LAYER_NONE = -2         /* `with`: nothing. */
};

enum layer_kind {
    LAYER_DENSE,     /* out = in * weight^T + bias, at every place */
    LAYER_SPARSE,    /* Dense layer on sparse rows. Only the first layer of a model. */
    LAYER_CONV,      /* square kernel, zeros around */
    LAYER_NORM,      /* Normalises by batch, group or position, adds `with`, then applies ReLU. */
    LAYER_MAXPOOL,   /* 2x2, stride 2, even maps; then ReLU */
    LAYER_AVGPOOL,   /* the mean over all places */
    LAYER_FLATTEN,   /* [h][w][c] to PyTorch's order c,h,w */
    LAYER_SHORTCUT,  /* every second place, zeros for new channels */
    LAYER_ADD,       /* in + with */
    LAYER_GELU,      /* tanh form */
    LAYER_EMBED,     /* token ids to rows of a table; + positions */
    LAYER_LSTM,      /* one layer over time, from zero state */
    LAYER_ATTENTION, /* causal, many heads, of q,k,v side by side */
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
    uint32_t groups;              /* NORM_GROUP; LAYER_ATTENTION: heads. */
    uint32_t depth;               /* LAYER_LSTM: 0, 1, ...: "weight_ih_l0". */
    bool bias;                    /* DENSE, SPARSE, CONV have one. */
    bool positions;               /* LAYER_EMBED: a second table, by time. */
    bool relu;                    /* At the end; where the kind says so, and
                                   * of DENSE, SPARSE and CONV. */
    size_t at[LAYER_PARAMS_MAX];  /* Index of each of the layer's parameters in the flat vector. */
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

/* Sparse rows of a batch: row i is entries start[i] to start[i + 1]. */
struct sparse_rows
{
    const size_t *start;    /* n + 1 */
    const uint32_t *column; /* Ascending in a row, each < in.c. */
    const float *value;
};

struct layer_pass
{
    uint32_t n;     /* Samples. */
    bool training;  /* Batch statistics; `keep` is there for backward. */
    const float *x; /* The model's flat vector. */
    /* Gradient of the parameters. The layer writes all of its own part. For running statistics
     * the layer writes (running - batch). */
    float *grad;
    const float *in, *with;
    const struct sparse_rows *rows; /* LAYER_SPARSE's input. */
    float *out;
    float *d_out;          /* Gradient by `out`; the layer may spoil it. */
    float *d_in, *d_with;  /* NULL: the gradient is not needed. */
    bool add_in, add_with; /* Add to d_in, d_with; else write all of it. */
    float *keep;           /* op->keep() floats, from forward to backward; NULL
                      * where !training. */
    float *scratch;        /* op->scratch() floats, of this call. */
};

struct layer_op
{
    const char *name;

    /* Writes the parameters of the layer in the order of layer.at[]. Returns their number. NULL:
     * the layer has none. */
    size_t (*params)(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX]);

    /* Floats of a batch of n; NULL: none. Both grow with n. */
    size_t (*keep)(const struct layer *l, uint32_t n);
    size_t (*scratch)(const struct layer *l, uint32_t n, bool training);

    /* in, with -> out, keep */
    void (*forward)(const struct layer *l, const struct layer_pass *p);

    /* d_out -> grad, d_in, d_with; in, with, out, keep as forward left them. */
    void (*backward)(const struct layer *l, const struct layer_pass *p);

    /* Multiply-adds of one sample's forward pass in products: for benches. */
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

/* v[rows][cols] += bias[cols] (NULL: nothing), then ReLU if asked. */
void layer_bias(float *v, const float *bias, size_t rows, size_t cols, bool relu);

/* d = 0 wherever out is not positive. */
void layer_relu_mask(float *restrict d, const float *restrict out, size_t n);

/* sum[cols] = the column sums of v[rows][cols]: 16 rows in float, these in
 * double; error at most 2^-20 of the sum of |v|. */
void layer_column_sums(float *sum, const float *v, size_t rows, size_t cols);

/* to [cols][rows] = the transpose of from [rows][cols]. */
void layer_transpose(float *restrict to, const float *restrict from, size_t rows, size_t cols);

/* to = from, or to += from. */
void layer_give(float *restrict to, const float *restrict from, size_t n, bool add);

#endif
