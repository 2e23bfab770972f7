/* tests/unit/compress_ternary.c -- tests the codecs onebit, thr2, tern, 3lc and dorefa.
 *
 * Per value, onebit sends one bit, thr2 two bits, tern and 3lc a ternary digit, and dorefa k bits.
 * dorefa has no code for the value 0. */
#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MILLION = 1000000 };

static float v[MILLION];

/* Sizes of messages of one million Gaussian values, including the first byte of the message. */
static void test_exact_sizes(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        size_t len;
    } sizes[] = {
        {"onebit", 125008 + 1}, {"onebit:512", 125000 + 8 * 1954 + 1},
        {"thr2", 250004 + 1},   {"thr2,form=mxnet", 250000 + 1},
        {"dorefa", 750004 + 1}, {"dorefa:1", 125004 + 1},
        {"tern", 200004 + 1},   {"tern:512", 1953 * 103 + 13 + 4 * 1954 + 1},
    };
    vector_fill(v, MILLION, VECTOR_GAUSS, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bench_rig r;
        rig_open(&r, sizes[i].spec, MILLION);
        assert_int_equal(rig_code(&r, 1, v), 0);
        if (r.len != sizes[i].len || compress_bound(r.c) != r.len || compress_nominal(r.c) != r.len)
            fail_msg("%s: %zu bytes, bound %zu, nominal %zu, expected %zu", sizes[i].spec, r.len,
                     compress_bound(r.c), compress_nominal(r.c), sizes[i].len);
        rig_close(&r);
    }
}

static void test_pinned_contraction(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        double gauss, laplace, heavy, tol;
    } pins[] = {
        {"onebit", .6366, .500, .085, .005},
        {"thr2", .8093, .7287, .334, .005},
        {"thr2:0.7", .8082, .7183, .320, .005},
        /* For Laplace data, the threshold 1 gives the best contraction: 2/e = .7358. */
        {"thr2:1", .7924, .7358, .360, .005},
        {"dorefa", .9984, .9947, .817, .002},
        /* dorefa:1 gives the same values as the codec sign. */
        {"dorefa:1", .6366, .500, .085, .005},
        {"dorefa:6,round=sr", .9968, .9894, .784, .002},
        {"tern", .6316, .656, .552, .005},
        {"tern,round=sr", .492, .493, .381, .005},
        {"tern,round=sr,scale=raw", -.009, .124, .359, .005},
        {"tern,clip=1.22", .8097, .733, .457, .005},
        {"tern:512,clip=0", .4395, .342, .563, .005},
        {"3lc", .089, .042, .096, .02},
        {"3lc:1.75", .0006, .0009, .012, .0024},
    };
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        const double expected[] = {pins[i].gauss, pins[i].laplace, pins[i].heavy};
        for (int kind = 0; kind < 3; kind++) {
            double delta = rig_mean_delta(pins[i].spec, (enum vector_kind)kind);
            if (!(fabs(delta - expected[kind]) <= pins[i].tol))
                fail_msg("%s on vector %d: delta %.4f, expected %.4f within %g", pins[i].spec, kind,
                         delta, expected[kind], pins[i].tol);
        }
    }
}

/* ---- each message, on every vector ---- */

static const char *const specs[] = {
    "onebit",
    "onebit:64",
    "thr2",
    "thr2:1000",
    "thr2:0.000000001:8",
    "thr2,form=mxnet",
    "dorefa",
    "dorefa:1",
    "dorefa:16",
    "dorefa:3:64,round=sr",
    "tern",
    "tern:512",
    "tern,clip=0",
    "tern,clip=0.001",
    "tern,scale=raw",
    "tern,round=sr",
    "3lc",
    "3lc:1.75",
    "3lc:1.999999999",
};
enum { N_SPECS = sizeof specs / sizeof specs[0] };

static const size_t lengths[] = {1,    2,    3,    4,    5,    6,     7,    8,    15,
                                 16,   17,   24,   25,   33,   257,   1023, 1024, 1025,
                                 4097, 5119, 5120, 5121, 6145, 10241, 65536};

/* No message increases the error, and the reported error is right. A vector that is not 0 does not
 * decode to 0, except in the historic form of thr2 and for denormal values. */
