/* nn/math/blas.h -- matrix products and singular values. Only this module calls OpenBLAS.
 *
 * All matrices are row-major. A product is described by a struct with named fields instead of the
 * fourteen arguments of cblas:
 *
 *   c (m x n) = beta * c + op(a) (m x k) * op(b) (k x n)
 *
 * OpenBLAS runs on the calling thread only, because several threads would change the order of
 * summation. Its kernels differ between CPU types. Products are therefore bit-identical on one
 * machine, but not across machines.
 */
#ifndef NN_MATH_BLAS_H
#define NN_MATH_BLAS_H

#include <stdbool.h>
#include <stddef.h>

struct blas_gemm
{
    /* Sizes of the product (see the formula at the top of this file), each at least 1. */
    size_t m, n, k;
    const float *a; /* Matrix m x k, or k x m if a_transposed. */
    size_t lda;     /* Distance in floats from one row of `a` to the next. */
    bool a_transposed;
    const float *b; /* Matrix k x n, or n x k if b_transposed. */
    size_t ldb;
    bool b_transposed;
    float *c; /* Matrix m x n, which overlaps neither a nor b. */
    size_t ldc;
    float beta; /* Factor beta of the old c. 0: c is overwritten, whatever it contains. */
};

/* Makes OpenBLAS use the calling thread only. Must be called before the first product. May be
 * repeated. */
void blas_init(void);

void blas_gemm(const struct blas_gemm *g);

/* Computes the same as blas_gemm() with three loops and sums in double. Reference for tests. */
void blas_gemm_ref(const struct blas_gemm *g);

/* Thin singular value decomposition, k = min(m, n):
 *
 *   a (m x n) = u (m x k) * diag(s) * vt (k x n),  s[0] >= s[1] >= ... >= 0
 */
struct blas_svd
{
    /* Sizes of the matrix `a`, each at least 1. k = min(m, n) is at most BLAS_SVD_MAX, and m n fits
     * in 31 bits. */
    size_t m, n;
    float *a; /* Input matrix. Its contents are destroyed. */
    float *s, *u, *vt;
    void *work; /* Work space of blas_svd_work() bytes, aligned for double. */
};

enum {
    /* Largest min(m, n) of a matrix that blas_svd() decomposes. The limit exists because LAPACK
     * stores the size of its work space in an int. */
    BLAS_SVD_MAX = 16384
};

size_t blas_svd_work(size_t m, size_t n);

/* Computes the singular value decomposition by LAPACK's divide and conquer method (sgesdd). The
 * caller scales values that are far from 1 beforehand. Returns 0, or -EDOM if `a` is not finite or
 * the iteration does not converge. */
int blas_svd(const struct blas_svd *d);

/* blas_library() returns the version text of OpenBLAS, "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH
 * ...". blas_kernels() returns the CPU type whose kernels it uses, "SkylakeX". */
const char *blas_library(void);
const char *blas_kernels(void);

#endif
