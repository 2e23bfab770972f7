/* nn/layers/norm_place.c -- layer norm: normalises each position over its channels (Ba, Kiros,
 * Hinton 2016). A row is the channels of one position; it stays in the L1 cache while it is
 * processed.
 *
 *   keep     mean and 1 / deviation of each position
 *   scratch  gradients of weight and bias: sums of SHORT rows in float, and of all
 *            rows in double
 */
#include "nn/layers/norm.h"

#include <math.h>
#include <string.h>

typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));

enum {
    LANES = 16,
    /* Number of rows that are summed in float at a time. The results are summed in double. */
    SHORT = 16
};

/* Returns the sum of the 16 floats of a vector, added in pairs. */
static inline float total(const floats *v)
{
    float f[LANES];
    memcpy(f, v, sizeof f);
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++)
            f[j] += f[j + width];
    return f[0];
}

/* --- forward pass --- */

/* Computes own = {mean, 1 / deviation} of a row in two passes, because the deviation needs the
 * mean. */
VEC_CLONES static void row_statistics(const float *v, size_t n, float own[2])
{
    floats s = {0}, q = {0};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        s += *(const floats *)(v + i);
    float sum = total(&s);
    for (size_t i = whole; i < n; i++)
        sum += v[i];
    float mean = sum / (float)n;
    for (size_t i = 0; i < whole; i += LANES) {
        floats d = *(const floats *)(v + i) - mean;
        q += d * d;
    }
    float squares = total(&q);
    for (size_t i = whole; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    own[0] = mean;
    own[1] = 1.0f / sqrtf(squares / (float)n + (float)LAYER_NORM_EPS);
}

/* Arguments of row_out() for one row of c channels. */
struct row
{
    /* with: row of the second input, added to the output, or NULL. */
    const float *in, *weight, *bias, *with;
    float *out;
    size_t c;
    float own[2];
    bool relu;
};

/* Computes the output of one row: normalises the row, adds `with` if it is not NULL, and applies
 * ReLU if `relu`. */
VEC_CLONES static void row_out(const struct row *k)
{
    const float *restrict in = k->in, *restrict weight = k->weight;
    const float *restrict bias = k->bias, *restrict with = k->with;
    float *restrict out = k->out;
    float mean = k->own[0], inv = k->own[1];
    for (size_t j = 0; j < k->c; j++)
        out[j] = (in[j] - mean) * inv * weight[j] + bias[j];
    if (with != NULL)
        for (size_t j = 0; j < k->c; j++)
            out[j] += with[j];
    if (k->relu)
        for (size_t j = 0; j < k->c; j++)
            out[j] = out[j] < 0.0f ? 0.0f : out[j];
}

/* Training and evaluation compute the same output, because layer norm normalises each position by
 * itself. The statistics are stored only for the backward pass. */
static void place_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t rows = p->n * shape_places(l->in), c = l->in.c;
    struct row k = {.weight = p->x + l->at[0], .bias = p->x + l->at[1], .c = c, .relu = l->relu};
    for (size_t r = 0; r < rows; r++) {
        k.in = p->in + r * c;
        k.with = p->with == NULL ? NULL : p->with + r * c;
        k.out = p->out + r * c;
        row_statistics(k.in, c, k.own);
        row_out(&k);
        if (p->keep != NULL)
            memcpy(p->keep + 2 * r, k.own, sizeof k.own);
    }
}

/* --- backward pass --- */

struct row_back
{
    /* in: input row. d: gradient of the row before the ReLU. */
    const float *in, *d, *weight;
    float *d_in; /* Gradient of the input row. NULL: not needed. */
    /* Gradients of weight and bias, to which the contribution of the row is added. */
    float *d_weight, *d_bias;
    size_t c;
    float own[2];
    bool add;
};

/* Computes means = {mean of g, mean of g x_hat} over a row, where g is d times weight and x_hat is
 * the normalised input. */
