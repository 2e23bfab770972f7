/* nn/layers/norm_columns.c -- batch and group normalisation in one implementation.
 *
 * A *span* is the set of samples over which the means of the channels (or of the groups of
 * channels) are taken: the whole batch (NORM_BATCH), or one sample (NORM_GROUP). A span is a matrix
 * of rows (positions) and c columns (channels). For small c a loop over one row would be too short.
 * Therefore `times` rows are treated as one row, a *period* of times * c floats:
 *
 *   [ c | c | c | ... ]   period: whole vectors, and at least LONG floats
 *   [ c | c | c | ... ]   block: as many periods as stay in the L1 cache
 *
 * The statistics and parameters of the channels are also repeated to the length of a period. Memory
 * bandwidth limits the speed, so each direction reads its data only twice:
 *
 *   forward    sums of x                          -> mean, variance
 *              (x - mean) scale + bias, + with, ReLU
 *   backward   sums of g and g (x - mean), where g is the gradient before the
 *              ReLU                               -> slope, level
 *              g scale - (x - mean) slope - level
 *
 * The second reading goes from the last block to the first, because the last blocks are still in
 * the cache. Without a residual `with`, the ReLU's mask is computed again from x, which avoids
 * reading the output. With a residual, the mask depends on `with`, too. The first reading then
 * takes the mask from the output, and writes g to d_with.
 */
#include "nn/layers/norm.h"

#include "nn/layers/norm_block.h"

#include <math.h>
#include <string.h>

enum {
    /* Smallest length of a period (several positions processed as one row), in floats. */
    LONG = 256,
    /* Length of a block in floats. If one period (several positions processed as one row) is
     * longer, the block is that period. */
    BLOCK = 4096
};

/* ---- Spans and periods, which the top of this file defines ---- */

struct span
{
    /* Number of spans in a batch. A span is the set of samples over which one mean is taken. */
    size_t n;
    size_t rows, c;
    /* times: number of rows (positions) that form one period, which is processed as one long row.
     * period: length of a period in floats, times * c. */
    size_t times, period;
    /* Length of a block in floats: the values that are processed before the next block is loaded. A
     * multiple of `period`. */
    size_t block;
};

static struct span span_of(const struct layer *l, uint32_t n)
{
    size_t places = shape_places(l->in), c = l->in.c, times = LAYER_NORM_WIDE;
    assert(l->norm == NORM_BATCH || (l->groups > 0 && c % l->groups == 0));
    while (times % 2 == 0 && times / 2 * c % LAYER_NORM_WIDE == 0)
        times /= 2;
    times *= (LONG + times * c - 1) / (times * c);
    size_t period = times * c;
    return (struct span){
        .n = l->norm == NORM_BATCH ? 1 : n,
        .rows = l->norm == NORM_BATCH ? n * places : places,
        .c = c,
        .times = times,
        .period = period,
        .block = period < BLOCK ? BLOCK / period * period : period,
    };
}

/* Arrays of values per channel. Each is repeated to the length of a period (several positions that
 * are processed as one row). */
struct periods
{
    float *mean, *scale, *bias, *slope, *level;
    /* Forward pass: sums of x - mean and of (x - mean)^2. Backward pass: sums of g and of g (x -
     * mean), where g is the gradient before the ReLU. */
    double *sum, *square;
    /* Arrays with one value per channel. own: mean, 1 / deviation and variance. Used in evaluation
     * only: in training, p->keep holds these values. d_weight, d_bias: gradients of weight and
     * bias, summed over the batch. */
    float *own;
    double *d_weight, *d_bias;
};

enum {
    /* Number of floats per column of a period: five arrays of floats and two arrays of doubles. */
    FLOATS_A_COLUMN = 5 + 2 * 2,
    /* Number of floats per channel, for own[3], d_weight and d_bias. */
    FLOATS_A_CHANNEL = 3 + 2 * 2
};

static struct periods periods_in(float *scratch, const struct span *s)
{
    assert((uintptr_t)scratch % sizeof(double) == 0);
    double *d = (double *)(void *)scratch;
    float *f = (float *)(d + 2 * (s->period + s->c));
    size_t n = s->period;
    return (struct periods){.sum = d,
                            .square = d + n,
                            .d_weight = d + 2 * n,
                            .d_bias = d + 2 * n + s->c,
                            .mean = f,
                            .scale = f + n,
                            .bias = f + 2 * n,
                            .slope = f + 3 * n,
                            .level = f + 4 * n,
                            .own = f + 5 * n};
}

