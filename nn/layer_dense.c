/* The dense layer: out [n][o] = in [n][i] * weight^T + bias, weight [o][i]. */
#include "nn/layer.h"

#include "nn/blas.h"

#include <assert.h>

static void dense_params(const struct layer *l, size_t *rows, size_t *cols)
{
    *rows = shape_size(l->out);
    *cols = shape_size(l->in);
}

static size_t dense_scratch(const struct layer *l, uint32_t n)
{
    (void)l;
    (void)n;
    return 0;
}

VEC_CLONES static void rows_bias(float *restrict v, const float *restrict bias,
                                 size_t rows, size_t cols, bool relu)
{
    for (size_t r = 0; r < rows; r++, v += cols) {
        for (size_t j = 0; j < cols; j++)
            v[j] += bias[j];
        if (relu)
            for (size_t j = 0; j < cols; j++)
                v[j] = v[j] < 0.0f ? 0.0f : v[j];
    }
}

/* sum[j] = the sum of column j, row by row. */
VEC_CLONES static void columns_sum(float *restrict sum, const float *restrict v,
                                   size_t rows, size_t cols)
{
    for (size_t j = 0; j < cols; j++)
        sum[j] = v[j];
    for (size_t r = 1; r < rows; r++)
        for (size_t j = 0; j < cols; j++)
            sum[j] += v[r * cols + j];
}

static void dense_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t i = shape_size(l->in), o = shape_size(l->out);
    blas_gemm(&(struct blas_gemm){.m = p->n,
                                  .n = o,
                                  .k = i,
                                  .a = p->in,
                                  .lda = i,
                                  .b = p->x + l->weight,
                                  .ldb = i,
                                  .b_transposed = true,
                                  .c = p->out,
                                  .ldc = o});
    rows_bias(p->out, p->x + l->bias, p->n, o, l->relu);
}

static void dense_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t i = shape_size(l->in), o = shape_size(l->out);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, p->n * o);
    columns_sum(p->grad + l->bias, p->d_out, p->n, o);
    blas_gemm(&(struct blas_gemm){.m = o, /* d weight = d_out^T * in */
                                  .n = i,
                                  .k = p->n,
                                  .a = p->d_out,
                                  .lda = o,
                                  .a_transposed = true,
                                  .b = p->in,
                                  .ldb = i,
                                  .c = p->grad + l->weight,
                                  .ldc = i});
    if (p->d_in == NULL)
        return;
    blas_gemm(&(struct blas_gemm){.m = p->n, /* d in = d_out * weight */
                                  .n = i,
                                  .k = o,
                                  .a = p->d_out,
                                  .lda = o,
                                  .b = p->x + l->weight,
                                  .ldb = i,
                                  .c = p->d_in,
                                  .ldc = i});
}

const struct layer_op layer_dense = {
    .name = "fc",
    .maps_in = false,
    .maps_out = false,
    .params = dense_params,
    .scratch = dense_scratch,
    .forward = dense_forward,
    .backward = dense_backward,
};
