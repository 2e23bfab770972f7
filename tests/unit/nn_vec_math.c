/* tests/unit/nn_vec_math.c -- exp, tanh and sigmoid are compared with libm in double precision:
 * over all exponents, at the ends of their ranges, and in vector code for each instruction set. */
#include "nn/math/vec_math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    RUN = 4096,
    STEP = 4099 /* The test takes every STEP-th float, counted in bit patterns. */
};

typedef void (*run_fn)(float *restrict to, const float *restrict x);

static void run_exp(float *restrict to, const float *restrict x)
{
    for (size_t j = 0; j < RUN; j++)
        to[j] = vec_exp(x[j]);
}

static void run_tanh(float *restrict to, const float *restrict x)
{
    for (size_t j = 0; j < RUN; j++)
        to[j] = vec_tanh(x[j]);
}

static void run_sigmoid(float *restrict to, const float *restrict x)
{
    for (size_t j = 0; j < RUN; j++)
        to[j] = vec_sigmoid(x[j]);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Returns the error of `got` in units in the last place of the true value as a float. */
static double ulps(float got, double want)
{
    int exponent;
    (void)frexp(want, &exponent);
    exponent = exponent > -125 ? exponent : -125;
    return fabs((double)got - want) / ldexp(1, exponent - 24);
}

/* Tests every STEP-th float. The result must be near 0 for inputs below `least` and infinite for
 * inputs above `most`. */
static void sweep(run_fn run, double (*true_value)(double), double worst, float least, float most)
{
    static float x[RUN], y[RUN];
    for (uint64_t bits = 0; bits < 1ull << 32; bits += (uint64_t)RUN * STEP) {
        for (size_t j = 0; j < RUN; j++)
            x[j] = vec_math_float((uint32_t)(bits + j * STEP));
        run(y, x);
        for (size_t j = 0; j < RUN; j++) {
            if (isnan(x[j])) {
                assert_true(isnan(y[j]));
                continue;
            }
            double want = true_value((double)x[j]);
            if (x[j] < least)
                assert_true(y[j] >= 0.0f && y[j] < 1.2e-38f);
            else if (x[j] > most)
                assert_true(isinf(y[j]) && y[j] > 0.0f);
            else if (!(ulps(y[j], want) <= worst))
                fail_msg("%a: %a, expected %a", (double)x[j], (double)y[j], want);
        }
    }
}

static void is_exp_within_two_ulp(void **state)
{
    (void)state;
    sweep(run_exp, exp, 2, -0x1.5d51ecp+6f, 0x1.62e42ep+6f);
}

static void is_tanh_within_three_ulp(void **state)
{
    (void)state;
    sweep(run_tanh, tanh, 3, -INFINITY, INFINITY);
}

static void is_sigmoid_within_three_ulp(void **state)
{
    (void)state;
    sweep(run_sigmoid, sigmoid, 3, -87.33f, INFINITY);
}

static void are_edges_right(void **state)
{
    (void)state;
    const float tiny[] = {0x1p-149f, 0x1.8p-130f, 0x1p-126f, 0x1p-60f, 0x1p-20f};
    assert_true(vec_exp(0.0f) == 1.0f && vec_exp(-0.0f) == 1.0f);
    assert_true(vec_exp(INFINITY) == INFINITY && vec_exp(-INFINITY) == 0.0f);
    assert_true(vec_exp(88.73f) == INFINITY && vec_exp(1e30f) == INFINITY);
    assert_true(vec_exp(0x1.62e42ep+6f) < INFINITY);
    assert_true(vec_exp(-87.4f) == 0.0f && vec_exp(-1e30f) == 0.0f);
    assert_true(vec_tanh(INFINITY) == 1.0f && vec_tanh(-INFINITY) == -1.0f);
    assert_true(vec_tanh(1e30f) == 1.0f && vec_tanh(-9.5f) == -1.0f);
    assert_true(!signbit(vec_tanh(0.0f)) && signbit(vec_tanh(-0.0f)));
    for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++) {
        assert_true(vec_tanh(tiny[i]) == tiny[i]);
        assert_true(vec_tanh(-tiny[i]) == -tiny[i]);
    }
    assert_true(vec_sigmoid(0.0f) == 0.5f && vec_sigmoid(-0.0f) == 0.5f);
    assert_true(vec_sigmoid(INFINITY) == 1.0f && vec_sigmoid(20.0f) == 1.0f);
    assert_true(vec_sigmoid(-INFINITY) == 0.0f && vec_sigmoid(-100.0f) == 0.0f);
    assert_true(isnan(vec_exp(NAN)) && isnan(vec_tanh(NAN)));
    assert_true(isnan(vec_sigmoid(NAN)) && isnan(vec_exp(-NAN)));
}

static void does_exp_never_fall(void **state)
{
    (void)state;
    float before = 0;
    for (uint32_t i = 0; i < 2000000; i++) {
        float y = vec_exp((float)i * 1e-4f - 100.0f);
        /* Where two pieces of the piecewise approximation meet, rounding may lower the result by
         * one unit in the last place. */
        assert_true(y >= before * (1 - 0x1p-23f));
        before = y;
    }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(HEARSAY_SANITIZED)
#define LEVEL(name, level)                                                                         \
    __attribute__((target(level))) static void name(float *restrict to, const float *restrict x)   \
    {                                                                                              \
        for (size_t j = 0; j < RUN; j++)                                                           \
            to[j] = vec_exp(x[j]) + vec_tanh(x[j]) * vec_sigmoid(x[j]);                            \
    }
LEVEL(all_sse2, "sse2")
LEVEL(all_avx2, "avx2")
LEVEL(all_avx512, "arch=x86-64-v4")

static void are_levels_equal(void **state)
{
    (void)state;
    static float x[RUN], a[RUN], b[RUN];
    run_fn levels[] = {__builtin_cpu_supports("avx2") ? all_avx2 : all_sse2,
                       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
                               && __builtin_cpu_supports("avx512bw")
                               && __builtin_cpu_supports("avx512dq")
                               && __builtin_cpu_supports("avx512cd")
                           ? all_avx512
                           : all_sse2};
    for (uint64_t bits = 0; bits < 1ull << 32; bits += (uint64_t)RUN * STEP) {
        for (size_t j = 0; j < RUN; j++)
            x[j] = vec_math_float((uint32_t)(bits + j * STEP));
        all_sse2(a, x);
        for (size_t l = 0; l < 2; l++) {
            levels[l](b, x);
            for (size_t j = 0; j < RUN; j++)
                if (!isnan(a[j]) || !isnan(b[j]))
                    assert_int_equal(vec_math_bits(a[j]), vec_math_bits(b[j]));
        }
    }
}
#else
static void are_levels_equal(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_exp_within_two_ulp),       cmocka_unit_test(is_tanh_within_three_ulp),
        cmocka_unit_test(is_sigmoid_within_three_ulp), cmocka_unit_test(are_edges_right),
        cmocka_unit_test(does_exp_never_fall),         cmocka_unit_test(are_levels_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
