/* nn/layers/lstm.c -- a layer of long short-term memory over time, as PyTorch's nn.LSTM
 * (Hochreiter, Schmidhuber 1997; gates as in Gers et al. 2000):
 *
 *   [i f g o] = weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh
 *   c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g)
 *   h_t = sigmoid(o) tanh(c_t)              h_(-1) = c_(-1) = 0
 *
 *   in   [n][T][i]        out  [n][T][H] = all h_t
 *   keep [T][n][4H] gates (after sigmoid, tanh), then [T][n][H] cells c_t
 *
 * Internal arrays are in the order [time][sample], so that the rows of one time step are
 * consecutive. The time steps are processed in chunks that fit in the cache. Products that do not
 * depend on the previous time step (products of the inputs, gradients of the weights) are computed
 * for a whole chunk at once. The product of each time step multiplies a few rows by weight_hh.
 * Therefore weight_hh is copied once per pass into panels of columns. (OpenBLAS would copy it again
 * at each time step.)
 */
#include "nn/layers/layer.h"

#include "nn/math/tile.h"
#include "nn/math/vec_math.h"

#include <string.h>

enum {
    /* Approximate number of rows (time steps times samples) in a chunk. A chunk has at least one
     * time step. */
    CHUNK = 256,
    /* Number of columns in a panel, which is a copy of some columns of weight_hh. Equals the width
     * of a tile (nn/math/tile.h). */
    PANEL = 32,
    DEPTHS = 8
};

/* Sizes of a forward or backward pass, and memory that all its time steps use. */
struct lstm
{
    /* Numbers of samples, time steps, input channels (i) and hidden channels (H). */
    size_t n, times, in, wide;
    size_t chunk; /* Number of time steps that are processed together as a chunk. */
    const float *weight_ih, *weight_hh;
    float *ih_t; /* Transpose of weight_ih, used in the forward pass only. */
    /* Copy of weight_hh, in panels (groups of columns). Forward pass: the transpose of weight_hh.
     * Backward pass: weight_hh itself. */
    float *panels;
    /* Forward pass: the sum of bias_ih and bias_hh. Backward pass: scratch memory for the gradient
     * of the biases. */
    float *bias;
    /* Backward pass. True: add to the gradient, because it already holds the gradient of another
     * chunk. */
    bool add_grad;
};

static struct lstm lstm_of(const struct layer *l, const struct layer_pass *p)
{
    size_t times = l->in.h, chunk = p->n < CHUNK ? CHUNK / p->n : 1;
    return (struct lstm){.n = p->n,
                         .times = times,
                         .in = l->in.c,
                         .wide = l->out.c,
                         .chunk = chunk < times ? chunk : times,
                         .weight_ih = p->x + l->at[0],
                         .weight_hh = p->x + l->at[1]};
}

static size_t lstm_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    static const char *const names[DEPTHS][LAYER_PARAMS_MAX] = {
#define OF(d) {"weight_ih_l" #d, "weight_hh_l" #d, "bias_ih_l" #d, "bias_hh_l" #d}
        OF(0), OF(1), OF(2), OF(3), OF(4),
        OF(5), OF(6), OF(7)
#undef OF
    };
    assert(l->depth < DEPTHS);
    for (size_t k = 0; k < LAYER_PARAMS_MAX; k++)
        p[k] = (struct layer_param){.of = names[l->depth][k],
                                    .n_dims = k < 2 ? 2 : 1,
                                    .dims = {4 * l->out.c},
                                    .decays = k < 2,
                                    .trained = true,
                                    .bound = 1.0f / sqrtf((float)l->out.c)};
    p[0].dims[1] = l->in.c;
    p[1].dims[1] = l->out.c;
    return LAYER_PARAMS_MAX;
}

static size_t lstm_keep(const struct layer *l, uint32_t n)
{
    return (size_t)n * l->in.h * 5 * l->out.c;
}

/* Returns the largest number of rows (time steps times samples) in a chunk, for a batch of n
 * samples. */
static size_t chunk_rows(const struct layer *l, size_t n)
{
    size_t most = n > CHUNK ? n : CHUNK, all = n * l->in.h;
    return most < all ? most : all;
}

/* Takes the first n floats of the free scratch memory: returns the old *rest, and advances *rest by
 * n floats. */
static float *cut_area(float **rest, size_t n)
{
    float *area = *rest;
    *rest += n;
    return area;
}

static size_t whole_panels(size_t cols)
{
    return (cols + PANEL - 1) / PANEL * PANEL;
}

/* Returns the size in floats of `panels`, the copy of weight_hh in panels of columns. The size is
 * enough for the forward and the backward pass. The backward pass needs more, because its panels
 * are padded to more columns. */
