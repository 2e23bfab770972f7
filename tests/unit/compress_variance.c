/* tests/unit/compress_variance.c -- compares the mean error of each random codec with its formula,
 * to 3 %. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SIDE = 16, N = 2 * SIDE * SIDE, DRAWS = 2000 };

static float v[N];

static double largest(void)
{
    double max = 0.0;
    for (size_t i = 0; i < N; i++)
        max = fmax(max, fabs((double)v[i]));
    return max;
}

static double l1(void)
{
    double sum = 0.0;
    for (size_t i = 0; i < N; i++)
        sum += fabs((double)v[i]);
    return sum;
}

/* ---- formulas for E |v - C|^2 ---- */

/* Returns the total variance E |v - C(v)|^2 of QSGD: (N/s)^2 sum f (1 - f) for s levels and norm N,
 * where f is the fractional part of s |v| / N. */
static double qsgd_variance(double norm, double levels)
{
    double sum = 0.0;
    for (size_t i = 0; i < N; i++) {
        double a = levels * fabs((double)v[i]) / norm;
        double f = a - floor(a);
        sum += norm / levels * (norm / levels) * f * (1.0 - f);
    }
    return sum;
}

static double qsgd_l2(double levels)
{
    return qsgd_variance(sqrt(vec_norm2(v, N)), levels);
}

static double qsgd_max(double levels)
{
    return qsgd_variance(largest(), levels);
}

/* TernGrad: the relative variance is M |v|_1 / |v|^2 - 1, where M is the largest |v_i|. */
static double tern(double unused)
{
    (void)unused;
    return largest() * l1() - vec_norm2(v, N);
}

/* DoReFa rounds to a grid of 2^k - 1 steps from -M to M, where M is the largest |v_i|. */
static double dorefa(double bits)
{
    double step = 2.0 * largest() / (exp2(bits) - 1.0);
    double sum = 0.0;
    for (size_t i = 0; i < N; i++) {
        double a = ((double)v[i] + largest()) / step;
        double f = a - floor(a);
        sum += step * step * f * (1.0 - f);
    }
    return sum;
}

/* Natural compression rounds |v| to 2^k or 2^(k+1); the variance is (|v| - 2^k) (2^(k+1) - |v|). */
static double natural(double unused)
{
    (void)unused;
    double sum = 0.0;
    for (size_t i = 0; i < N; i++) {
        int e;
        double a = fabs((double)v[i]);
        frexp(a, &e);
        sum += (a - ldexp(0.5, e)) * (ldexp(1.0, e) - a);
    }
    return sum;
}

/* randk sends one of each n/k coordinates, multiplied by n/k. */
static double randk(double keep)
{
    return (1.0 / keep - 1.0) * vec_norm2(v, N);
}

/* Finds kappa by bisection, so that the probabilities min(1, kappa |v|) sum to `expected`. */
static double kappa_of(const double *a, size_t n, double expected)
{
    double low = 0.0, high = 1e12;
    for (int i = 0; i < 200; i++) {
        double kappa = 0.5 * (low + high), sum = 0.0;
        for (size_t j = 0; j < n; j++)
            sum += fmin(1.0, kappa * a[j]);
        *(sum < expected ? &low : &high) = kappa;
    }
    return low;
}

/* Returns the variance sum a^2 (1/p - 1) of values a that are sent as a/p with probability p. */
static double drawn(const double *a, size_t n, double expected)
{
    double kappa = kappa_of(a, n, expected), sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * a[i] * (1.0 / fmin(1.0, kappa * a[i]) - 1.0);
    return sum;
}

static double wangni(double keep)
{
    double a[N];
    for (size_t i = 0; i < N; i++)
        a[i] = fabs((double)v[i]);
    return drawn(a, N, ceil(keep * N));
}

struct formula
{
    const char *spec;
    double (*variance)(double);
    double arg;
};

