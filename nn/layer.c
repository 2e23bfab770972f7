#include "nn/layer.h"

#include <assert.h>
#include <string.h>

const struct layer_op *layer_op(enum layer_kind kind)
{
    switch (kind) {
    case LAYER_CONV:
        return &layer_conv;
    case LAYER_DENSE:
        return &layer_dense;
    case LAYER_MAXPOOL:
        return &layer_maxpool;
    case LAYER_FLATTEN:
        return &layer_flatten;
    }
    assert(false); /* Not a layer_kind. */
    return NULL;
}

/* "v < 0 ? 0 : v", not fmaxf: a NaN must reach the loss and be seen there. */
VEC_CLONES void layer_bias(float *v, size_t n, float bias, bool relu)
{
    if (relu)
        for (size_t i = 0; i < n; i++) {
            float y = v[i] + bias;
            v[i] = y < 0.0f ? 0.0f : y;
        }
    else
        for (size_t i = 0; i < n; i++)
            v[i] += bias;
}

VEC_CLONES void layer_relu_mask(float *restrict d, const float *restrict out,
                                size_t n)
{
    for (size_t i = 0; i < n; i++)
        d[i] = out[i] > 0.0f ? d[i] : 0.0f;
}

VEC_CLONES float layer_sum(const float *v, size_t n)
{
    double l[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            l[j] += (double)v[i + j];
    for (size_t j = 0; i < n; i++, j++)
        l[j] += (double)v[i];
    return (float)(((l[0] + l[4]) + (l[2] + l[6])) +
                   ((l[1] + l[5]) + (l[3] + l[7])));
}

/* --- flatten: maps [c][n][hw] <-> vectors [n][c][hw] --- */

static void no_params(const struct layer *l, size_t *rows, size_t *cols)
{
    (void)l;
    *rows = *cols = 0;
}

static size_t no_scratch(const struct layer *l, uint32_t n)
{
    (void)l;
    (void)n;
    return 0;
}

/* Swap the two outer axes of v[a][b][run] into out[b][a][run]. */
static void swap_axes(float *restrict out, const float *restrict v, size_t a,
                      size_t b, size_t run)
{
    for (size_t i = 0; i < a; i++)
        for (size_t j = 0; j < b; j++)
            memcpy(out + (j * a + i) * run, v + (i * b + j) * run,
                   run * sizeof *v);
}

static void flatten_forward(const struct layer *l, const struct layer_pass *p)
{
    assert(!l->relu);
    swap_axes(p->out, p->in, l->in.c, p->n, (size_t)l->in.h * l->in.w);
}

static void flatten_backward(const struct layer *l, const struct layer_pass *p)
{
    if (p->d_in != NULL)
        swap_axes(p->d_in, p->d_out, p->n, l->in.c, (size_t)l->in.h * l->in.w);
}

const struct layer_op layer_flatten = {
    .name = "flatten",
    .maps_in = true,
    .maps_out = false,
    .params = no_params,
    .scratch = no_scratch,
    .forward = flatten_forward,
    .backward = flatten_backward,
};

/* --- 2x2 max-pooling, stride 2, on even maps --- */

enum {
    POOL_RUN = 8 /* Outputs worked out at once. */
};

/* `n` outputs of a row; the two input rows begin at a and b. */
static inline void pool_run(float *restrict out, const float *restrict a,
                            const float *restrict b, size_t n, float floor)
{
    for (size_t j = 0; j < n; j++) {
        float top = a[2 * j] > a[2 * j + 1] ? a[2 * j] : a[2 * j + 1];
        float low = b[2 * j] > b[2 * j + 1] ? b[2 * j] : b[2 * j + 1];
        float m = top > low ? top : low;
        out[j] = m < floor ? floor : m;
    }
}

/* What the gradient of `n` outputs of a row is worked out from, and to. */
struct pool_back
{
    const float *a, *b, *out, *d_out;
    float *d_a, *d_b;
};

/* The gradient goes to the first of the four that is the maximum. */
static inline void pool_run_back(const struct pool_back *p, size_t at, size_t n)
{
    const float *restrict a = p->a + 2 * at, *restrict b = p->b + 2 * at;
    const float *restrict out = p->out + at, *restrict d_out = p->d_out + at;
    float *restrict d_a = p->d_a + 2 * at, *restrict d_b = p->d_b + 2 * at;
    for (size_t j = 0; j < n; j++) {
        float m = out[j], d = d_out[j];
        bool a0 = a[2 * j] == m;
        bool a1 = !a0 & (a[2 * j + 1] == m);
        bool b0 = !(a0 | a1) & (b[2 * j] == m);
        bool b1 = !(a0 | a1 | b0) & (b[2 * j + 1] == m);
        d_a[2 * j] = a0 ? d : 0.0f;
        d_a[2 * j + 1] = a1 ? d : 0.0f;
        d_b[2 * j] = b0 ? d : 0.0f;
        d_b[2 * j + 1] = b1 ? d : 0.0f;
    }
}

/* Rows are short (14, 5), so a tail done one by one would cost most. Where
 * there is a full run at all the last one overlaps the one before it, and
 * writes some values twice. */
VEC_CLONES static void pool_rows_forward(const struct layer *l, float *out,
                                         const float *in, size_t rows)
{
    size_t w = l->out.w;
    float floor = l->relu ? 0.0f : -__builtin_inff();
    for (size_t r = 0; r < rows; r++, out += w, in += 4 * w) {
        const float *b = in + 2 * w;
        if (w < POOL_RUN) {
            pool_run(out, in, b, w, floor);
            continue;
        }
        for (size_t j = 0; j + POOL_RUN <= w; j += POOL_RUN)
            pool_run(out + j, in + 2 * j, b + 2 * j, POOL_RUN, floor);
        size_t j = w - POOL_RUN;
        pool_run(out + j, in + 2 * j, b + 2 * j, POOL_RUN, floor);
    }
}

VEC_CLONES static void pool_rows_backward(const struct layer_pass *p, size_t w,
                                          size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        struct pool_back b = {p->in + r * 4 * w,   p->in + (r * 4 + 2) * w,
                              p->out + r * w,      p->d_out + r * w,
                              p->d_in + r * 4 * w, p->d_in + (r * 4 + 2) * w};
        if (w < POOL_RUN) {
            pool_run_back(&b, 0, w);
            continue;
        }
        for (size_t j = 0; j + POOL_RUN <= w; j += POOL_RUN)
            pool_run_back(&b, j, POOL_RUN);
        pool_run_back(&b, w - POOL_RUN, POOL_RUN);
    }
}

/* Heights are even, so pairs of rows never straddle two maps: the batch is one
 * long column of row pairs. */
static size_t pool_rows(const struct layer *l, uint32_t n)
{
    assert(l->in.h == 2 * l->out.h && l->in.w == 2 * l->out.w);
    return (size_t)l->out.c * n * l->out.h;
}

static void maxpool_forward(const struct layer *l, const struct layer_pass *p)
{
    pool_rows_forward(l, p->out, p->in, pool_rows(l, p->n));
}

static void maxpool_backward(const struct layer *l, const struct layer_pass *p)
{
    if (p->d_in == NULL)
        return;
    size_t w = l->out.w, rows = pool_rows(l, p->n);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, rows * w);
    pool_rows_backward(p, w, rows);
}

const struct layer_op layer_maxpool = {
    .name = "pool",
    .maps_in = true,
    .maps_out = true,
    .params = no_params,
    .scratch = no_scratch,
    .forward = maxpool_forward,
    .backward = maxpool_backward,
};
