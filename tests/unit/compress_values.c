/* Pinned figures: contraction, sizes, unbiasedness, levels. */
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum {
    D = 65536,
    SEEDS = 8,
    MILLION = 1000000
};

static float v[MILLION];

/* Mean contraction over the seeds. */
static double mean_delta(const char *spec, enum vector_kind kind)
{
    struct bench_rig r;
    double sum = 0.0;
    rig_open(&r, spec, D);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        vector_fill(v, D, kind, seed);
        sum += rig_delta(&r, seed, v);
    }
    rig_close(&r);
    return sum / SEEDS;
}

static void test_pinned_contraction(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum vector_kind kind;
        double delta, tol;
    } pins[] = {
        {"none", VECTOR_GAUSS, 1.0, 1e-12},
        {"fp16", VECTOR_GAUSS, 1.0, 1e-6},
        {"topk:0.01", VECTOR_GAUSS, 0.0845, 0.005},
        {"topk:0.1", VECTOR_GAUSS, 0.4393, 0.005},
        {"topk:0.01+qsgd:4", VECTOR_GAUSS, 0.083, 0.005},
        {"randk:0.01", VECTOR_GAUSS, 0.010, 0.0005},
        {"randk:0.1", VECTOR_GAUSS, 0.1, 0.0015},
        {"sign:0", VECTOR_GAUSS, 0.6366, 0.005},
        {"sign", VECTOR_GAUSS, 0.6366, 0.005},
        {"qsgd:4", VECTOR_GAUSS, 0.982, 0.005},
        {"qsgd:4,round=sr", VECTOR_GAUSS, 0.965, 0.005},
        {"qsgd:4:512:l2,round=sr", VECTOR_GAUSS, 0.388, 0.005},
        {"qsgd:4:512:l2,round=sr,scale=inv1w", VECTOR_GAUSS, 0.329, 0.005},
        {"qsgd:4:512:l2,round=sr,scale=raw", VECTOR_GAUSS, -0.58, 0.02},
        {"qsgd:2,round=sr", VECTOR_GAUSS, 0.388, 0.005},
        {"qsgd:2", VECTOR_GAUSS, 0.4395, 0.005}, /* Of 2^24 values. */
        {"sign:0", VECTOR_LAPLACE, 0.500, 0.005},
        {"topk:0.01", VECTOR_LAPLACE, 0.162, 0.005},
        {"topk:0.1", VECTOR_LAPLACE, 0.595, 0.005},
        {"qsgd:4", VECTOR_LAPLACE, 0.962, 0.005},
        {"topk:0.01", VECTOR_HEAVY, 0.66, 0.02},
        {"sign:0", VECTOR_HEAVY, 0.085, 0.005},
    };
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        double delta = mean_delta(pins[i].spec, pins[i].kind);
        if (!(fabs(delta - pins[i].delta) <= pins[i].tol))
            fail_msg("%s on vector %d: delta %.4f, expected %.4f within %g",
                     pins[i].spec, (int)pins[i].kind, delta, pins[i].delta,
                     pins[i].tol);
    }
}

/* The error of top-k is the sum of the smallest squares: keep them all but
 * one, and it is the least. */
static void test_topk_identity(void **state)
{
    (void)state;
    struct bench_rig r;
    rig_open(&r, "topk:0.99", 100);
    vector_fill(v, 100, VECTOR_GAUSS, 1);
    double least = INFINITY;
    for (size_t i = 0; i < 100; i++)
        least = fmin(least, (double)v[i] * (double)v[i]);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(fabs(r.stat.e2 - least) <= 1e-12 * least);
    rig_close(&r);
}

/* Bytes of one million Gaussian values, the unit's first byte included. */
static void test_exact_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t len;
    } sizes[] = {
        {"none", 4000000 + 1},
        {"fp16", 2000000 + 977 + 1}, /* A byte for each 1024. */
        {"sign:0", 125004 + 1},
        {"sign", 125000 + 4 * 1954 + 1},
        {"qsgd:4", 507816 + 1},
        {"qsgd:2:0", 250004 + 1},
        {"qsgd:8", 1000000 + 4 * 1954 + 1},
        {"randk:0.01", 40008 + 1},
        {"randk:0.1+qsgd:4", 8 + 50000 + 4 * 196 + 1},
    };
    vector_fill(v, MILLION, VECTOR_GAUSS, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bench_rig r;
        rig_open(&r, sizes[i].spec, MILLION);
        assert_int_equal(rig_code(&r, 1, v), 0);
        if (r.len != sizes[i].len || compress_bound(r.c) != r.len ||
            compress_nominal(r.c) != r.len)
            fail_msg("%s: %zu bytes, bound %zu, nominal %zu, expected %zu",
                     sizes[i].spec, r.len, compress_bound(r.c),
                     compress_nominal(r.c), sizes[i].len);
        rig_close(&r);
    }
}