static void check_message(const char *spec, size_t n, int kind)
{
    struct bench_rig r;
    rig_open(&r, spec, n);
    vector_fill(v, n, (enum vector_kind)kind, 9);
    int err = rig_code(&r, 3, v);
    double x2 = vec_norm2(v, n);
    double e2 = vec_dist2(v, r.out, n);
    double c2 = vec_norm2(r.out, n);
    bool ok = err == 0 && e2 <= x2 * (1.0 + 1e-6) && fabs(r.stat.e2 - e2) <= 1e-5 * e2 + 1e-12 * x2
              && fabs(r.stat.x2 - x2) <= 1e-9 * x2;
    if (strstr(spec, "mxnet") == NULL && kind != VECTOR_DENORMAL)
        ok = ok && (c2 > 0.0) == (x2 > 0.0);
    if (!ok)
        fail_msg("%s: n=%zu vector=%d: |v|^2 %g error %g told %g", spec, n, kind, x2, e2,
                 r.stat.e2);
    rig_close(&r);
}

static void test_messages_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SPECS; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof lengths[0]; j++)
            for (int kind = 0; kind < VECTOR_KINDS; kind++)
                check_message(specs[i], lengths[j], kind);
}

/* onebit sends two optimal values and is never worse than sign, which sends one value and its
 * negative. */
static void test_onebit_beats_sign(void **state)
{
    (void)state;
    for (int kind = 0; kind < VECTOR_KINDS; kind++)
        for (size_t n = 1; n < 3000; n = 3 * n / 2 + 1) {
            struct bench_rig one, sign;
            rig_open(&one, "onebit", n);
            rig_open(&sign, "sign:0", n);
            vector_fill(v, n, (enum vector_kind)kind, n);
            for (size_t i = 0; i < n && kind == VECTOR_GAUSS; i++)
                v[i] += 0.7f; /* Makes more values positive than negative. */
            assert_int_equal(rig_code(&one, 1, v), 0);
            assert_int_equal(rig_code(&sign, 1, v), 0);
            double x2 = vec_norm2(v, n);
            double a = vec_dist2(v, one.out, n), b = vec_dist2(v, sign.out, n);
            if (!(a <= b * (1.0 + 1e-5) + 1e-12 * x2))
                fail_msg("vector %d, n=%zu: onebit %g, sign %g", kind, n, a, b);
            rig_close(&one);
            rig_close(&sign);
        }
}

/* The mean of tiny negative values is exact, although the positive values are huge. */
static void test_onebit_classes_apart(void **state)
{
    (void)state;
    enum { N = 100 };
    struct bench_rig r;
    rig_open(&r, "onebit", N);
    for (size_t i = 0; i < N; i++)
        v[i] = i % 3 == 0 ? 1e15f : -1e-15f;
    assert_int_equal(rig_code(&r, 1, v), 0);
    for (size_t i = 0; i < N; i++)
        assert_true(fabsf(r.out[i] - v[i]) <= 1e-6f * fabsf(v[i]));
    rig_close(&r);
}

/* Single values, equal values, and values of one sign are encoded exactly. */
static void test_degenerate(void **state)
{
    (void)state;
    static const char *const exact[] = {"onebit",   "thr2",           "dorefa", "tern",
                                        "tern:512", "tern,scale=raw", "3lc"};
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
        for (size_t n = 1; n <= 2000; n = 2 * n + 1)
            for (int sign = -1; sign <= 1; sign += 2) {
                struct bench_rig r;
                rig_open(&r, exact[i], n);
                for (size_t j = 0; j < n; j++)
                    v[j] = 0.3f * (float)sign;
                assert_int_equal(rig_code(&r, 1, v), 0);
                for (size_t j = 0; j < n; j++)
                    if (!(fabsf(r.out[j] - v[j]) <= 1e-6f))
                        fail_msg("%s: n=%zu: %g became %g", exact[i], n, (double)v[j],
                                 (double)r.out[j]);
                rig_close(&r);
            }
}

/* The form=mxnet of thr2 decodes to the threshold 0.5, its negative or 0, whatever the values
 * are. */
static void test_mxnet_values(void **state)
{
    (void)state;
    const float in[] = {0.5f, -0.5f, 0.4999f, -7.0f, 0.0f, 3.0f, -0.1f};
    const float out[] = {0.5f, -0.5f, 0.0f, -0.5f, 0.0f, 0.5f, 0.0f};
    struct bench_rig r;
    rig_open(&r, "thr2,form=mxnet", 7);
    assert_int_equal(rig_code(&r, 1, in), 0);
    assert_int_equal(r.len, 1 + 2);
    for (size_t i = 0; i < 7; i++)
        assert_true(r.out[i] == out[i]);
    rig_close(&r);
}