/* Repeats the first c floats of v, one per channel, so that they fill a period. */
static void repeat(float *v, const struct span *s)
{
    for (size_t i = 1; i < s->times; i++)
        memcpy(v + i * s->c, v, s->c * sizeof *v);
}

/* Adds the values of each channel in one period, which holds the c channels of s->times positions.
 * Reads v[0..period) and writes the sums to v[0..c). */
static void fold(double *v, const struct span *s)
{
    for (size_t i = 1; i < s->times; i++)
        for (size_t j = 0; j < s->c; j++)
            v[j] += v[i * s->c + j];
}

/* ---- Statistics of one span: sums, means and variances ---- */

/* A span is the set of samples over which means are taken. Its sums are computed in three steps.
 * sums_begin() sets them to 0. layer_norm_add_sums() adds a block of values, once per block.
 * sums_end() adds the sums of the same channel in a period (several positions processed as one
 * row). */
static void sums_begin(const struct layer_norm_sums *s, const struct span *of)
{
    memset(s->first, 0, of->period * sizeof(double));
    memset(s->second, 0, of->period * sizeof(double));
}

static void sums_end(const struct layer_norm_sums *s, const struct span *of)
{
    fold(s->first, of);
    fold(s->second, of);
}

/* Sets t->mean to the mean of the first block. The statistics are computed around this mean. Around
 * 0, rounding would destroy the variance if the mean is much larger than the deviation. */
static void centre(const struct span *s, const struct periods *t, const float *x)
{
    size_t n = layer_lesser(s->block, s->rows * s->c);
    size_t rows = n / s->c;
    struct layer_norm_sums k = {.first = t->sum, .second = t->square, .x = x, .mean = t->mean};
    memset(t->mean, 0, s->period * sizeof(float));
    sums_begin(&k, s);
    layer_norm_add_sums(&k, n, s->period);
    sums_end(&k, s);
    for (size_t j = 0; j < s->c; j++)
        t->mean[j] = (float)(t->sum[j] / (double)rows);
    repeat(t->mean, s);
}

/* Computes own = {mean, 1 / deviation, variance} of a group of channels. The sums in `t` are sums
 * of differences x - t->mean. */
static void group_statistics(const struct periods *t, double rows, const size_t range[2],
                             float own[3])
{
    double total = 0, squares = 0, n = rows * (double)(range[1] - range[0]);
    for (size_t j = range[0]; j < range[1]; j++)
        total += t->sum[j] + rows * (double)t->mean[j];
    double mean = total / n;
    for (size_t j = range[0]; j < range[1]; j++) {
        double off = t->sum[j] / rows, d = (double)t->mean[j] + off - mean;
        squares += t->square[j] - rows * off * off + rows * d * d;
    }
    /* If `squares` is NaN, the comparison is false, so the variance becomes NaN and not 0. */
    double variance = squares < 0 ? 0 : squares / n;
    own[0] = (float)mean;
    own[1] = (float)(1 / sqrt(variance + LAYER_NORM_EPS));
    own[2] = (float)variance;
}

/* Computes own[3][c], which holds the mean, 1 / deviation and the variance of each channel of a
 * span. */
static void span_statistics(const struct layer *l, const struct span *s, const struct periods *t,
                            const float *x, float *own)
{
    size_t width = l->norm == NORM_BATCH ? 1 : s->c / l->groups;
    struct layer_norm_sums k = {.first = t->sum, .second = t->square, .mean = t->mean};
    centre(s, t, x);
    sums_begin(&k, s);
    for (size_t at = 0; at < s->rows * s->c; at += s->block) {
        k.x = x + at;
        layer_norm_add_sums(&k, layer_lesser(s->block, s->rows * s->c - at), s->period);
    }
    sums_end(&k, s);
    for (size_t j = 0; j < s->c; j += width) {
        float of[3];
        group_statistics(t, (double)s->rows, (size_t[2]){j, j + width}, of);
        for (size_t i = j; i < j + width; i++)
            for (size_t v = 0; v < 3; v++)
                own[v * s->c + i] = of[v];
    }
}

/* Computes mean and 1 / deviation from the running statistics, for batch norm in evaluation. Mixing
 * the running statistics of several peers can make a variance negative. A negative variance counts
 * as 0. */
