/* tests/unit/nn_blas.c -- blas_gemm is compared with three loops in double precision, on odd sizes
 * and strides. The product of the factors that blas_svd returns must be the matrix. */
#include "nn_ref.h"

#include "nn/math/blas.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const size_t sizes[] = {1, 2, 3, 7, 8, 15, 17, 33};

enum {
    N_SIZES = sizeof sizes / sizeof sizes[0],
    /* Floats per row of a buffer, more than any matrix has columns. The gap after each row must
     * not change. */
    STRIDE = 40,
    CELLS = STRIDE * STRIDE
};

static void check(struct blas_gemm g, const float *c0)
{
    float got[CELLS], want[CELLS];
    memcpy(got, c0, sizeof got);
    memcpy(want, c0, sizeof want);
    if (g.beta == 0)
        for (size_t i = 0; i < g.m; i++)
            ref_poison(got + i * g.ldc, g.n);
    g.c = got;
    blas_gemm(&g);
    g.c = want;
    blas_gemm_ref(&g);
    for (size_t i = 0; i < CELLS; i++)
        if (!ref_near((double)got[i], (double)want[i], 1e-5))
            fail_msg("%zux%zux%zu %d%d beta %g cell %zu: %g, expected %g", g.m, g.n, g.k,
                     g.a_transposed, g.b_transposed, (double)g.beta, i, (double)got[i],
                     (double)want[i]);
}

static void test_gemm(void **state)
{
    (void)state;
    double unused[CELLS];
    float a[CELLS], b[CELLS], c[CELLS];
    ref_noise(rng_key(1, RNG_TEST, 1, 0), 1, unused, a, CELLS);
    ref_noise(rng_key(1, RNG_TEST, 2, 0), 1, unused, b, CELLS);
    ref_noise(rng_key(1, RNG_TEST, 3, 0), 1, unused, c, CELLS);
    for (size_t i = 0; i < N_SIZES * N_SIZES * N_SIZES * 8; i++) {
        size_t s = i / 8;
        check((struct blas_gemm){.m = sizes[s % N_SIZES],
                                 .n = sizes[s / N_SIZES % N_SIZES],
                                 .k = sizes[s / N_SIZES / N_SIZES],
                                 .a = a,
                                 .lda = STRIDE,
                                 .a_transposed = i & 1,
                                 .b = b,
                                 .ldb = STRIDE,
                                 .b_transposed = i & 2,
                                 .ldc = STRIDE,
                                 .beta = i & 4 ? 1.0f : 0.0f},
              c);
    }
}

/* Checks the reference by hand-computed values: [1 2; 3 4] [5; 6] + 10 * [1; 1]. */
static void test_ref(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4}, b[] = {5, 6};
    float c[] = {1, 1};
    struct blas_gemm g = {
        .m = 2, .n = 1, .k = 2, .a = a, .lda = 2, .b = b, .ldb = 1, .c = c, .ldc = 1, .beta = 10};
    blas_gemm_ref(&g);
    assert_true(c[0] == 27 && c[1] == 49);
    g.a_transposed = true;
    g.beta = 0;
    blas_gemm_ref(&g);
    assert_true(c[0] == 23 && c[1] == 34);
}

/* Returns how far the rows of `a` (by_rows, for vt) or its columns (for u) are from orthonormal:
 * the largest difference of `a a^T` or `a^T a` from the identity. */
static double skew(const float *a, size_t k, size_t n, bool by_rows)
{
    double worst = 0;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++) {
            double sum = i == j ? -1 : 0;
            for (size_t l = 0; l < n; l++)
                sum += (double)(by_rows ? a[i * n + l] : a[l * k + i])
                       * (double)(by_rows ? a[j * n + l] : a[l * k + j]);
            worst = fmax(worst, fabs(sum));
        }
    return worst;
}

static void check_svd(size_t m, size_t n, const float *a)
{
    size_t k = m < n ? m : n;
    float copy[CELLS], s[STRIDE], u[CELLS], vt[CELLS];
    /* The work memory has exactly the required size, so that a sanitizer detects a write beyond
     * it. */
    void *work = malloc(blas_svd_work(m, n));
    assert_non_null(work);
    memcpy(copy, a, m * n * sizeof *a);
    struct blas_svd d = {.m = m, .n = n, .a = copy, .s = s, .u = u, .vt = vt, .work = work};
    assert_int_equal(blas_svd(&d), 0);
    free(work);
    for (size_t i = 1; i < k; i++)
        assert_true(s[i - 1] >= s[i] && s[i] >= 0);
    if (!(skew(u, k, m, false) < 1e-5 && skew(vt, k, n, true) < 1e-5))
        fail_msg("%zux%zu: not orthonormal", m, n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++)
                sum += (double)s[l] * (double)u[i * k + l] * (double)vt[l * n + j];
            if (!(fabs(sum - (double)a[i * n + j]) <= 1e-5 * (double)s[0]))
                fail_msg("%zux%zu cell %zu,%zu: %g, expected %g", m, n, i, j, sum,
                         (double)a[i * n + j]);
        }
}

static void test_svd(void **state)
{
    (void)state;
    double unused[CELLS];
    float a[CELLS] = {0};
    check_svd(5, 7, a);
    ref_noise(rng_key(1, RNG_TEST, 4, 0), 1, unused, a, CELLS);
    for (size_t i = 0; i < N_SIZES * N_SIZES; i++)
        check_svd(sizes[i % N_SIZES], sizes[i / N_SIZES], a);
    for (size_t i = 0; i < CELLS; i++)
        /* The matrix consists of ones, except for one entry, so its rank is 2. */
        a[i] = i == 40 ? 1e6f : 1;
    check_svd(15, 33, a);
    a[3] = NAN;
    float s[3], u[9], vt[9];
    void *work = malloc(blas_svd_work(3, 3));
    assert_non_null(work);
    struct blas_svd d = {.m = 3, .n = 3, .a = a, .s = s, .u = u, .vt = vt, .work = work};
    assert_int_equal(blas_svd(&d), -EDOM);
    free(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_svd),
    };
    blas_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