static const struct formula formulas[] = {
    {"qsgd:4:512:l2,round=sr,scale=raw", qsgd_l2, 7},
    {"qsgd:2:512:l2,round=sr,scale=raw", qsgd_l2, 1},
    {"qsgd:8:512:l2,round=sr,scale=raw", qsgd_l2, 127},
    {"qsgd:6:0:max,round=sr,scale=raw,levels=16", qsgd_max, 16},
    {"tern,clip=0,round=sr,scale=raw", tern, 0},
    {"nat,scale=raw", natural, 0},
    {"randk:0.125,scale=unbiased", randk, 0.125},
    {"randk:0.5,scale=unbiased", randk, 0.5},
    {"wangni:0.125+none,scale=raw", wangni, 0.125},
    {"wangni:0.5+none,scale=raw", wangni, 0.5},
    {"dorefa:2,round=sr,scale=raw", dorefa, 2},
    {"dorefa:6,round=sr,scale=raw", dorefa, 6},
};

static double mean_error(const char *spec)
{
    struct segment s = {.n = N, .rows = SIDE, .cols = N / SIDE};
    struct bench_rig r;
    double mean = 0.0;
    rig_open_model(&r, spec, &s, 1);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        mean += vec_dist2(v, r.out, N) / DRAWS;
    }
    rig_close(&r);
    return mean;
}

static void test_formulas(void **state)
{
    (void)state;
    static const enum vector_kind kinds[] = {VECTOR_GAUSS, VECTOR_LAPLACE};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++) {
            const struct formula *f = &formulas[i];
            vector_fill(v, N, kinds[k], 8);
            double expected = f->variance(f->arg);
            double mean = mean_error(f->spec);
            if (!(fabs(mean - expected) <= 0.03 * expected))
                fail_msg("%s on vector %d: mean error %.5g, expected %.5g", f->spec, (int)kinds[k],
                         mean, expected);
        }
}

/* The relative variance of natural compression is largest, 1/8, for 4/3 times a power of two. */
static void test_natural_worst(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = (i % 2 ? -4.0f : 4.0f) / 3.0f * ldexpf(1.0f, (int)(i % 40) - 20);
    double expected = vec_norm2(v, N) / 8.0;
    struct bench_rig r;
    double mean = 0.0, each = 0.0;
    rig_open(&r, "nat,scale=raw", N);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        mean += r.stat.e2 / DRAWS;
        for (size_t i = 0; i < N; i++) {
            double e = ((double)v[i] - (double)r.out[i]) / (double)v[i];
            each += e * e / N / DRAWS;
        }
    }
    rig_close(&r);
    assert_true(fabs(each - 0.125) <= 0.003);
    assert_true(fabs(mean - expected) <= 0.03 * expected);
}

/* The codec atomo draws singular values with the probabilities with which the codec wangni draws
 * coordinates. On a diagonal matrix the formula for wangni therefore also holds for atomo. Some of
 * the probabilities are limited to 1 and some are not. */
static void test_atomo(void **state)
{
    (void)state;
    enum {
        M = 16 /* Side of the matrix. Smaller matrices are sent uncompressed. */
    };
    static const double sigmas[2][M] = {{8, 7, 6, 5, 4, 3, 2, 1}, {100, 9, 5, 4, 3, 2, 1, 0.5}};
    for (size_t s = 0; s < 2; s++) {
        struct segment square = {.n = M * M, .rows = M, .cols = M};
        struct bench_rig r;
        double mean = 0.0;
        memset(v, 0, sizeof v);
        for (size_t i = 0; i < 8; i++)
            v[(M + 1) * i] = (float)sigmas[s][i];
        double expected = drawn(sigmas[s], 8, 3.0);
        rig_open_model(&r, "atomo:3,scale=raw", &square, 1);
        for (uint64_t draw = 0; draw < 4 * DRAWS; draw++) {
            assert_int_equal(rig_code(&r, draw, v), 0);
            mean += r.stat.e2 / (4 * DRAWS);
        }
        if (!(fabs(mean - expected) <= 0.05 * expected))
            fail_msg("atomo: mean error %.4g, expected %.4g", mean, expected);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_natural_worst),
        cmocka_unit_test(test_atomo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
