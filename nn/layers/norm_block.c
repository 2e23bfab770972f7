/* nn/layers/norm_block.c -- the inner loops of batch and group norm: sums over a block, the forward
 * formula (x - mean) scale + bias, and the backward formula g scale - (x - mean) slope - level,
 * where g is the gradient of the output. */
#include "nn/layers/norm_block.h"

#include "nn/math/vec.h"

#include <string.h>

typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(64), aligned(4), may_alias));

enum {
    LANES = 16,
    /* Number of columns that are summed at once, with all sums in registers. */
    WIDE = LAYER_NORM_WIDE,
    /* Number of rows that are summed in float at a time. The results are summed in double. */
    SHORT = 16
};

/* For one vector of floats, computes to[0] = x - mean and to[1] = (x - mean)^2. */
static inline void pair_forward(const struct layer_norm_sums *s, size_t at, size_t j, floats to[2])
{
    floats x = *(const floats *)(s->x + at) - *(const floats *)(s->mean + j);
    to[0] = x;
    to[1] = x * x;
}

/* For one vector of floats, computes to[0] = g and to[1] = g (x - mean), where g is the gradient
 * of the output. */
static inline void pair_backward(const struct layer_norm_sums *s, size_t at, size_t j, floats to[2])
{
    floats x = *(const floats *)(s->x + at) - *(const floats *)(s->mean + j);
    floats g = *(const floats *)(s->g + at);
    if (s->masked) {
        floats y = x * *(const floats *)(s->scale + j) + *(const floats *)(s->bias + j);
        g = (floats)((bits)g & (bits)(y > 0.0f));
    }
    to[0] = g;
    to[1] = g * x;
}

/* Adds WIDE sums, given as floats, to the sums in double. */
static inline void add_lanes(double *restrict to, const floats *from)
{
    float f[WIDE];
    memcpy(f, from, sizeof f);
    for (size_t i = 0; i < WIDE; i++)
        to[i] += (double)f[i];
}

/* Adds the sums of WIDE columns, from column j on, over `rows` rows. A row is a period: several
 * positions that are processed as one row. */
static inline __attribute__((always_inline)) void sum_columns(const struct layer_norm_sums *s,
                                                              size_t j, size_t rows, size_t period,
                                                              bool backward)
{
    for (size_t r = 0; r < rows; r += SHORT) {
        floats first[2] = {0}, second[2] = {0};
        size_t end = r + SHORT < rows ? r + SHORT : rows;
        for (size_t k = r; k < end; k++)
#pragma GCC unroll 2
            for (size_t i = 0; i < 2; i++) {
                floats v[2];
                size_t lane = j + i * LANES;
                (backward ? pair_backward : pair_forward)(s, k * period + lane, lane, v);
                first[i] += v[0];
                second[i] += v[1];
            }
        add_lanes(s->first + j, first);
        add_lanes(s->second + j, second);
    }
}

/* Adds the sums of x - mean and of (x - mean)^2 over `rows` periods (several positions that are
 * processed as one row). */
VEC_CLONES static void sum_forward(const struct layer_norm_sums *s, size_t rows, size_t period)
{
    for (size_t j = 0; j < period; j += WIDE)
        sum_columns(s, j, rows, period, false);
}

VEC_CLONES static void sum_backward(const struct layer_norm_sums *s, size_t rows, size_t period)
{
    /* `masked` is a constant in each branch, so that the compiler removes the test of `masked` from
     * the loop. */
    struct layer_norm_sums k = *s;
    k.masked = false;
    if (s->masked) {
        k.masked = true;
        for (size_t j = 0; j < period; j += WIDE)
            sum_columns(&k, j, rows, period, true);
    } else {
        for (size_t j = 0; j < period; j += WIDE)
            sum_columns(&k, j, rows, period, true);
    }
}

/* Adds the sums of the last n floats, those after the last whole period (several positions that are
 * processed as one row). */
static void sum_rest(const struct layer_norm_sums *s, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        float x = s->x[j] - s->mean[j], first = x, second = x * x;
        if (s->g != NULL) {
            bool open = !s->masked || x * s->scale[j] + s->bias[j] > 0.0f;
            first = open ? s->g[j] : 0.0f;
            second = first * x;
        }
        s->first[j] += (double)first;
        s->second[j] += (double)second;
    }
}

/* The vector loops process whole periods (several positions that are processed as one row). The
 * floats after the last whole period are handled separately. */
void layer_norm_add_sums(const struct layer_norm_sums *s, size_t n, size_t period)
{
    struct layer_norm_sums rest = *s;
    size_t rows = n / period, whole = rows * period;
    (s->g != NULL ? sum_backward : sum_forward)(s, rows, period);
    rest.x += whole;
    if (s->g != NULL)
        rest.g += whole;
    sum_rest(&rest, n - whole);
}

/* Computes at most one period of outputs. The ReLU is "y < 0 ? 0 : y", which keeps NaN. */
static inline __attribute__((always_inline)) void line_period(const struct layer_norm_line *k,
                                                              size_t at, size_t n, bool with,
                                                              bool relu)
{
    const float *restrict x = k->x + at, *restrict mean = k->mean;
    const float *restrict scale = k->scale, *restrict bias = k->bias;
    const float *restrict add = with ? k->with + at : NULL;
    float *restrict out = k->out + at;
    for (size_t j = 0; j < n; j++) {
        float y = (x[j] - mean[j]) * scale[j] + bias[j];
        if (with)
            y += add[j];
        out[j] = relu && y < 0.0f ? 0.0f : y;
    }
}

/* Each combination of `with` (a second input is added or not) and ReLU has its own loop without
 * branches. */
VEC_CLONES void layer_norm_line(const struct layer_norm_line *k, size_t at, size_t n)
{
    if (k->with != NULL && k->relu)
        line_period(k, at, n, true, true);
    else if (k->with != NULL)
        line_period(k, at, n, true, false);
    else if (k->relu)
        line_period(k, at, n, false, true);
    else
        line_period(k, at, n, false, false);
}

static inline __attribute__((always_inline)) void line_back_period(const struct layer_norm_back *k,
                                                                   size_t at, size_t n, bool masked,
                                                                   bool add)
{
    const float *restrict x = k->x + at, *restrict g = k->g + at;
    const float *restrict mean = k->mean, *restrict scale = k->scale;
    const float *restrict bias = k->bias, *restrict slope = k->slope;
    const float *restrict level = k->level;
    float *restrict d_in = k->d_in + at;
    for (size_t j = 0; j < n; j++) {
        float v = x[j] - mean[j], d = g[j];
        if (masked)
            d = v * scale[j] + bias[j] > 0.0f ? d : 0.0f;
        d = d * scale[j] - v * slope[j] - level[j];
        d_in[j] = add ? d_in[j] + d : d;
    }
}

/* Each combination of `masked` (ReLU or not) and `add` (overwrite or add) has its own loop without
 * branches. */
VEC_CLONES void layer_norm_back(const struct layer_norm_back *k, size_t at, size_t n)
{
    if (k->masked && k->add)
        line_back_period(k, at, n, true, true);
    else if (k->masked)
        line_back_period(k, at, n, true, false);
    else if (k->add)
        line_back_period(k, at, n, false, true);
    else
        line_back_period(k, at, n, false, false);
}

VEC_CLONES void layer_norm_mask(float *restrict g, const float *restrict d,
                                const float *restrict out, size_t n)
{
    for (size_t j = 0; j < n; j++)
        g[j] = out[j] > 0.0f ? d[j] : 0.0f;
}
