/* nn/math/blas.c -- matrix products and singular values by OpenBLAS. */
#include "nn/math/blas.h"

#include <assert.h>
#include <cblas.h>
#include <errno.h>
#include <limits.h>

/* Converts a size to int, the type that BLAS uses for sizes. */
static int dim(size_t n)
{
    assert(n >= 1 && n <= INT_MAX);
    return (int)n;
}

/* With several threads, OpenBLAS would sum in an order that depends on the threads, but a run must
 * be a function of its seed. */
void blas_init(void)
{
    openblas_set_num_threads(1);
}

void blas_gemm(const struct blas_gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->a_transposed ? CblasTrans : CblasNoTrans,
                g->b_transposed ? CblasTrans : CblasNoTrans, dim(g->m), dim(g->n), dim(g->k), 1.0f,
                g->a, dim(g->lda), g->b, dim(g->ldb), g->beta, g->c, dim(g->ldc));
}

void blas_gemm_ref(const struct blas_gemm *g)
{
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (size_t l = 0; l < g->k; l++) {
                float a = g->a_transposed ? g->a[l * g->lda + i] : g->a[i * g->lda + l];
                float b = g->b_transposed ? g->b[j * g->ldb + l] : g->b[l * g->ldb + j];
                sum += (double)a * (double)b;
            }
            float *c = &g->c[i * g->ldc + j];
            if (g->beta != 0)
                sum += (double)g->beta * (double)*c;
            *c = (float)sum;
        }
}

/* LAPACK's singular value decomposition, which is a part of OpenBLAS. LAPACK's header is in another
 * software package, so the function is declared here. Fortran passes all arguments by reference,
 * and the length of a text last. */
extern void sgesdd_(const char *jobz, const int *m, const int *n, float *a, const int *lda,
                    float *s, float *u, const int *ldu, float *vt, const int *ldvt, float *work,
                    const int *lwork, int *iwork, int *info, size_t jobz_len);

/* Calls LAPACK for the transposed matrix, because LAPACK reads our row-major matrix as its
 * transpose: a^T = vt^T diag(s) u^T. LAPACK's left vectors are our vt, and its right vectors our u,
 * without a copy. */
static int gesdd(const struct blas_svd *d, float *work, int lwork, int *iwork)
{
    int m = dim(d->m), n = dim(d->n), info = 0;
    int k = m < n ? m : n;
    sgesdd_("S", &n, &m, d->a, &n, d->s, d->vt, &n, d->u, &k, work, &lwork, iwork, &info, 1);
    return info;
}

/* Returns the number of floats of work space that LAPACK asks for. LAPACK returns this number as a
 * float, which may be rounded down, so the result is a little larger. */
static size_t work_floats(size_t m, size_t n)
{
    struct blas_svd d = {.m = m, .n = n};
    float best = 0;
    size_t k = m < n ? m : n, least = 4 * k * k + 7 * k;
    assert(k <= BLAS_SVD_MAX);
    int info = gesdd(&d, &best, -1, NULL);
    assert(info == 0);
    size_t n_floats = (size_t)((double)best * (1.0 + 0x1p-22));
    n_floats = n_floats > least ? n_floats : least;
    return n_floats < INT_MAX ? n_floats : INT_MAX;
}

size_t blas_svd_work(size_t m, size_t n)
{
    size_t k = m < n ? m : n;
    return 8 * k * sizeof(int) + work_floats(m, n) * sizeof(float);
}

int blas_svd(const struct blas_svd *d)
{
    size_t k = d->m < d->n ? d->m : d->n;
    assert(d->m <= INT_MAX / d->n);
    blas_init();
    int *iwork = d->work;
    float *work = (float *)(iwork + 8 * k);
    int info = gesdd(d, work, (int)work_floats(d->m, d->n), iwork);
    assert(info >= 0 || info == -4); /* LAPACK returns -4 if `a` contains NaN. */
    return info == 0 ? 0 : -EDOM;
}

const char *blas_library(void)
{
    return openblas_get_config();
}

const char *blas_kernels(void)
{
    return openblas_get_corename();
}