VEC_CLONES static void row_means(const struct row_back *k, float means[2])
{
    floats s = {0}, q = {0};
    size_t whole = k->c / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        floats g = *(const floats *)(k->d + i) * *(const floats *)(k->weight + i);
        s += g;
        q += g * (*(const floats *)(k->in + i) - k->own[0]);
    }
    float sum = total(&s), product = total(&q);
    for (size_t i = whole; i < k->c; i++) {
        float g = k->d[i] * k->weight[i];
        sum += g;
        product += g * (k->in[i] - k->own[0]);
    }
    means[0] = sum / (float)k->c;
    means[1] = product * k->own[1] / (float)k->c;
}

/* Computes d_in = (g - mean(g) - x_hat mean(g x_hat)) / deviation of one row, where g is d times
 * weight and x_hat is the normalised input. */
static inline __attribute__((always_inline)) void row_d_in(const struct row_back *k,
                                                           const float means[2], bool add)
{
    const float *restrict in = k->in, *restrict d = k->d;
    const float *restrict weight = k->weight;
    float *restrict d_in = k->d_in;
    float mean = k->own[0], inv = k->own[1];
    for (size_t j = 0; j < k->c; j++) {
        float x_hat = (in[j] - mean) * inv;
        float v = (d[j] * weight[j] - means[0] - x_hat * means[1]) * inv;
        d_in[j] = add ? d_in[j] + v : v;
    }
}

/* Adds the contribution of one row to the gradients of weight and bias. */
VEC_CLONES static void row_gradients(const struct row_back *k)
{
    const float *restrict in = k->in, *restrict d = k->d;
    float *restrict d_weight = k->d_weight, *restrict d_bias = k->d_bias;
    float mean = k->own[0], inv = k->own[1];
    for (size_t j = 0; j < k->c; j++) {
        d_weight[j] += d[j] * ((in[j] - mean) * inv);
        d_bias[j] += d[j];
    }
}

VEC_CLONES static void row_backward(const struct row_back *k, const float means[2])
{
    if (k->add)
        row_d_in(k, means, true);
    else
        row_d_in(k, means, false);
}

/* Computes d_in of `rows` rows (at most SHORT) from row `first` on. Adds the gradients of weight
 * and bias to v[0..c) and v[c..2c). */
static void rows_backward(const struct layer *l, const struct layer_pass *p, size_t first,
                          size_t rows, float *v)
{
    size_t c = l->in.c;
    struct row_back k = {
        .weight = p->x + l->at[0], .d_weight = v, .d_bias = v + c, .c = c, .add = p->add_in};
    for (size_t r = first; r < first + rows; r++) {
        float means[2];
        k.in = p->in + r * c;
        k.d = p->d_out + r * c;
        memcpy(k.own, p->keep + 2 * r, sizeof k.own);
        row_gradients(&k);
        if (p->d_in == NULL)
            continue;
        k.d_in = p->d_in + r * c;
        row_means(&k, means);
        row_backward(&k, means);
    }
}

static void place_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t rows = p->n * shape_places(l->in), c = l->in.c;
    assert((uintptr_t)p->scratch % sizeof(double) == 0);
    double *sums = (double *)(void *)p->scratch;
    float *some = (float *)(sums + 2 * c);
    memset(sums, 0, 2 * c * sizeof *sums);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, rows * c);
    if (p->d_with != NULL)
        layer_give(p->d_with, p->d_out, rows * c, p->add_with);
    for (size_t r = 0; r < rows; r += SHORT) {
        memset(some, 0, 2 * c * sizeof *some);
        rows_backward(l, p, r, rows - r < SHORT ? rows - r : SHORT, some);
        for (size_t j = 0; j < 2 * c; j++)
            sums[j] += (double)some[j];
    }
    for (size_t j = 0; j < c; j++) {
        p->grad[l->at[0] + j] = (float)sums[j];
        p->grad[l->at[1] + j] = (float)sums[c + j];
    }
}

static size_t place_keep(const struct layer *l, uint32_t n)
{
    return 2 * n * shape_places(l->in);
}

static size_t place_scratch(const struct layer *l, uint32_t n, bool training)
{
    (void)n;
    return training ? (2 * 2 + 2) * (size_t)l->in.c : 0;
}

const struct layer_op layer_norm_place = {
    .name = "norm by place",
    .keep = place_keep,
    .scratch = place_scratch,
    .forward = place_forward,
    .backward = place_backward,
};