static size_t panels_size(size_t wide)
{
    return 4 * wide * whole_panels(wide);
}

/* Returns the number of floats of scratch memory that lstm_forward() needs, or with `training`
 * lstm_backward(). */
static size_t lstm_scratch(const struct layer *l, uint32_t n, bool training)
{
    size_t rows = chunk_rows(l, n), wide = l->out.c;
    size_t a_row = l->in.c + (training ? 5 : 4) * wide;
    return rows * a_row + 4 * n * wide + 4 * wide + panels_size(wide) + 4 * wide * l->in.c;
}

/* Copies the rows of `some` time steps, from time step `from` on, from v[n][times][w] to
 * [time][n][w]. */
static void gather(float *to, const float *v, const struct lstm *m, size_t w, size_t from,
                   size_t some)
{
    for (size_t t = from; t < from + some; t++)
        for (size_t s = 0; s < m->n; s++, to += w)
            memcpy(to, v + (s * m->times + t) * w, w * sizeof *to);
}

/* Copies h_(t-1) for each of `some` time steps t, from time step `from` on. Before the first time
 * step, h is 0. */
static void gather_before(float *to, const float *h, const struct lstm *m, size_t from, size_t some)
{
    if (from > 0) {
        gather(to, h, m, m->wide, from - 1, some);
        return;
    }
    memset(to, 0, m->n * m->wide * sizeof *to);
    gather(to + m->n * m->wide, h, m, m->wide, 0, some - 1);
}

/* Copies the columns of v[k][cols] to panels of PANEL columns, each [k][PANEL]. v may have any two
 * strides: floats from row to row and from column to column. */
static void cut_panels(float *to, const float *v, size_t k, size_t cols, const size_t strides[2])
{
    for (size_t from = 0; from < cols; from += PANEL, to += k * PANEL) {
        size_t n = cols - from < PANEL ? cols - from : PANEL;
        for (size_t r = 0; r < k; r++)
            for (size_t j = 0; j < n; j++)
                to[r * PANEL + j] = v[r * strides[0] + (from + j) * strides[1]];
    }
}

/* Computes c[n][cols] += a[n][k] * B, where the columns of B[k][cols] are stored in m->panels. */
static void panels_product(const struct lstm *m, const float *a, size_t k, float *c, size_t ldc,
                           size_t cols)
{
    for (size_t from = 0; from < cols; from += PANEL)
        tile_product(&(struct tile_product){.m = m->n,
                                            .n = cols - from < PANEL ? cols - from : PANEL,
                                            .k = k,
                                            .a = a,
                                            .a_row = k,
                                            .a_col = 1,
                                            .b = m->panels + from * k,
                                            .ldb = PANEL,
                                            .c = c + from,
                                            .ldc = ldc,
                                            .add = true});
}

/* Adds the bias to the weighted sums of one row, then applies sigmoid or tanh. The result is the
 * four gates. */
VEC_CLONES static void squash(float *restrict gates, const float *restrict bias, size_t wide)
{
    for (size_t j = 0; j < 2 * wide; j++)
        gates[j] = vec_sigmoid(gates[j] + bias[j]);
    for (size_t j = 2 * wide; j < 3 * wide; j++)
        gates[j] = vec_tanh(gates[j] + bias[j]);
    for (size_t j = 3 * wide; j < 4 * wide; j++)
        gates[j] = vec_sigmoid(gates[j] + bias[j]);
}

VEC_CLONES static void cell_forward(const float *restrict gates, const float *restrict c_before,
                                    float *restrict c, float *restrict h, size_t wide)
{
    const float *i = gates, *f = i + wide, *g = f + wide, *o = g + wide;
    for (size_t j = 0; j < wide; j++) {
        float cell = f[j] * c_before[j] + i[j] * g[j];
        c[j] = cell;
        h[j] = o[j] * vec_tanh(cell);
    }
}

/* Computes one time step. `gates` already holds the contribution of the inputs. h holds h_(t-1) on
 * entry and h_t on return. */
static void step_forward(const struct lstm *m, float *gates, const float *c_before, float *c,
                         float *h, float *out)
{
    size_t wide = m->wide, stride = m->times * wide;
    panels_product(m, h, wide, gates, 4 * wide, 4 * wide);
    for (size_t s = 0; s < m->n; s++, gates += 4 * wide, h += wide) {
        squash(gates, m->bias, wide);
        cell_forward(gates, c_before + s * wide, c + s * wide, h, wide);
        memcpy(out + s * stride, h, wide * sizeof *h);
    }
}