static void running_statistics(const struct layer *l, const struct layer_pass *p, float *own)
{
    const float *mean = p->x + l->at[2], *variance = p->x + l->at[3];
    for (size_t j = 0; j < l->in.c; j++) {
        double v = variance[j] < 0.0f ? 0.0 : (double)variance[j];
        own[j] = mean[j];
        own[l->in.c + j] = (float)(1 / sqrt(v + LAYER_NORM_EPS));
    }
}

/* Fills the arrays mean, scale and bias of `t` from own[], the statistics of a span (the samples
 * over which means are taken), and from the model's parameters x. Repeats them to the length of a
 * period. */
static void fill_periods(const struct layer *l, const struct span *s, const struct periods *t,
                         const float *x, const float *own)
{
    for (size_t j = 0; j < s->c; j++) {
        t->mean[j] = own[j];
        t->scale[j] = x[l->at[0] + j] * own[s->c + j];
        t->bias[j] = x[l->at[1] + j];
    }
    repeat(t->mean, s);
    repeat(t->scale, s);
    repeat(t->bias, s);
}

/* --- forward pass --- */

static size_t columns_keep(const struct layer *l, uint32_t n)
{
    struct span s = span_of(l, n);
    return 3 * s.c * s.n;
}

static size_t columns_scratch(const struct layer *l, uint32_t n, bool training)
{
    struct span s = span_of(l, n);
    (void)training;
    return FLOATS_A_COLUMN * s.period + FLOATS_A_CHANNEL * s.c;
}

/* Writes the output of a span (the samples over which means are taken). The last block comes first,
 * because the last blocks are still in the cache. */
static void span_out(const struct layer *l, const struct layer_pass *p, const struct span *s,
                     const struct periods *t, size_t from)
{
    size_t n = s->rows * s->c, blocks = (n + s->block - 1) / s->block;
    struct layer_norm_line k = {.x = p->in + from,
                                .with = p->with == NULL ? NULL : p->with + from,
                                .out = p->out + from,
                                .mean = t->mean,
                                .scale = t->scale,
                                .bias = t->bias,
                                .relu = l->relu};
    for (size_t b = blocks; b-- > 0;) {
        size_t end = layer_lesser(n, (b + 1) * s->block);
        for (size_t at = b * s->block; at < end; at += s->period)
            layer_norm_line(&k, at, layer_lesser(s->period, end - at));
    }
}

static void columns_forward(const struct layer *l, const struct layer_pass *p)
{
    struct span s = span_of(l, p->n);
    struct periods t = periods_in(p->scratch, &s);
    for (size_t i = 0; i < s.n; i++) {
        size_t from = i * s.rows * s.c;
        float *own = p->keep != NULL ? p->keep + 3 * s.c * i : t.own;
        if (l->norm == NORM_BATCH && !p->training)
            running_statistics(l, p, own);
        else
            span_statistics(l, &s, &t, p->in + from, own);
        fill_periods(l, &s, &t, p->x, own);
        span_out(l, p, &s, &t, from);
    }
}

/* --- backward pass --- */

/* Backward pass of the ReLU and of adding a residual, for n floats from index `at` on. Writes
 * d_with, the gradient of the residual. Returns the address of the gradient before the ReLU, which
 * is in d_with if only this call writes there, and otherwise in d_out. */
static const float *split_residual(const struct layer *l, const struct layer_pass *p, size_t at,
                                   size_t n)
{
    float *d = p->d_out + at;
    float *d_with = p->d_with == NULL ? NULL : p->d_with + at;
    if (l->relu && d_with != NULL && !p->add_with) {
        layer_norm_mask(d_with, d, p->out + at, n);
        return d_with;
    }
    if (l->relu)
        layer_relu_mask(d, p->out + at, n);
    if (d_with != NULL)
        layer_give(d_with, d, n, p->add_with);
    return d;
}

/* Computes the coefficients of d_in = g scale - (x - mean) slope - level for the channels of a
 * group, from the sums of g and of g (x - mean), where g is the gradient of the output. P is the
 * mean of g weight over the group, Q the mean of g weight x_hat over the group, and x_hat the
 * normalised input:
 *
 *   d_in = (g weight - P - x_hat Q) / deviation */
static void group_coefficients(const struct layer *l, const struct layer_pass *p,
                               const struct periods *t, const float *own, const size_t range[2],
                               double rows)
{
    double g = 0, g_x = 0, inv = (double)own[l->in.c + range[0]];
    double n = rows * (double)(range[1] - range[0]);
    for (size_t j = range[0]; j < range[1]; j++) {
        double weight = (double)p->x[l->at[0] + j], x_hat = t->square[j] * inv;
        g += weight * t->sum[j];
        g_x += weight * x_hat;
        t->d_weight[j] += x_hat;
        t->d_bias[j] += t->sum[j];
    }
    for (size_t j = range[0]; j < range[1]; j++) {
        t->slope[j] = (float)(inv * inv * g_x / n);
        t->level[j] = (float)(inv * g / n);
    }
}