/* Positions cost 8.108 bits at 1 %, 4.756 at 10 %. */
static void test_position_bits(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double k, values, bits;
    } pins[] = {
        {"topk:0.01", 1e4, 4e4, 8.108},
        {"topk:0.1", 1e5, 4e5, 4.756},
        {"topk:0.01+qsgd:4", 1e4, 5000 + 4 * 20, 8.108},
        {"topk:0.01+sign", 1e4, 1250 + 4 * 20, 8.108},
        {"topk:0.01+fp16", 1e4, 20000 + 10, 8.108},
    };
    vector_fill(v, MILLION, VECTOR_GAUSS, 2);
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        struct bench_rig r;
        rig_open(&r, pins[i].spec, MILLION);
        assert_int_equal(rig_code(&r, 1, v), 0);
        double head = 1 + 3 + 1 + 3; /* First byte, k, parameter, length. */
        if (i == 0 || i > 1) /* 10^4 is a varint of two, 10,135 too. */
            head = 1 + 2 + 1 + 2;
        double bits = 8.0 * ((double)r.len - head - pins[i].values) / pins[i].k;
        double nominal = (double)compress_nominal(r.c) / (double)r.len;
        if (!(fabs(bits - pins[i].bits) <= 0.011))
            fail_msg("%s: %.4f bits a position, expected %.3f", pins[i].spec,
                     bits, pins[i].bits);
        assert_true(fabs(nominal - 1.0) <= 0.02);
        rig_close(&r);
    }
}

/* The budget of the sockets: 30 times fewer bytes with sign on a LeNet-5, and
 * 60 with topk:0.01+qsgd:4. */
static void test_budget(void **state)
{
    (void)state;
    const size_t d = 61706;
    vector_fill(v, d, VECTOR_GAUSS, 3);
    struct bench_rig r;
    rig_open(&r, "sign", d);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(4.0 * (double)d / (double)r.len >= 30.0);
    rig_close(&r);
    rig_open(&r, "topk:0.01+qsgd:4", d);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(4.0 * (double)d / (double)r.len >= 200.0);
    rig_close(&r);
}

/* Raw stochastic rounding is unbiased: z of every coordinate's mean against
 * the exact deviation, (N/s)^2 f (1 - f). */
static void unbiased(const char *spec, double levels, bool l2)
{
    enum {
        N = 64,
        DRAWS = 4096
    };
    static double sum[N];
    struct bench_rig r;
    rig_open(&r, spec, N);
    vector_fill(v, N, VECTOR_GAUSS, 5);
    memset(sum, 0, sizeof sum);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, rng_key(6, RNG_TEST, draw, 0), v), 0);
        for (size_t i = 0; i < N; i++)
            sum[i] += (double)r.out[i];
    }
    double norm = 0.0;
    for (size_t i = 0; i < N; i++)
        norm = fmax(norm, fabs((double)v[i]));
    if (l2)
        norm = sqrt(vec_norm2(v, N));
    double z2 = 0.0;
    size_t free_ones = 0;
    for (size_t i = 0; i < N; i++) {
        double a = levels * fabs((double)v[i]) / norm;
        double f = a - floor(a);
        if (f < 1e-4 || f > 1.0 - 1e-4)
            continue; /* The largest is exact. */
        double sd = norm / levels * sqrt(f * (1.0 - f) / DRAWS);
        double z = (sum[i] / DRAWS - (double)v[i]) / sd;
        if (!(fabs(z) < 5.0))
            fail_msg("%s: coordinate %zu is off by %.1f deviations", spec, i, z);
        z2 += z * z;
        free_ones++;
    }
    double slack = 6.0 * sqrt(2.0 * (double)free_ones);
    if (!(fabs(z2 - (double)free_ones) <= slack))
        fail_msg("%s: sum of z^2 is %.1f over %zu", spec, z2, free_ones);
    rig_close(&r);
}

static void test_unbiased(void **state)
{
    (void)state;
    unbiased("qsgd:4:0:l2,round=sr,scale=raw", 7, true);
    unbiased("qsgd:2:0:max,round=sr,scale=raw", 1, false);
    unbiased("qsgd:6:0:l2,round=sr,scale=raw,levels=16", 16, true);
}

/* The exact error of stochastic rounding, (N/s)^2 sum f (1 - f). */
static void test_exact_variance(void **state)
{
    (void)state;
    enum {
        N = 512,
        DRAWS = 300
    };
    struct bench_rig r;
    rig_open(&r, "qsgd:4:512:l2,round=sr,scale=raw", N);
    vector_fill(v, N, VECTOR_GAUSS, 8);
    double norm = sqrt(vec_norm2(v, N));
    double expected = 0.0;
    for (size_t i = 0; i < N; i++) {
        double a = 7.0 * fabs((double)v[i]) / norm;
        double f = a - floor(a);
        expected += norm / 7.0 * (norm / 7.0) * f * (1.0 - f);
    }
    double mean = 0.0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        mean += r.stat.e2 / DRAWS;
    }
    assert_true(fabs(mean - expected) <= 0.03 * expected);
    rig_close(&r);
}