/* Computes the part of the gates that comes from the inputs, for all time steps of a chunk. */
static void inputs_forward(const struct lstm *m, const float *in, size_t rows, float *gates)
{
    tile_product(&(struct tile_product){.m = rows,
                                        .n = 4 * m->wide,
                                        .k = m->in,
                                        .a = in,
                                        .a_row = m->in,
                                        .a_col = 1,
                                        .b = m->ih_t,
                                        .ldb = 4 * m->wide,
                                        .c = gates,
                                        .ldc = 4 * m->wide});
}

/* Sets bias to the sum of bias_ih and bias_hh. */
static void add_biases(float *bias, const float *x, const struct layer *l)
{
    for (size_t j = 0; j < 4 * (size_t)l->out.c; j++)
        bias[j] = x[l->at[2] + j] + x[l->at[3] + j];
}

static void lstm_forward(const struct layer *l, const struct layer_pass *p)
{
    struct lstm m = lstm_of(l, p);
    size_t rows = m.chunk * m.n, a_time = m.n * m.wide;
    float *rest = p->scratch;
    float *in = cut_area(&rest, rows * m.in);
    m.bias = cut_area(&rest, 4 * m.wide);
    float *zero = cut_area(&rest, a_time), *h = cut_area(&rest, a_time);
    m.panels = cut_area(&rest, panels_size(m.wide));
    m.ih_t = cut_area(&rest, 4 * m.wide * m.in);
    layer_transpose(m.ih_t, m.weight_ih, 4 * m.wide, m.in);
    float *gates = p->training ? p->keep : cut_area(&rest, rows * 4 * m.wide);
    float *cells = p->training ? gates + 4 * m.times * a_time : cut_area(&rest, 2 * a_time);
    const float *c_before = zero;
    memset(zero, 0, a_time * sizeof *zero);
    memset(h, 0, a_time * sizeof *h);
    cut_panels(m.panels, m.weight_hh, m.wide, 4 * m.wide, (size_t[]){1, m.wide});
    add_biases(m.bias, p->x, l);
    for (size_t from = 0; from < m.times; from += m.chunk) {
        size_t left = m.times - from, some = left < m.chunk ? left : m.chunk;
        gather(in, p->in, &m, m.in, from, some);
        inputs_forward(&m, in, some * m.n, gates);
        for (size_t t = from; t < from + some; t++) {
            float *c = cells + (p->training ? t : t % 2) * a_time;
            step_forward(&m, gates + 4 * (t - from) * a_time, c_before, c, h, p->out + t * m.wide);
            c_before = c;
        }
        gates += p->training ? 4 * some * a_time : 0;
    }
}

/* Backpropagates through h = o tanh(c) for one row. Adds the gradient that reaches c through h to
 * d_c. Sets d_o to the gradient at the input of o's sigmoid. */
VEC_CLONES static void out_backward(const float *restrict o, const float *restrict c,
                                    const float *restrict d_h, float *restrict d_c,
                                    float *restrict d_o, size_t wide)
{
    for (size_t j = 0; j < wide; j++) {
        float y = vec_tanh(c[j]);
        d_o[j] = d_h[j] * y * o[j] * (1.0f - o[j]);
        d_c[j] += d_h[j] * o[j] * (1.0f - y * y);
    }
}

/* Backpropagates through the cell state c = f c_before + i g for one row. Sets d_gates to the
 * gradients at the inputs of the activations of the gates i, f and g. Replaces d_c by the
 * gradient of c_before. */
VEC_CLONES static void cell_backward(const float *restrict gates, const float *restrict c_before,
                                     float *restrict d_c, float *restrict d_gates, size_t wide)
{
    const float *i = gates, *f = i + wide, *g = f + wide;
    for (size_t j = 0; j < wide; j++)
        d_gates[j] = d_c[j] * g[j] * i[j] * (1.0f - i[j]);
    for (size_t j = 0; j < wide; j++)
        d_gates[wide + j] = d_c[j] * c_before[j] * f[j] * (1.0f - f[j]);
    for (size_t j = 0; j < wide; j++)
        d_gates[2 * wide + j] = d_c[j] * i[j] * (1.0f - g[j] * g[j]);
    for (size_t j = 0; j < wide; j++)
        d_c[j] *= f[j];
}

/* Computes time step t of the backward pass. d_out of time step t is already complete. The gradient
 * that flows from time step t to h_(t-1) is added to d_out of time step t - 1. */
static void step_backward(const struct lstm *m, const struct layer_pass *p, size_t t,
                          const float *c_before, float *d_c, float *d_gates)
{
    size_t wide = m->wide, stride = m->times * wide, a_time = m->n * wide;
    const float *gates = p->keep + 4 * t * a_time;
    const float *c = p->keep + (4 * m->times + t) * a_time;
    float *d_h = p->d_out + t * wide;
    for (size_t s = 0; s < m->n; s++) {
        const float *row = gates + s * 4 * wide;
        float *d_row = d_gates + s * 4 * wide;
        out_backward(row + 3 * wide, c + s * wide, d_h + s * stride, d_c + s * wide,
                     d_row + 3 * wide, wide);
        cell_backward(row, c_before + s * wide, d_c + s * wide, d_row, wide);
    }
    if (t > 0)
        panels_product(m, d_gates, 4 * wide, d_h - wide, stride, wide);
}