/* The historic form of dorefa (scale=raw) with 3 bits: tests values at known places between its
 * levels. */
static void test_dorefa_levels(void **state)
{
    (void)state;
    /* If the largest value is 7, the levels are -7, -5, ..., 7. Values are then rounded at even
     * numbers. */
    const float in[] = {7.0f, -7.0f, 0.0f, 1.9f, 2.1f, -1.9f, -2.1f, 5.9f};
    const float out[] = {7.0f, -7.0f, 1.0f, 1.0f, 3.0f, -1.0f, -3.0f, 5.0f};
    struct bench_rig r;
    rig_open(&r, "dorefa:3,scale=raw", 8);
    assert_int_equal(rig_code(&r, 1, in), 0);
    for (size_t i = 0; i < 8; i++)
        if (!(fabsf(r.out[i] - out[i]) <= 1e-6f))
            fail_msg("%g became %g, expected %g", (double)in[i], (double)r.out[i], (double)out[i]);
    rig_close(&r);
}

/* ---- stochastic rounding ---- */

enum { N = 64, DRAWS = 4096 };

/* For each coordinate, computes by how many exact standard deviations its mean over DRAWS draws
 * differs from its value. Returns the largest result. With `swap`, the draws are changed to those
 * of a codec that has the probabilities of rounding up and down swapped. The result must then be
 * large. */
static double worst_z(const char *spec, unsigned steps, bool centred, bool swap)
{
    static double sum[N];
    memset(sum, 0, sizeof sum);
    struct bench_rig r;
    rig_open(&r, spec, N);
    vector_fill(v, N, VECTOR_GAUSS, 5);
    double max = 0.0, worst = 0.0;
    for (size_t i = 0; i < N; i++)
        max = fmax(max, fabs((double)v[i]));
    double step = centred ? 2.0 * max / steps : max / steps;
    double offset = centred ? max : 0.0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, rng_key(6, RNG_TEST, draw, 0), v), 0);
        for (size_t i = 0; i < N; i++) {
            double low = step * floor(((double)v[i] + offset) / step) - offset;
            double out = (double)r.out[i];
            sum[i] += swap ? 2.0 * low + step - out : out;
        }
    }
    for (size_t i = 0; i < N; i++) {
        double a = ((double)v[i] + offset) / step;
        double f = a - floor(a);
        if (f < 1e-4 || f > 1.0 - 1e-4)
            continue; /* The largest value must be sent exactly. */
        double sd = step * sqrt(f * (1.0 - f) / DRAWS);
        worst = fmax(worst, fabs(sum[i] / DRAWS - (double)v[i]) / sd);
    }
    rig_close(&r);
    return worst;
}

static void test_unbiased(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        unsigned steps;
        bool centred;
    } all[] = {
        {"tern,clip=0,round=sr,scale=raw", 1, false},
        {"dorefa:6,round=sr,scale=raw", 63, true},
        {"dorefa:2,round=sr,scale=raw", 3, true},
        {"dorefa:1,round=sr,scale=raw", 1, true},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double z = worst_z(all[i].spec, all[i].steps, all[i].centred, false);
        if (!(z < 5.0))
            fail_msg("%s: a mean is off by %.1f deviations", all[i].spec, z);
        z = worst_z(all[i].spec, all[i].steps, all[i].centred, true);
        if (!(z >= 5.0))
            fail_msg("%s: swapped probabilities pass, %.1f", all[i].spec, z);
    }
}

/* TernGrad's error: E|C - v|^2 = (max |v| * |v|_1 / |v|^2 - 1) |v|^2. */
static void test_terngrad_variance(void **state)
{
    (void)state;
    enum { LONG = 512 };
    struct bench_rig r;
    rig_open(&r, "tern,clip=0,round=sr,scale=raw", LONG);
    vector_fill(v, LONG, VECTOR_GAUSS, 8);
    double max = 0.0, l1 = 0.0, x2 = vec_norm2(v, LONG);
    for (size_t i = 0; i < LONG; i++) {
        max = fmax(max, fabs((double)v[i]));
        l1 += fabs((double)v[i]);
    }
    double omega = max * l1 / x2 - 1.0;
    double mean = 0.0;
    for (uint64_t draw = 0; draw < 1000; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        mean += vec_dist2(v, r.out, LONG) / x2 / 1000.0;
    }
    if (!(fabs(mean - omega) <= 0.03 * omega))
        fail_msg("omega %.4f, expected %.4f", mean, omega);
    rig_close(&r);
}