/* Computes the sums of g and of g (x - mean) over one span (the samples over which means are
 * taken). Returns the address of g, the gradient before the ReLU (see split_residual()). */
static const float *span_sums(const struct layer *l, const struct layer_pass *p,
                              const struct span *s, const struct periods *t, size_t from)
{
    size_t n = s->rows * s->c;
    struct layer_norm_sums k = {.first = t->sum,
                                .second = t->square,
                                .mean = t->mean,
                                .scale = t->scale,
                                .bias = t->bias,
                                .masked = l->relu && p->with == NULL};
    const float *g = p->d_out + from;
    sums_begin(&k, s);
    for (size_t b = 0; b < n; b += s->block) {
        size_t size = layer_lesser(s->block, n - b);
        k.x = p->in + from + b;
        k.g = p->d_out + from + b;
        if (p->with != NULL)
            k.g = split_residual(l, p, from + b, size);
        if (b == 0)
            g = k.g;
        layer_norm_add_sums(&k, size, s->period);
    }
    sums_end(&k, s);
    return g;
}

static void span_d_in(const struct layer *l, const struct layer_pass *p, const struct span *s,
                      const struct periods *t, const float *g, size_t from)
{
    size_t n = s->rows * s->c, blocks = (n + s->block - 1) / s->block;
    struct layer_norm_back k = {.x = p->in + from,
                                .g = g,
                                .d_in = p->d_in + from,
                                .mean = t->mean,
                                .scale = t->scale,
                                .bias = t->bias,
                                .slope = t->slope,
                                .level = t->level,
                                .masked = l->relu && p->with == NULL,
                                .add = p->add_in};
    for (size_t b = blocks; b-- > 0;) {
        size_t end = layer_lesser(n, (b + 1) * s->block);
        for (size_t at = b * s->block; at < end; at += s->period)
            layer_norm_back(&k, at, layer_lesser(s->period, end - at));
    }
}

/* Writes the "gradients" of the running statistics: their difference from the batch's statistics.
 * The running variance uses the unbiased variance of the batch, as in PyTorch. */
static void running_gradients(const struct layer *l, const struct layer_pass *p,
                              const struct span *s)
{
    const float *mean = p->keep, *variance = p->keep + 2 * s->c;
    double rows = (double)s->rows, unbiased = rows > 1 ? rows / (rows - 1) : 1;
    for (size_t j = 0; j < s->c; j++) {
        size_t m = l->at[2] + j, v = l->at[3] + j;
        p->grad[m] = p->x[m] - mean[j];
        p->grad[v] = (float)((double)p->x[v] - unbiased * (double)variance[j]);
    }
}

static void columns_backward(const struct layer *l, const struct layer_pass *p)
{
    struct span s = span_of(l, p->n);
    struct periods t = periods_in(p->scratch, &s);
    size_t width = l->norm == NORM_BATCH ? 1 : s.c / l->groups;
    memset(t.d_weight, 0, s.c * sizeof(double));
    memset(t.d_bias, 0, s.c * sizeof(double));
    for (size_t i = 0; i < s.n; i++) {
        const float *own = p->keep + 3 * s.c * i;
        size_t from = i * s.rows * s.c;
        fill_periods(l, &s, &t, p->x, own);
        const float *g = span_sums(l, p, &s, &t, from);
        for (size_t j = 0; j < s.c; j += width)
            group_coefficients(l, p, &t, own, (size_t[2]){j, j + width}, (double)s.rows);
        repeat(t.slope, &s);
        repeat(t.level, &s);
        if (p->d_in != NULL)
            span_d_in(l, p, &s, &t, g, from);
    }
    for (size_t j = 0; j < s.c; j++) {
        p->grad[l->at[0] + j] = (float)t.d_weight[j];
        p->grad[l->at[1] + j] = (float)t.d_bias[j];
    }
    if (l->norm == NORM_BATCH)
        running_gradients(l, p, &s);
}

const struct layer_op layer_norm_columns = {
    .name = "norm by columns",
    .keep = columns_keep,
    .scratch = columns_scratch,
    .forward = columns_forward,
    .backward = columns_backward,
};
