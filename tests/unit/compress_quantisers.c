/* tests/unit/compress_quantisers.c -- tests the codecs bf16, int8, dyn8, qnt and nat.
 *
 * Tested are sizes, contraction, expected contractions, scaling and randomness. Single bytes are
 * tested in compress_quantisers_wire.c. */
#include "tests/unit/compress_vectors.h"

#include "compress/codec.h"
#include "compress/compress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MILLION = 1000000 };

static float v[MILLION], x[MILLION];

static void test_exact_sizes(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        size_t n, len;
    } sizes[] = {
        {"bf16", MILLION, 2000000},
        {"int8", MILLION, 1015628},
        {"int8:0", MILLION, 1000004},
        {"dyn8", MILLION, 1000004},
        {"dyn8:4096", MILLION, 1000000 + 4 * 245},
        {"qnt", MILLION, 1001024},
        {"qnt:64", MILLION, 750000 + 256},
        {"qnt:2", MILLION, 125000 + 8},
        {"qnt:8:4096", MILLION, 244 * (32 + 1536) + 32 + 216},
        {"nat", MILLION, 1125000},
        {"nat,round=near", MILLION, 1125000},
        /* Sizes of qnt messages of one block of n values. A message has as many means of 4 bytes
         * each as the largest power of two that is at most n, and one code for each value. */
        {"qnt", 1, 4},
        {"qnt", 2, 8 + 1},
        {"qnt", 3, 8 + 1},
        {"qnt", 4, 16 + 1},
        {"qnt", 9, 32 + 4},
        {"qnt", 255, 512 + 224},
        {"qnt", 256, 1024 + 256},
    };
    vector_fill(v, MILLION, VECTOR_GAUSS, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bench_rig r;
        rig_open(&r, sizes[i].spec, sizes[i].n);
        assert_int_equal(rig_code(&r, 1, v), 0);
        if (r.len != sizes[i].len + 1 || compress_bound(r.c) != r.len
            || compress_nominal(r.c) != r.len)
            fail_msg("%s: %zu bytes, bound %zu, nominal %zu, expected %zu + 1", sizes[i].spec,
                     r.len, compress_bound(r.c), compress_nominal(r.c), sizes[i].len);
        rig_close(&r);
    }
}

/* ---- contraction ---- */

/* Proved bounds of the error. They hold for vectors whose largest value is not subnormal. */
static const struct
{
    const char *spec;
    double worst; /* Largest |v - C(v)|^2, as a share of |v|^2. */
    /* block: it is also proved that |v - C(v)|^2 / |v|^2 <= 1 - 1/block. 0: there is no such
     * bound. */
    double block;
} proved[] = {
    {"bf16", 0x1p-16, 0},
    {"int8", 256.0 / 64516, 256},
    {"int8:8", 8.0 / 64516, 8},
    {"int8:0", 1, PIN_N},
    {"dyn8", 1, PIN_N},
    {"dyn8:64", 1, 64},
    {"qnt", 1, 0},
    {"qnt:2", 1, 0},
    {"qnt:32:256", 1, 0},
    /* The bound of the error holds for every random draw, even the worst. */
    {"nat", (7.0 / 9) * (7.0 / 9), 0},
    {"nat,round=near", 1.0 / 9, 0},
    {"nat,scale=raw", 1, 0},
    {"nat,round=near,scale=inv1w", 0.167, 0},
};

static void check_contraction(size_t i, enum vector_kind kind, size_t n)
{
    struct bench_rig r;
    rig_open(&r, proved[i].spec, n);
    vector_fill(v, n, kind, 3);
    assert_int_equal(rig_code(&r, 7, v), 0);
    double x2 = vec_norm2(v, n);
    double e2 = vec_dist2(v, r.out, n);
    double most = proved[i].worst * x2;
    if (kind == VECTOR_DENORMAL)
        most = x2;
    else if (proved[i].block > 0)
        most = fmin(most, x2 * (1.0 - 1.0 / fmin(proved[i].block, (double)n)));
    if (!(e2 <= most * (1.0 + 1e-5) + 1e-12 * x2))
        fail_msg("%s, vector %d, n=%zu: error %g of %g, proved %g", proved[i].spec, (int)kind, n,
                 e2, x2, most);
    if (!(fabs(r.stat.e2 - e2) <= 1e-5 * e2 + 1e-12 * x2) || !(fabs(r.stat.x2 - x2) <= 1e-9 * x2))
        fail_msg("%s, vector %d, n=%zu: e2 said %g of %g, was %g of %g", proved[i].spec, (int)kind,
                 n, r.stat.e2, r.stat.x2, e2, x2);
    for (size_t j = 0; j < n; j++)
        if (!(fabsf(r.out[j]) < CODEC_LIMIT))
            fail_msg("%s: %a became %a", proved[i].spec, (double)v[j], (double)r.out[j]);
    rig_close(&r);
}