/* Computes d_weight = d_gates^T v for the rows v[rows][w] of a chunk. If m->add_grad, adds the
 * product to d_weight instead. */
static void weight_backward(const struct lstm *m, float *d_weight, const float *d_gates,
                            const float *v, size_t w, size_t rows)
{
    tile_product(&(struct tile_product){.m = 4 * m->wide,
                                        .n = w,
                                        .k = rows,
                                        .a = d_gates,
                                        .a_row = 1,
                                        .a_col = 4 * m->wide,
                                        .b = v,
                                        .ldb = w,
                                        .c = d_weight,
                                        .ldc = w,
                                        .add = m->add_grad});
}

/* Computes d_in, the gradient of the inputs, for `some` time steps from time step `from` on.
 * `area`: scratch memory for these gradients in the order [time][sample]. */
static void inputs_backward(const struct lstm *m, const struct layer_pass *p, const float *d_gates,
                            float *area, size_t from, size_t some)
{
    tile_product(&(struct tile_product){.m = some * m->n,
                                        .n = m->in,
                                        .k = 4 * m->wide,
                                        .a = d_gates,
                                        .a_row = 4 * m->wide,
                                        .a_col = 1,
                                        .b = m->weight_ih,
                                        .ldb = m->in,
                                        .c = area,
                                        .ldc = m->in});
    for (size_t t = from; t < from + some; t++)
        for (size_t s = 0; s < m->n; s++, area += m->in)
            layer_give(p->d_in + (s * m->times + t) * m->in, area, m->in, p->add_in);
}

/* Writes the gradient of the biases over a chunk of `rows` rows to grad, or adds it to grad if
 * m->add_grad. The sum over the chunk is rounded to float once. */
static void biases_backward(const struct lstm *m, float *grad, float *area, const float *d_gates,
                            size_t rows)
{
    size_t wide = 4 * m->wide;
    layer_column_sums(m->add_grad ? area : grad, d_gates, rows, wide);
    if (m->add_grad)
        vec_axpy(grad, 1.0f, area, wide);
}

static void lstm_backward(const struct layer *l, const struct layer_pass *p)
{
    struct lstm m = lstm_of(l, p);
    size_t rows = m.chunk * m.n, a_time = m.n * m.wide;
    float *rest = p->scratch;
    float *in = cut_area(&rest, rows * m.in), *h = cut_area(&rest, rows * m.wide);
    float *d_gates = cut_area(&rest, rows * 4 * m.wide);
    float *zero = cut_area(&rest, a_time), *d_c = cut_area(&rest, a_time);
    const float *cells = p->keep + 4 * m.times * a_time;
    m.bias = cut_area(&rest, 4 * m.wide);
    m.panels = cut_area(&rest, panels_size(m.wide));
    cut_panels(m.panels, m.weight_hh, 4 * m.wide, m.wide, (size_t[]){m.wide, 1});
    memset(zero, 0, a_time * sizeof *zero);
    memset(d_c, 0, a_time * sizeof *d_c);
    for (size_t end = m.times; end > 0;) {
        size_t from = (end - 1) / m.chunk * m.chunk, some = end - from;
        for (size_t t = end; t-- > from;)
            step_backward(&m, p, t, t > 0 ? cells + (t - 1) * a_time : zero, d_c,
                          d_gates + 4 * (t - from) * a_time);
        gather(in, p->in, &m, m.in, from, some);
        gather_before(h, p->out, &m, from, some);
        weight_backward(&m, p->grad + l->at[0], d_gates, in, m.in, some * m.n);
        weight_backward(&m, p->grad + l->at[1], d_gates, h, m.wide, some * m.n);
        biases_backward(&m, p->grad + l->at[2], m.bias, d_gates, some * m.n);
        if (p->d_in != NULL)
            inputs_backward(&m, p, d_gates, in, from, some);
        m.add_grad = true;
        end = from;
    }
    memcpy(p->grad + l->at[3], p->grad + l->at[2], 4 * m.wide * sizeof *p->grad);
}

static double lstm_products(const struct layer *l)
{
    return 4.0 * l->in.h * l->out.c * ((double)l->in.c + l->out.c);
}

const struct layer_op layer_lstm = {
    .name = "lstm",
    .params = lstm_params,
    .keep = lstm_keep,
    .scratch = lstm_scratch,
    .forward = lstm_forward,
    .backward = lstm_backward,
    .products = lstm_products,
};
