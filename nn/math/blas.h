/* nn/math/blas.h -- matrix products and singular values: the one door to OpenBLAS.
 *
 * All matrices are row-major. A product is described by a struct rather than
 * by cblas's fourteen arguments, so that a call reads as what it computes:
 *
 *   c (m x n) = beta * c + op(a) (m x k) * op(b) (k x n)
 *
 * OpenBLAS runs on the calling thread only: a peer has one worker, and equal
 * bits need one order of summation. Its kernels differ between kinds of CPU,
 * so products are bit-identical on one machine, not across machines.
 */
#ifndef NN_MATH_BLAS_H
#define NN_MATH_BLAS_H

#include <stdbool.h>
#include <stddef.h>

struct blas_gemm
{
    size_t m, n, k; /* Sizes, each at least 1. */
    const float *a; /* Matrix m x k, or k x m if a_transposed. */
    size_t lda;     /* Floats from one row of a to the next. */
    bool a_transposed;
    const float *b; /* Matrix k x n, or n x k if b_transposed. */
    size_t ldb;
    bool b_transposed;
    float *c; /* Matrix m x n, which overlaps neither a nor b. */
    size_t ldc;
    float beta; /* Factor of the old c. 0: c is only written and may contain anything. */
};

/* Makes OpenBLAS use the calling thread only. Called before the first product; may be repeated. */
void blas_init(void);

void blas_gemm(const struct blas_gemm *g);

/* Computes the same with three loops, with sums in double. Reference for the tests of
 * blas_gemm(). */
void blas_gemm_ref(const struct blas_gemm *g);

/* Thin singular value decomposition, k = min(m, n):
 *
 *   a (m x n) = u (m x k) * diag(s) * vt (k x n),  s[0] >= s[1] >= ... >= 0
 */
struct blas_svd
{
    /* Sizes, each at least 1; k = min(m, n) is at most BLAS_SVD_MAX, and m n fits in 31 bits. */
    size_t m, n;
    float *a; /* Destroyed. */
    float *s, *u, *vt;
    void *work; /* Memory of blas_svd_work() bytes, aligned for double. */
};

enum {
    BLAS_SVD_MAX = 16384 /* LAPACK uses int for the size of its work space. */
};

size_t blas_svd_work(size_t m, size_t n);

/* Uses LAPACK's divide and conquer method (sgesdd) on the calling thread. Scale values that are
 * far from 1 before. Returns 0, or -EDOM if `a` is not finite or the iteration does not
 * converge. */
int blas_svd(const struct blas_svd *d);

/* blas_library() returns the version text of OpenBLAS, "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH
 * ...". blas_kernels() returns the CPU type whose kernels it uses, "SkylakeX". */
const char *blas_library(void);
const char *blas_kernels(void);

#endif