static void test_contraction(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,   2,   3,   7,    8,    9,    255, 256,
                                   257, 511, 513, 1023, 1024, 1025, 8193};
    for (size_t i = 0; i < sizeof proved / sizeof proved[0]; i++)
        for (unsigned kind = 0; kind < VECTOR_KINDS; kind++)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                check_contraction(i, (enum vector_kind)kind, sizes[s]);
}

static void test_pinned_contraction(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        enum vector_kind kind;
        double low, high;
    } pins[] = {
        {"bf16", VECTOR_GAUSS, 1.0 - 3e-6, 1.0},
        /* For normally distributed values, a contraction of about 0.99996 is expected. */
        {"int8", VECTOR_GAUSS, 0.99993, 0.99998},
        {"int8:4096", VECTOR_GAUSS, 0.9998, 1.0},
        {"int8:4096", VECTOR_LAPLACE, 0.9995, 0.9999},
        {"int8:4096", VECTOR_HEAVY, 0.9978, 0.9998},
        {"dyn8", VECTOR_GAUSS, 0.999, 1.0},
        {"dyn8", VECTOR_LAPLACE, 0.999, 1.0},
        {"dyn8", VECTOR_HEAVY, 0.999, 1.0},
        {"qnt", VECTOR_GAUSS, 0.999, 1.0},
        {"qnt:16", VECTOR_GAUSS, 0.973, 0.983},
        {"nat", VECTOR_GAUSS, 0.918, 0.928},
        {"nat,scale=raw", VECTOR_GAUSS, 0.914, 0.924},
        {"nat,round=near", VECTOR_GAUSS, 0.957, 0.967},
    };
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        double delta = rig_mean_delta(pins[i].spec, pins[i].kind);
        if (!(delta >= pins[i].low && delta <= pins[i].high))
            fail_msg("%s on vector %d: delta %.6f, expected %g to %g", pins[i].spec,
                     (int)pins[i].kind, delta, pins[i].low, pins[i].high);
    }
}

/* Scaling by a power of two commutes with the codec: C(2^k v) = 2^k C(v), bit for bit. The codes
 * after the first `head` bytes do not change. */
static void check_scale(const char *spec, enum vector_kind kind, int k, size_t head)
{
    enum { N = 2999 };
    struct bench_rig a, b;
    rig_open(&a, spec, N);
    rig_open(&b, spec, N);
    vector_fill(v, N, kind, 11);
    for (size_t i = 0; i < N; i++)
        x[i] = ldexpf(v[i], k);
    assert_int_equal(rig_code(&a, 4, v), 0);
    assert_int_equal(rig_code(&b, 4, x), 0);
    for (size_t i = 0; i < N; i++)
        if (!(ldexpf(a.out[i], k) == b.out[i]))
            fail_msg("%s, vector %d, 2^%d: element %zu: %a and %a", spec, (int)kind, k, i,
                     (double)a.out[i], (double)b.out[i]);
    if (head > 0)
        assert_memory_equal(a.bytes + head, b.bytes + head, a.len - head);
    rig_close(&a);
    rig_close(&b);
}

static void test_scale_equivariance(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        /* Length of the head, the only bytes that may change when the vector is scaled. 0: all
         * bytes may change, because the message has several scales or its codes are exponents. */
        size_t head;
    } specs[] = {
        {"bf16", 0},   {"int8:0", 5},        {"int8", 0},           {"dyn8", 5},
        {"dyn8:8", 0}, {"qnt", 1 + 1024},    {"qnt:16", 65},        {"qnt:4:8", 0},
        {"nat", 0},    {"nat,scale=raw", 0}, {"nat,round=near", 0},
    };
    static const int powers[] = {-60, -30, 30, 60};
    static const enum vector_kind kinds[] = {VECTOR_GAUSS, VECTOR_LAPLACE, VECTOR_TIES,
                                             VECTOR_SPARSE};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (size_t j = 0; j < 4; j++)
            for (size_t k = 0; k < 4; k++)
                check_scale(specs[i].spec, kinds[j], powers[k], specs[i].head);
}

