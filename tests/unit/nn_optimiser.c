/* Learning rates by hand; optimiser steps against a scalar loop. */
#include "nn_ref.h"

#include "nn/optimiser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void lr_is(struct schedule s, uint64_t round, double want)
{
    double got = schedule_lr(&s, round);
    if (!(fabs(got - want) <= 1e-12))
        fail_msg("round %llu: %.15g, expected %.15g",
                 (unsigned long long)round, got, want);
}

static void test_schedules(void **state)
{
    (void)state;
    struct schedule s = {SCHEDULE_CONSTANT, 0.8, 4, 0};
    lr_is(s, 0, 0.2);
    lr_is(s, 1, 0.4);
    lr_is(s, 3, 0.8);
    lr_is(s, 4, 0.8);
    lr_is(s, UINT64_MAX, 0.8);
    s = (struct schedule){SCHEDULE_STEP, 1, 2, 100};
    lr_is(s, 0, 0.5);
    lr_is(s, 49, 1);
    lr_is(s, 50, 0.1);
    lr_is(s, 74, 0.1);
    lr_is(s, 75, 0.01);
    lr_is(s, 99, 0.01);
    lr_is(s, 1000, 0.01);
    s = (struct schedule){SCHEDULE_COSINE, 0.1, 20, 120};
    lr_is(s, 19, 0.1);
    lr_is(s, 20, 0.1);
    lr_is(s, 45, 0.05 * (1 + sqrt(0.5)));
    lr_is(s, 70, 0.05);
    lr_is(s, 119, 0.05 * (1 + cos(3.14159265358979323846 * 0.99)));
    lr_is(s, 120, 0.05 * (1 + cos(3.14159265358979323846 * 0.99)));
    s = (struct schedule){SCHEDULE_COSINE, 0.1, 0, 1};
    lr_is(s, 0, 0.1);
    s = (struct schedule){SCHEDULE_COSINE, 0.1, 10, 5}; /* All warm-up. */
    lr_is(s, 4, 0.05);
    lr_is(s, 50, 0.1);
}

enum {
    N = 37 + 5 + 9 /* A weight, a bias, running statistics. */
};

static const struct segment segments[] = {
    {.offset = 0, .n = 37, .decays = true, .trained = true},
    {.offset = 37, .n = 5, .decays = false, .trained = true},
    {.offset = 42, .n = 9, .decays = true, .trained = false},
};

static void check_steps(struct optimiser o)
{
    double x[N], grad[N], m[N] = {0}, unused[N];
    float xf[N], gradf[N], mf[N] = {0};
    ref_noise(rng_key(1, RNG_TEST, 1, 0), 1, x, xf, N);
    for (uint64_t t = 0; t < 5; t++) {
        double lr = 0.1 / (double)(t + 1);
        ref_noise(rng_key(1, RNG_TEST, 2, t), 1, grad, gradf, N);
        struct optimiser_step s = {segments, 3, xf, gradf, mf, lr};
        optimiser_step(&o, &s);
        for (size_t i = 0; i < N - 9; i++) {
            double g = grad[i] + (i < 37 ? o.weight_decay * x[i] : 0);
            m[i] = o.momentum * m[i] + g;
            x[i] -= lr * (o.nesterov ? g + o.momentum * m[i] : m[i]);
        }
    }
    for (size_t i = 0; i < N; i++)
        if (!ref_near((double)xf[i], x[i], 2e-6))
            fail_msg("x[%zu]: %.9g, expected %.9g", i, (double)xf[i], x[i]);
    ref_noise(rng_key(1, RNG_TEST, 1, 0), 1, unused, gradf, N);
    assert_memory_equal(xf + 42, gradf + 42, 9 * sizeof *xf);
}

static void test_steps(void **state)
{
    (void)state;
    check_steps((struct optimiser){0});
    check_steps((struct optimiser){.momentum = 0.9});
    check_steps((struct optimiser){.momentum = 0.9, .nesterov = true});
    check_steps((struct optimiser){.weight_decay = 0.1});
    check_steps((struct optimiser){.momentum = 0.5, .nesterov = true,
                                   .weight_decay = 0.3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
