#include "nn/blas.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>

static int dim(size_t n)
{
    assert(n >= 1 && n <= INT_MAX);
    return (int)n;
}

void blas_init(void)
{
    openblas_set_num_threads(1);
}

void blas_gemm(const struct blas_gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->a_transposed ? CblasTrans : CblasNoTrans,
                g->b_transposed ? CblasTrans : CblasNoTrans, dim(g->m),
                dim(g->n), dim(g->k), 1.0f, g->a, dim(g->lda), g->b,
                dim(g->ldb), g->beta, g->c, dim(g->ldc));
}

void blas_gemm_ref(const struct blas_gemm *g)
{
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (size_t l = 0; l < g->k; l++) {
                float a = g->a_transposed ? g->a[l * g->lda + i]
                                          : g->a[i * g->lda + l];
                float b = g->b_transposed ? g->b[j * g->ldb + l]
                                          : g->b[l * g->ldb + j];
                sum += (double)a * (double)b;
            }
            float *c = &g->c[i * g->ldc + j];
            if (g->beta != 0)
                sum += (double)g->beta * (double)*c;
            *c = (float)sum;
        }
}