/* ---- randomness of nat ---- */

/* nat with scale=raw is unbiased. The deviation of each mean is compared with the exact standard
 * deviation 2^k sqrt((m - 1)(2 - m)) of a value 2^k m. */
static void test_nat_unbiased(void **state)
{
    (void)state;
    enum { N = 64, DRAWS = 4096 };
    static double sum[N];
    struct bench_rig r;
    rig_open(&r, "nat,scale=raw", N);
    vector_fill(v, N, VECTOR_GAUSS, 5);
    memset(sum, 0, sizeof sum);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, rng_key(6, RNG_TEST, draw, 0), v), 0);
        for (size_t i = 0; i < N; i++)
            sum[i] += (double)r.out[i];
    }
    double z2 = 0.0;
    for (size_t i = 0; i < N; i++) {
        int k;
        double m = 2.0 * frexp(fabs((double)v[i]), &k);
        double sd = ldexp(sqrt((m - 1.0) * (2.0 - m) / DRAWS), k - 1);
        double z = (sum[i] / DRAWS - (double)v[i]) / sd;
        if (!(fabs(z) < 5.0))
            fail_msg("coordinate %zu is off by %.1f deviations", i, z);
        z2 += z * z;
    }
    if (!(fabs(z2 - N) <= 6.0 * sqrt(2.0 * N)))
        fail_msg("sum of z^2 is %.1f over %d", z2, N);
    rig_close(&r);
}

/* The relative variance of nat is largest, 1/8, for 4/3 times a power of two. Powers of two are
 * exact. */
static void test_nat_variance(void **state)
{
    (void)state;
    enum { N = 4096, DRAWS = 50 };
    static const int powers[] = {-100, -3, 0, 40};
    struct bench_rig r;
    rig_open(&r, "nat,scale=raw", N);
    for (size_t p = 0; p < sizeof powers / sizeof powers[0]; p++) {
        double omega = 0.0;
        for (size_t i = 0; i < N; i++)
            v[i] = ldexpf(i % 2 == 0 ? 4.0f / 3.0f : -4.0f / 3.0f, powers[p]);
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            assert_int_equal(rig_code(&r, draw, v), 0);
            omega += r.stat.e2 / r.stat.x2 / DRAWS;
        }
        if (!(fabs(omega - 0.125) <= 0.003))
            fail_msg("2^%d: omega %.5f, expected 0.125", powers[p], omega);
        for (size_t i = 0; i < N; i++)
            v[i] = ldexpf(-1.0f, powers[p] - (int)(i % 20));
        assert_int_equal(rig_code(&r, 1, v), 0);
        assert_memory_equal(r.out, v, N * sizeof *v);
    }
    rig_close(&r);
}

/* The random draws of adjacent values, of chunks and of messages are independent. */
static void test_nat_draws(void **state)
{
    (void)state;
    enum { N = 2048, DRAWS = 100 };
    static float last[N];
    struct bench_rig r;
    rig_open(&r, "nat,scale=raw", N);
    for (size_t i = 0; i < N; i++)
        v[i] = 1.5f;
    double next = 0.0, chunk = 0.0, draws = 0.0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, rng_key(9, RNG_TEST, draw, 0), v), 0);
        for (size_t i = 0; i + 1 < N; i++)
            next += r.out[i] == r.out[i + 1];
        for (size_t i = 0; i < N / 2; i++)
            chunk += r.out[i] == r.out[i + N / 2];
        for (size_t i = 0; i < N && draw > 0; i++)
            draws += r.out[i] == last[i];
        memcpy(last, r.out, sizeof last);
    }
    double slack = 5.0 * 0.5 / sqrt((double)DRAWS * N / 2);
    assert_true(fabs(next / ((double)DRAWS * (N - 1)) - 0.5) <= slack);
    assert_true(fabs(chunk / ((double)DRAWS * N / 2) - 0.5) <= slack);
    assert_true(fabs(draws / ((double)(DRAWS - 1) * N) - 0.5) <= slack);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_sizes),        cmocka_unit_test(test_contraction),
        cmocka_unit_test(test_pinned_contraction), cmocka_unit_test(test_scale_equivariance),
        cmocka_unit_test(test_nat_unbiased),       cmocka_unit_test(test_nat_variance),
        cmocka_unit_test(test_nat_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
