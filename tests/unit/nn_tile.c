/* tests/unit/nn_tile.c -- small matrix products: each build of the kernels that this CPU can run is
 * compared with plain loops in double precision. Cases: sizes around the tile size, row and column
 * strides, an inner dimension of several runs (nn/math/tile.h), and sums. Nothing beyond the rows
 * is read or written. */
#include "nn/math/rng.h"
#include "nn/math/tile.h"
#include "nn_ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { A_FLOATS = 40000, B_FLOATS = 70000, C_FLOATS = 12000 };

static float a[A_FLOATS], b[B_FLOATS], c[C_FLOATS], want[C_FLOATS], before[C_FLOATS], bias[100];

/* Compares the product t with the reference: results may differ by one rounding error per term,
 * and floats between and after the rows must not change. */
static void check(const struct tile_kernels *kernels, struct tile_product t)
{
    size_t runs = t.runs > 0 ? t.runs : 1;
    memcpy(c, before, sizeof c);
    memcpy(want, before, sizeof want);
    t.c = want;
    tile_product_ref(&t);
    t.c = c;
    kernels->product(&t);
    double bound = (double)(t.k * runs + 4) * 0x1p-23;
    for (size_t i = 0; i < C_FLOATS; i++) {
        double d = fabs((double)c[i] - (double)want[i]);
        size_t row = i / t.ldc, column = i % t.ldc;
        if (row < t.m && column < t.n ? !(d <= bound) : c[i] != before[i])
            fail_msg("m %zu n %zu k %zu runs %zu add %d: element %zu %zu is "
                     "%g, not %g",
                     t.m, t.n, t.k, t.runs, t.add, row, column, (double)c[i], (double)want[i]);
    }
}

typedef void each_fn(const struct tile_kernels *kernels);

static void with_all(each_fn *each)
{
    ref_uniform(rng_key(5, RNG_TEST, 1, 0), a, A_FLOATS);
    ref_uniform(rng_key(5, RNG_TEST, 2, 0), b, B_FLOATS);
    ref_uniform(rng_key(5, RNG_TEST, 3, 0), before, C_FLOATS);
    ref_uniform(rng_key(5, RNG_TEST, 4, 0), bias, 100);
    size_t n_here = 0;
    for (size_t i = 0; tile_all[i] != NULL; i++)
        if (tile_all[i]->runs_here()) {
            each(tile_all[i]);
            n_here++;
        }
    assert_true(n_here >= 1);
}

static void sizes(const struct tile_kernels *kernels)
{
    static const size_t all[] = {1,  2,  3,  5,  6,  7,  8,  11, 12, 13,
                                 15, 16, 17, 25, 31, 32, 33, 48, 63, 65};
    enum { N = sizeof all / sizeof all[0] };
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            for (size_t x = 0; x < 6; x++) {
                size_t m = all[i], n = all[j], k = all[(i + j + 5 * x) % N];
                check(kernels, (struct tile_product){.m = m,
                                                     .n = n,
                                                     .k = k,
                                                     .a = a,
                                                     .b = b,
                                                     .a_row = x % 2 ? k + x : 1,
                                                     .a_col = x % 2 ? 1 : m + x,
                                                     .ldb = n + x,
                                                     .ldc = n + x % 3,
                                                     .add = x % 3 == 0,
                                                     .bias = x % 4 < 2 ? NULL : bias,
                                                     .relu = (i + x) % 4 == 0});
            }
}

static void test_sizes(void **state)
{
    (void)state;
    with_all(sizes);
}

/* Tests products as in a convolution: rows of `a` overlap, and the inner dimension has one run of
 * contiguous floats for each row of the convolution's kernel. */
static void runs(const struct tile_kernels *kernels)
{
    for (size_t kernel = 1; kernel <= 5; kernel += 2)
        for (size_t ch = 1; ch <= 7; ch++)
            for (size_t stride = 1; stride <= 2; stride++) {
                size_t wide = 40 * ch, o = 2 * ch + 3;
                struct tile_product t = {.m = 18,
                                         .n = o,
                                         .k = kernel * ch,
                                         .a = a,
                                         .b = b,
                                         .a_row = stride * ch,
                                         .a_col = 1,
                                         .runs = kernel,
                                         .a_run = wide,
                                         .ldb = o,
                                         .ldc = o};
                check(kernels, t);
                t.m = kernel * ch;
                t.a_row = 1;
                t.a_col = stride * ch;
                t.k = 17;
                t.runs = 9;
                t.a_run = stride * wide;
                t.add = true;
                check(kernels, t);
            }
}

static void test_runs(void **state)
{
    (void)state;
    with_all(runs);
}

