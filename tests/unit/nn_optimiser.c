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

/* Over the clip it is scaled to it, under it untouched; what is not trained
 * neither counts nor changes, and what is not finite is left to be noticed. */
static void test_clip(void **state)
{
    (void)state;
    double wide[N];
    float grad[N], was[N];
    ref_noise(rng_key(1, RNG_TEST, 3, 0), 1, wide, was, N);
    was[45] = 1e30f; /* Not trained. */
    double norm = sqrt(vec_norm2(was, 42));
    struct optimiser o = {0};
    for (int k = 0; k < 4; k++) {
        static const double share[] = {0, 0.25, 0.99, 1.01};
        o.clip = share[k] * norm;
        memcpy(grad, was, sizeof grad);
        optimiser_clip(&o, segments, 3, grad);
        double want = k == 0 || k == 3 ? 1 : share[k];
        for (size_t i = 0; i < N; i++)
            if (!ref_near((double)grad[i], (double)was[i] * (i < 42 ? want : 1), 1e-6))
                fail_msg("clip %g: [%zu] is %.9g, was %.9g", share[k], i,
                         (double)grad[i], (double)was[i]);
        if (want == 1)
            assert_memory_equal(grad, was, sizeof grad);
    }
    o.clip = 0.1;
    grad[3] = (float)NAN;
    optimiser_clip(&o, segments, 3, grad);
    assert_true(isnan(grad[3]));
    grad[3] = (float)INFINITY;
    optimiser_clip(&o, segments, 3, grad);
    assert_true(isinf(grad[3]));
    memset(grad, 0, sizeof grad);
    optimiser_clip(&o, segments, 3, grad);
    assert_true(vec_norm2(grad, N) == 0);
}

static void test_forget(void **state)
{
    (void)state;
    static const size_t size[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 51};
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        float m[N], sent[N];
        for (size_t i = 0; i < N; i++) {
            m[i] = 1 + (float)i;
            sent[i] = i % 3 == 0 ? -1e-30f : i % 3 == 1 ? -0.0f : 0.0f;
        }
        optimiser_forget(m, sent, size[s]);
        for (size_t i = 0; i < N; i++)
            assert_true(m[i] == (i % 3 == 0 && i < size[s] ? 0 : 1 + (float)i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
