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
    size_t m, n, k; /* Each at least 1. */
    const float *a; /* m x k, or k x m where a_transposed. */
    size_t lda;     /* Floats from one row of a to the next. */
    bool a_transposed;
    const float *b; /* k x n, or n x k where b_transposed. */
    size_t ldb;
    bool b_transposed;
    float *c; /* m x n; overlaps neither a nor b. */
    size_t ldc;
    float beta; /* 0: c is written only, and may hold anything. */
};

/* Hold OpenBLAS to the calling thread. Idempotent; before the first product. */
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
    size_t m, n; /* Each at least 1; k at most BLAS_SVD_MAX, m n a 31-bit
                   * number. */
    float *a;    /* Destroyed. */
    float *s, *u, *vt;
    void *work; /* blas_svd_work() bytes, aligned as for a double. */
};

enum {
    BLAS_SVD_MAX = 16384 /* LAPACK counts its work space in an int. */
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