/* Neighbours of one message and messages of one element draw independently. */
static void test_draws_uncorrelated(void **state)
{
    (void)state;
    enum {
        N = 1024
    };
    struct bench_rig r;
    rig_open(&r, "qsgd:2:0:max,round=sr,scale=raw", N);
    for (size_t i = 0; i < N; i++)
        v[i] = i == 0 ? 1.0f : 0.5f; /* A fair coin each but the first. */
    double same_next = 0.0;
    double same_draw = 0.0;
    static float last[N];
    const size_t draws = 200;
    for (uint64_t draw = 0; draw <= draws; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t i = 1; i < N && draw > 0; i++) {
            same_next += i > 1 && r.out[i] == r.out[i - 1];
            same_draw += r.out[i] == last[i];
        }
        memcpy(last, r.out, sizeof last);
    }
    double trials = (double)draws * (N - 1);
    double slack = 5.0 * 0.5 / sqrt(trials);
    assert_true(fabs(same_next / (trials - (double)draws) - 0.5) <= slack);
    assert_true(fabs(same_draw / trials - 0.5) <= slack);
    rig_close(&r);
}

/* randk takes each coordinate with probability k/n. */
static void test_randk_marginals(void **state)
{
    (void)state;
    enum {
        N = 101,
        DRAWS = 20000
    };
    static size_t hits[N];
    struct bench_rig r;
    rig_open(&r, "randk:0.2", N);
    memset(hits, 0, sizeof hits);
    for (size_t i = 0; i < N; i++)
        v[i] = 1.0f;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        size_t k = 0;
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t i = 0; i < N; i++) {
            assert_true(r.out[i] == 0.0f || r.out[i] == 1.0f); /* Unscaled. */
            hits[i] += r.out[i] == 1.0f;
            k += r.out[i] == 1.0f;
        }
        assert_int_equal(k, 21);
    }
    for (size_t i = 0; i < N; i++) { /* Strata of 4 or 5. */
        double p = (double)hits[i] / DRAWS;
        assert_true(fabs(p - 0.2) <= 0.015 || fabs(p - 0.25) <= 0.015);
    }
    rig_close(&r);
}

/* A bucket's only value is its norm: level s exactly, never s + 1. */
static void test_level_overflow(void **state)
{
    (void)state;
    enum {
        BUCKETS = 100000,
        N = 8 * BUCKETS
    };
    static const char *const specs[] = {
        "qsgd:2:8:max,scale=raw",   "qsgd:4:8:max,round=sr,scale=raw",
        "qsgd:8:8:l2,scale=raw",    "qsgd:8:8:l2,round=sr,scale=raw",
        "qsgd:2:8:l2,round=sr",     "qsgd:6:8:max,levels=16",
    };
    struct rng rng = rng_stream(rng_key(4, RNG_TEST, 0, 0));
    for (size_t i = 0; i < N; i++)
        v[i] = i % 8 == 3 ? (float)rng_normal(&rng) : 0.0f;
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        struct bench_rig r;
        rig_open(&r, specs[s], N);
        assert_int_equal(rig_code(&r, s, v), 0);
        for (size_t i = 0; i < N; i++)
            if (!(fabsf(r.out[i] - v[i]) <= 3e-7f * fabsf(v[i])))
                fail_msg("%s: %zu: %a became %a", specs[s], i, (double)v[i],
                         (double)r.out[i]);
        rig_close(&r);
    }
}

/* fp16 rounds to nearest even, also among its subnormals. */
static void test_fp16_rounding(void **state)
{
    (void)state;
    static const float pairs[][2] = {
        /* Block's largest is 1.5: a step is 2^-10 at 1, 2^-38 at the least. */
        {1.0f + 0x1p-11f, 1.0f},
        {1.0f + 0x1.8p-10f, 1.0f + 0x1p-9f},
        {-1.0f - 0x1.2p-11f, -1.0f - 0x1p-10f},
        {0x1p-38f, 0x1p-38f},
        {0x1.8p-38f, 0x1p-37f},
        {0x1p-39f, 0.0f},
        {-0x1p-39f, 0.0f},
        {-0x1.0002p-39f, -0x1p-38f},
        {0x1.ffcp-1f, 0x1.ffcp-1f},
        {0x1.fffp-1f, 1.0f},
    };
    enum {
        N = sizeof pairs / sizeof pairs[0]
    };
    struct bench_rig r;
    rig_open(&r, "fp16", N + 1);
    for (size_t i = 0; i < N; i++)
        v[i] = pairs[i][0];
    v[N] = 1.5f;
    assert_int_equal(rig_code(&r, 1, v), 0);
    for (size_t i = 0; i < N; i++)
        if (!(r.out[i] == pairs[i][1]))
            fail_msg("%a became %a, expected %a", (double)pairs[i][0],
                     (double)r.out[i], (double)pairs[i][1]);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pinned_contraction),
        cmocka_unit_test(test_topk_identity),
        cmocka_unit_test(test_exact_sizes),
        cmocka_unit_test(test_position_bits),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_unbiased),
        cmocka_unit_test(test_exact_variance),
        cmocka_unit_test(test_draws_uncorrelated),
        cmocka_unit_test(test_randk_marginals),
        cmocka_unit_test(test_level_overflow),
        cmocka_unit_test(test_fp16_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
