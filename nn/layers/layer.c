/* nn/layers/layer.c -- the table of layer kinds, and loops that several layers use. */
#include "nn/layers/layer.h"

#include <string.h>

const struct layer_op *layer_op(enum layer_kind kind)
{
    static const struct layer_op *const ops[LAYER_KINDS] = {
        [LAYER_DENSE] = &layer_dense,
        [LAYER_SPARSE] = &layer_sparse,
        [LAYER_CONV] = &layer_conv,
        [LAYER_NORM] = &layer_norm,
        [LAYER_MAXPOOL] = &layer_maxpool,
        [LAYER_AVGPOOL] = &layer_avgpool,
        [LAYER_FLATTEN] = &layer_flatten,
        [LAYER_SHORTCUT] = &layer_shortcut,
        [LAYER_ADD] = &layer_add,
        [LAYER_GELU] = &layer_gelu,
        [LAYER_EMBED] = &layer_embed,
        [LAYER_LSTM] = &layer_lstm,
        [LAYER_ATTENTION] = &layer_attention,
    };
    assert(kind < LAYER_KINDS);
    return ops[kind];
}

/* Applies ReLU. The condition is "v < 0 ? 0 : v" instead of fmaxf(), so that NaN is kept. */
VEC_CLONES static void relu(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] < 0.0f ? 0.0f : v[i];
}

/* Adds bias to each row of v[rows][cols]. With relu_too, applies ReLU in the same pass over
 * memory. */
VEC_CLONES static void add_rows(float *restrict v, const float *restrict bias, size_t rows,
                                size_t cols, bool relu_too)
{
    for (size_t r = 0; r < rows; r++, v += cols) {
        if (relu_too)
            for (size_t j = 0; j < cols; j++) {
                float y = v[j] + bias[j];
                v[j] = y < 0.0f ? 0.0f : y;
            }
        else
            for (size_t j = 0; j < cols; j++)
                v[j] += bias[j];
    }
}

enum {
    /* Size of the buffer for a repeated bias, in floats. Only a bias of at most PERIOD / 16 columns
     * is repeated (layer_bias()). */
    PERIOD = 256
};

/* Adds the bias to each row. A bias of few columns is repeated 16 times, and 16 rows are processed
 * as one. A loop over few floats, for example 6, would spend most of its time on starting and
 * ending the loop. */
void layer_bias(float *v, const float *bias, size_t rows, size_t cols, bool relu_too)
{
    float period[PERIOD];
    size_t times = cols <= PERIOD / 16 ? 16 : 1, width = times * cols;
    if (bias == NULL) {
        if (relu_too)
            relu(v, rows * cols);
        return;
    }
    if (times == 1) {
        add_rows(v, bias, rows, cols, relu_too);
        return;
    }
    for (size_t i = 0; i < times; i++)
        memcpy(period + i * cols, bias, cols * sizeof *bias);
    add_rows(v, period, rows / times, width, relu_too);
    add_rows(v + rows / times * width, period, 1, rows % times * cols, relu_too);
}

VEC_CLONES void layer_relu_mask(float *restrict d, const float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d[i] = out[i] > 0.0f ? d[i] : 0.0f;
}

typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));

enum {
    SUM_LANES = 16,
    /* Number of columns that are summed at once, with all sums in registers. */
    SUM_COLUMNS = 4 * SUM_LANES,
    /* Number of rows that are summed in float at a time. The results are summed in double. */
    SUM_ROWS = 16,
    /* Number of rows that sum_few() processes at once, so that they stay in the cache. */
    SUM_BLOCK = 4 * SUM_ROWS
};

/* Adds the sums of SUM_COLUMNS columns of v to total[]. `stride` is the length of a row of v. */
VEC_CLONES static void sum_columns(double *restrict total, const float *restrict v, size_t rows,
                                   size_t stride)
{
    for (size_t some; rows > 0; rows -= some) {
        floats s[SUM_COLUMNS / SUM_LANES] = {0};
        float sum[SUM_COLUMNS];
        some = layer_lesser(rows, SUM_ROWS);
        for (size_t r = 0; r < some; r++, v += stride)
#pragma GCC unroll 4
            for (size_t k = 0; k < SUM_COLUMNS / SUM_LANES; k++)
                s[k] += *(const floats *)(v + k * SUM_LANES);
        memcpy(sum, s, sizeof sum);
        for (size_t j = 0; j < SUM_COLUMNS; j++)
            total[j] += (double)sum[j];
    }
}

/* Adds the sums of n columns of v to total[], in double. n is less than SUM_COLUMNS. */
VEC_CLONES static void sum_rest(double *restrict total, const float *restrict v, size_t rows,
                                size_t stride, size_t n)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++)
            total[j] += (double)v[r * stride + j];
}

/* Computes the sums of more than SUM_COLUMNS / 2 columns, in blocks of SUM_COLUMNS. */
static void sum_many(float *sum, const float *v, size_t rows, size_t cols)
{
    for (size_t at = 0; at < cols; at += SUM_COLUMNS) {
        size_t n = layer_lesser(SUM_COLUMNS, cols - at);
        double total[SUM_COLUMNS] = {0};
        if (n == SUM_COLUMNS)
            sum_columns(total, v + at, rows, cols);
        else
            sum_rest(total, v + at, rows, cols, n);
        for (size_t j = 0; j < n; j++)
            sum[at + j] = (float)total[j];
    }
}

/* Computes the sums of at most SUM_COLUMNS / 2 columns. Several rows are treated as one row whose
 * length is a multiple of SUM_COLUMNS. */
static void sum_few(float *sum, const float *v, size_t rows, size_t cols)
{
    double total[SUM_COLUMNS * SUM_COLUMNS / 2]; /* Memory for 2,048 sums: 16 KiB. */
    size_t times = SUM_COLUMNS;
    while (times % 2 == 0 && times / 2 * cols % SUM_COLUMNS == 0)
        times /= 2;
    size_t width = times * cols, tall = rows / times;
    memset(total, 0, width * sizeof *total);
    for (size_t r = 0; r < tall; r += SUM_BLOCK)
        for (size_t at = 0; at < width; at += SUM_COLUMNS)
            sum_columns(total + at, v + r * width + at, layer_lesser(SUM_BLOCK, tall - r), width);
    sum_rest(total, v + tall * width, 1, 0, rows % times * cols);
    for (size_t j = 0; j < cols; j++) {
        for (size_t i = 1; i < times; i++)
            total[j] += total[i * cols + j];
        sum[j] = (float)total[j];
    }
}

void layer_column_sums(float *sum, const float *v, size_t rows, size_t cols)
{
    if (cols <= SUM_COLUMNS / 2)
        sum_few(sum, v, rows, cols);
    else
        sum_many(sum, v, rows, cols);
}

/* Transposes 16 rows at a time, so that each write fills whole cache lines. */
void layer_transpose(float *restrict to, const float *restrict from, size_t rows, size_t cols)
{
    enum { SIDE = 16 };
    size_t r = 0;
    for (; r + SIDE <= rows; r += SIDE)
        for (size_t c = 0; c < cols; c++)
            for (size_t j = 0; j < SIDE; j++)
                to[c * rows + r + j] = from[(r + j) * cols + c];
    for (size_t c = 0; c < cols && r < rows; c++)
        for (size_t j = r; j < rows; j++)
            to[c * rows + j] = from[j * cols + c];
}

VEC_CLONES static void add_to(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

void layer_give(float *restrict to, const float *restrict from, size_t n, bool add)
{
    if (add)
        add_to(to, from, n);
    else
        memcpy(to, from, n * sizeof *to);
}
