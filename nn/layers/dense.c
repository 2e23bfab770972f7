/* nn/layers/dense.c -- the dense layer, at every position of its input:
 *
 *   out [positions][o] = in [positions][i] * weight^T + bias,   weight [o][i]
 *
 * The products use nn/math/tile.h: a batch is a matrix with few rows, for which OpenBLAS spends a
 * quarter of the time on packing the weights.
 */
#include "nn/layers/layer.h"

#include "nn/math/tile.h"

#include <math.h>

enum {
    /* Number of positions that the forward pass processes at once, so that their rows stay in the
     * L1 cache. */
    ROWS = 96,
    /* Number of positions that the backward pass processes at once, so that their rows stay in the
     * L2 cache. */
    BLOCK = 256
};

static size_t dense_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    float bound = (float)(1.0 / sqrt((double)l->in.c));
    p[0] = (struct layer_param){.of = "weight",
                                .n_dims = 2,
                                .dims = {l->out.c, l->in.c},
                                .decays = true,
                                .trained = true,
                                .bound = bound};
    p[1] = (struct layer_param){
        .of = "bias", .n_dims = 1, .dims = {l->out.c}, .trained = true, .bound = bound};
    return l->bias ? 2 : 1;
}

/* Returns true if the forward pass transposes the input, and false if it transposes the weights.
 * The smaller of the two matrices is transposed. */
static bool by_input(const struct layer *l, size_t places)
{
    return places < l->out.c;
}

/* Returns the number of floats of scratch memory for any batch of up to n samples. The memory is
 * large enough to transpose either the input or the weights, because the number of samples decides
 * which of the two is transposed (by_input()). */
static size_t dense_scratch(const struct layer *l, uint32_t n, bool training)
{
    size_t places = n * shape_places(l->in), i = l->in.c, o = l->out.c;
    /* A batch of fewer than n samples may transpose the input where a batch of n samples transposes
     * the weights. The scratch memory is large enough for both cases. */
    size_t most = places < o ? places : o;
    (void)training;
    return most * i + LAYER_SLACK + most * o;
}

static void forward_by_input(const struct layer *l, const struct layer_pass *p, size_t places)
{
    size_t i = l->in.c, o = l->out.c;
    float *in_t = p->scratch, *out_t = in_t + places * i + LAYER_SLACK;
    layer_transpose(in_t, p->in, places, i);
    tile_product(&(struct tile_product){.m = o,
                                        .n = places,
                                        .k = i,
                                        .a = p->x + l->at[0],
                                        .a_row = i,
                                        .a_col = 1,
                                        .b = in_t,
                                        .ldb = places,
                                        .c = out_t,
                                        .ldc = places});
    layer_transpose(p->out, out_t, o, places);
    layer_bias(p->out, l->bias ? p->x + l->at[1] : NULL, places, o, l->relu);
}

static void forward_by_weight(const struct layer *l, const struct layer_pass *p, size_t places)
{
    size_t i = l->in.c, o = l->out.c;
    layer_transpose(p->scratch, p->x + l->at[0], o, i);
    for (size_t at = 0; at < places; at += ROWS)
        tile_product(&(struct tile_product){.m = places - at < ROWS ? places - at : ROWS,
                                            .n = o,
                                            .k = i,
                                            .a = p->in + at * i,
                                            .a_row = i,
                                            .a_col = 1,
                                            .b = p->scratch,
                                            .ldb = o,
                                            .c = p->out + at * o,
                                            .ldc = o,
                                            .bias = l->bias ? p->x + l->at[1] : NULL,
                                            .relu = l->relu});
}

static void dense_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t places = p->n * shape_places(l->in);
    if (by_input(l, places))
        forward_by_input(l, p, places);
    else
        forward_by_weight(l, p, places);
}

/* Computes d_weight = d_out^T * in and d_in = d_out * weight for some positions. The first block of
 * positions overwrites d_weight, later blocks add to it. */
static void backward_block(const struct layer *l, const struct layer_pass *p, size_t at,
                           size_t places)
{
    size_t i = l->in.c, o = l->out.c;
    tile_product(&(struct tile_product){.m = o,
                                        .n = i,
                                        .k = places,
                                        .a = p->d_out + at * o,
                                        .a_row = 1,
                                        .a_col = o,
                                        .b = p->in + at * i,
                                        .ldb = i,
                                        .c = p->grad + l->at[0],
                                        .ldc = i,
                                        .add = at > 0});
    if (p->d_in == NULL)
        return;
    tile_product(&(struct tile_product){.m = places,
                                        .n = i,
                                        .k = o,
                                        .a = p->d_out + at * o,
                                        .a_row = o,
                                        .a_col = 1,
                                        .b = p->x + l->at[0],
                                        .ldb = i,
                                        .c = p->d_in + at * i,
                                        .ldc = i,
                                        .add = p->add_in});
}

static void dense_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t o = l->out.c, places = p->n * shape_places(l->in);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, places * o);
    if (l->bias)
        layer_column_sums(p->grad + l->at[1], p->d_out, places, o);
    for (size_t at = 0; at < places; at += BLOCK)
        backward_block(l, p, at, places - at < BLOCK ? places - at : BLOCK);
}

static double dense_products(const struct layer *l)
{
    return (double)shape_places(l->in) * l->in.c * l->out.c;
}

const struct layer_op layer_dense = {
    .name = "dense",
    .params = dense_params,
    .scratch = dense_scratch,
    .forward = dense_forward,
    .backward = dense_backward,
    .products = dense_products,
};
