/* nn/layers/sparse.c -- a dense layer whose input is sparse rows. Only the first layer of a model
 * can have this kind.
 *
 *   out[row][o] = sum over the row's entries of value * weight[o][column]
 *
 * Each direction costs (number of entries) x (number of outputs). The backward pass also writes the
 * whole gradient once. The weight matrix has PyTorch's layout: a row for each output, as long as
 * the number of features, which can be a megabyte. Therefore the outer loop is over outputs, SOME
 * at a time. All samples are processed while the weights (or gradients) of these outputs are in the
 * cache.
 *
 * An output is the sum over a whole row, which may have many thousand entries, so it is summed in
 * double. The gradient of a weight has at most one term per sample of the batch. It is summed in
 * float in place, as in a dense layer, because doubles would need a table as large as the weights.
 */
#include "nn/layers/layer.h"

#include <string.h>

enum {
    SOME = 4 /* Number of outputs that are summed at once, each in its own variable. */
};

/* A batch, and the few outputs that are computed at once. */
struct part
{
    const struct sparse_rows *rows;
    uint32_t n;
    size_t i_n, o_n;
    /* Index of the first output that is computed, and number of these outputs, from 1 to SOME. */
    size_t o, some;
};

/* Multiplies one sparse row by the weights of `some` outputs (1 to SOME), and adds the products to
 * sum[] in double. */
static inline __attribute__((always_inline)) void row_products(const struct part *k,
                                                               const float *weight, size_t row,
                                                               double sum[SOME], size_t some)
{
    const struct sparse_rows *s = k->rows;
    for (size_t e = s->start[row]; e < s->start[row + 1]; e++) {
        const float *w = weight + s->column[e];
        double value = (double)s->value[e];
        for (size_t j = 0; j < some; j++)
            sum[j] += value * (double)w[j * k->i_n];
    }
}

static void part_forward(const struct part *k, const float *weight, float *out)
{
    for (size_t row = 0; row < k->n; row++) {
        double sum[SOME] = {0};
        if (k->some == SOME)
            row_products(k, weight, row, sum, SOME);
        else
            row_products(k, weight, row, sum, k->some);
        for (size_t j = 0; j < k->some; j++)
            out[row * k->o_n + k->o + j] = (float)sum[j];
    }
}

static inline __attribute__((always_inline)) void row_gradients(const struct part *k, float *grad,
                                                                size_t row, const float *d,
                                                                size_t some)
{
    const struct sparse_rows *s = k->rows;
    for (size_t e = s->start[row]; e < s->start[row + 1]; e++) {
        float *g = grad + s->column[e], value = s->value[e];
        for (size_t j = 0; j < some; j++)
            g[j * k->i_n] += value * d[j];
    }
}

static void part_backward(const struct part *k, const float *d_out, float *grad)
{
    memset(grad, 0, k->some * k->i_n * sizeof *grad);
    for (size_t row = 0; row < k->n; row++) {
        const float *d = d_out + row * k->o_n + k->o;
        if (k->some == SOME)
            row_gradients(k, grad, row, d, SOME);
        else
            row_gradients(k, grad, row, d, k->some);
    }
}

static struct part part_of(const struct layer *l, const struct layer_pass *p, size_t o)
{
    size_t left = l->out.c - o;
    return (struct part){p->rows, p->n, l->in.c, l->out.c, o, left < SOME ? left : SOME};
}

static size_t sparse_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    return layer_dense.params(l, p);
}

static void sparse_forward(const struct layer *l, const struct layer_pass *p)
{
    for (size_t o = 0; o < l->out.c; o += SOME) {
        struct part k = part_of(l, p, o);
        part_forward(&k, p->x + l->at[0] + o * l->in.c, p->out);
    }
    layer_bias(p->out, l->bias ? p->x + l->at[1] : NULL, p->n, l->out.c, l->relu);
}

static void sparse_backward(const struct layer *l, const struct layer_pass *p)
{
    assert(p->d_in == NULL);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, (size_t)p->n * l->out.c);
    if (l->bias)
        layer_column_sums(p->grad + l->at[1], p->d_out, p->n, l->out.c);
    for (size_t o = 0; o < l->out.c; o += SOME) {
        struct part k = part_of(l, p, o);
        part_backward(&k, p->d_out, p->grad + l->at[0] + o * l->in.c);
    }
}

const struct layer_op layer_sparse = {
    .name = "sparse",
    .params = sparse_params,
    .forward = sparse_forward,
    .backward = sparse_backward,
};