/* Random draws are equal for equal keys and different for different keys, and differ from chunk to
 * chunk. */
static void test_draws(void **state)
{
    (void)state;
    static const char *const random[] = {"tern,round=sr", "dorefa:2,round=sr"};
    static float first[3000];
    for (size_t i = 0; i < 2; i++) {
        struct bench_rig r;
        rig_open(&r, random[i], 3000);
        for (size_t j = 0; j < 3000; j++)
            /* Most values are equal, so messages differ only by their random draws. */
            v[j] = j % 1000 == 0 ? 1.0f : 0.4f;
        assert_int_equal(rig_code(&r, 1, v), 0);
        memcpy(first, r.out, sizeof first);
        assert_int_equal(rig_code(&r, 1, v), 0);
        assert_memory_equal(first, r.out, sizeof first);
        assert_memory_not_equal(first, first + 1024, 1024 * sizeof *first);
        assert_int_equal(rig_code(&r, 2, v), 0);
        assert_memory_not_equal(first, r.out, sizeof first);
        rig_close(&r);
    }
}

/* Scaling by a power of two commutes with the codec: C(2^k v) = 2^k C(v), bit for bit. */
static void test_scale_equivariance(void **state)
{
    (void)state;
    static const int powers[] = {-60, -30, 30, 60};
    enum { LONG = 6000 };
    static float once[LONG];
    for (size_t i = 0; i < N_SPECS; i++)
        for (size_t p = 0; p < 4 && strstr(specs[i], "mxnet") == NULL; p++) {
            struct bench_rig r;
            rig_open(&r, specs[i], LONG);
            vector_fill(v, LONG, VECTOR_LAPLACE, 7);
            assert_int_equal(rig_code(&r, 3, v), 0);
            memcpy(once, r.out, sizeof once);
            size_t len = r.len;
            for (size_t j = 0; j < LONG; j++)
                v[j] = ldexpf(v[j], powers[p]);
            assert_int_equal(rig_code(&r, 3, v), 0);
            bool same = r.len == len;
            for (size_t j = 0; j < LONG; j++)
                same = same && r.out[j] == ldexpf(once[j], powers[p]);
            if (!same)
                fail_msg("%s: not equivariant under 2^%d", specs[i], powers[p]);
            rig_close(&r);
        }
}

/* Values that are not finite, or too large after scaling, are refused. */
static void test_out_of_range(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY, -0x1p64f};
    for (size_t i = 0; i < N_SPECS; i++)
        for (size_t j = 0; j < 4; j++) {
            struct bench_rig r;
            rig_open(&r, specs[i], 6000);
            vector_fill(v, 6000, VECTOR_GAUSS, 1);
            v[j * 1999] = bad[j];
            assert_int_equal(rig_code(&r, 1, v), -ERANGE);
            rig_close(&r);
        }
    struct bench_rig r;
    rig_open(&r, "3lc:1.75", 6000);
    vector_fill(v, 6000, VECTOR_GAUSS, 1);
    /* 3lc:1.75 multiplies the largest value, 1.125 * 2^63, by 1.75. The result is 0.984 * 2^64,
     * just under the limit 2^64. */
    v[7] = 0x1.2p63f;
    assert_int_equal(rig_code(&r, 1, v), 0);
    v[7] = 0x1.3p63f;
    assert_int_equal(rig_code(&r, 1, v), -ERANGE);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_sizes),
        cmocka_unit_test(test_pinned_contraction),
        cmocka_unit_test(test_messages_contract),
        cmocka_unit_test(test_onebit_beats_sign),
        cmocka_unit_test(test_onebit_classes_apart),
        cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_mxnet_values),
        cmocka_unit_test(test_dorefa_levels),
        cmocka_unit_test(test_unbiased),
        cmocka_unit_test(test_terngrad_variance),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_scale_equivariance),
        cmocka_unit_test(test_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