/* Tests products with the inner dimension k = 16, which have kernels of their own. */
static void slim(const struct tile_kernels *kernels)
{
    for (size_t m = 1; m <= 40; m++)
        for (size_t n = 14; n <= 50; n += n % 2 ? 1 : 17)
            for (unsigned bits = 0; bits < 8; bits++)
                check(kernels, (struct tile_product){.m = m,
                                                     .n = n,
                                                     .k = 16,
                                                     .a = a,
                                                     .a_row = 16 + m % 3,
                                                     .a_col = 1,
                                                     .b = b,
                                                     .ldb = n,
                                                     .ldc = n + 1,
                                                     .add = bits & 1,
                                                     .bias = bits & 2 ? bias : NULL,
                                                     .relu = bits & 4});
}

static void test_slim(void **state)
{
    (void)state;
    with_all(slim);
}

/* A NaN reaches the results, through the ReLU too. */
static void nans(const struct tile_kernels *kernels)
{
    float row[70];
    ref_uniform(rng_key(5, RNG_TEST, 6, 0), row, 70);
    row[3] = NAN;
    struct tile_product t = {.m = 1,
                             .n = 53,
                             .k = 70,
                             .a = row,
                             .a_row = 70,
                             .a_col = 1,
                             .b = b,
                             .ldb = 53,
                             .c = c,
                             .ldc = 53,
                             .relu = true};
    kernels->product(&t);
    for (size_t j = 0; j < 53; j++)
        assert_true(isnan(c[j]));
}

static void test_nans(void **state)
{
    (void)state;
    with_all(nans);
}

/* Tests sizes of 0: products without elements, and sums without terms. */
static void empty(const struct tile_kernels *kernels)
{
    struct tile_product t = {.a = a, .a_row = 3, .a_col = 1, .b = b, .ldb = 40, .ldc = 40};
    check(kernels, t);
    t.m = 5;
    check(kernels, t);
    t.n = 37;
    check(kernels, t);
    t.add = true;
    check(kernels, t);
    t.m = 0;
    t.k = 3;
    check(kernels, t);
}

static void test_empty(void **state)
{
    (void)state;
    with_all(empty);
}

/* Bytes after a row of b or c must not be used. The last row ends at the end of its memory, and NaN
 * is between the rows of b. */
static void ends(const struct tile_kernels *kernels)
{
    for (size_t n = 1; n <= 40; n++) {
        size_t m = 14, k = 3, ldb = n + 5;
        float *b_end = malloc((2 * ldb + n) * sizeof *b_end);
        float *c_end = malloc(m * n * sizeof *c_end);
        assert_true(b_end != NULL && c_end != NULL);
        for (size_t i = 0; i < 2 * ldb + n; i++)
            b_end[i] = i % ldb < n ? b[i] : NAN;
        struct tile_product t = {.m = m,
                                 .n = n,
                                 .k = k,
                                 .a = a,
                                 .a_row = k,
                                 .a_col = 1,
                                 .b = b_end,
                                 .ldb = ldb,
                                 .c = c_end,
                                 .ldc = n};
        kernels->product(&t);
        t.c = want;
        tile_product_ref(&t);
        for (size_t i = 0; i < m * n; i++)
            assert_true(fabs((double)c_end[i] - (double)want[i]) <= 1e-6);
        free(b_end);
        free(c_end);
    }
}

static void test_ends(void **state)
{
    (void)state;
    with_all(ends);
}

/* The bits of a result row must not depend on the number of rows in the product. */
static void rows_alone(const struct tile_kernels *kernels)
{
    struct tile_product t = {.m = 61,
                             .n = 53,
                             .k = 70,
                             .a = a,
                             .a_row = 70,
                             .a_col = 1,
                             .b = b,
                             .ldb = 53,
                             .c = c,
                             .ldc = 53};
    kernels->product(&t);
    t.m = 1;
    t.c = want;
    for (size_t i = 0; i < 61; i++, t.a += 70) {
        kernels->product(&t);
        assert_memory_equal(want, c + i * 53, 53 * sizeof *c);
    }
}

static void test_rows_alone(void **state)
{
    (void)state;
    with_all(rows_alone);
}

/* The kernels that tile_product() selects are one of the builds that this CPU can run. */
static void test_choice(void **state)
{
    (void)state;
    ref_uniform(rng_key(5, RNG_TEST, 1, 0), a, A_FLOATS);
    ref_uniform(rng_key(5, RNG_TEST, 2, 0), b, B_FLOATS);
    struct tile_product t = {.m = 20,
                             .n = 40,
                             .k = 30,
                             .a = a,
                             .a_row = 30,
                             .a_col = 1,
                             .b = b,
                             .ldb = 40,
                             .c = c,
                             .ldc = 40};
    tile_product(&t);
    t.c = want;
    tile_product_ref(&t);
    for (size_t i = 0; i < 800; i++)
        assert_true(fabs((double)c[i] - (double)want[i]) <= 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_runs),
        cmocka_unit_test(test_slim),       cmocka_unit_test(test_nans),
        cmocka_unit_test(test_empty),      cmocka_unit_test(test_ends),
        cmocka_unit_test(test_rows_alone), cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
