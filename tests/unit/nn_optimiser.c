/* tests/unit/nn_optimiser.c -- learning rates are compared with hand-computed values, and optimiser
 * steps with a loop over single values. */
#include "nn/train/optimiser.h"

#include "nn/math/rng.h"
#include "nn_ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Draws n normal deviates, and stores the same values as doubles and as floats. */
static void noise(uint64_t a, uint64_t b, double *d, float *f, size_t n)
{
    struct rng r = rng_stream(rng_key(1, RNG_TEST, a, b));
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)rng_normal(&r);
        d[i] = (double)f[i];
    }
}

static void lr_is(struct schedule s, double round, double want)
{
    double got = schedule_lr(&s, round);
    if (!(fabs(got - want) <= 1e-12))
        fail_msg("round %g: %.15g, expected %.15g", round, got, want);
}

static void test_schedules(void **state)
{
    (void)state;
    struct schedule s = {SCHEDULE_CONSTANT, 0.8, 4, 0};
    lr_is(s, 0, 0.2);
    lr_is(s, 1, 0.4);
    lr_is(s, 3, 0.8);
    lr_is(s, 4, 0.8);
    lr_is(s, 0.5, 0.3);
    lr_is(s, 3.5, 0.8);
    lr_is(s, 1e19, 0.8);
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
    lr_is(s, 32.5, 0.05 * (1 + cos(3.14159265358979323846 / 8)));
    lr_is(s, 70, 0.05);
    lr_is(s, 119, 0.05 * (1 + cos(3.14159265358979323846 * 0.99)));
    lr_is(s, 120, 0.05 * (1 + cos(3.14159265358979323846 * 0.99)));
    s = (struct schedule){SCHEDULE_COSINE, 0.1, 0, 1};
    lr_is(s, 0, 0.1);
    /* The run has 5 rounds, so it ends during the warm-up of 10 rounds. */
    s = (struct schedule){SCHEDULE_COSINE, 0.1, 10, 5};
    lr_is(s, 4, 0.05);
    lr_is(s, 50, 0.1);
}

enum {
    /* Number of floats of the largest weight, a bias and running statistics together. */
    N_MAX = 1023 + 5 + 9,
    STEPS = 7
};

/* One parameter and its optimiser state, computed in double precision by the formulas in
 * nn/train/optimiser.h. */
struct element
{
    double x, m, v;
};

static void step_ref(const struct optimiser *o, const struct segment *seg, struct element *e,
                     double gradient, double lr, double t)
{
    double decay = seg->decays ? o->weight_decay : 0;
    if (!seg->trained) {
        e->x -= 0.1 * gradient;
        return;
    }
    double g = gradient + (o->kind == OPTIMISER_ADAMW ? 0 : decay * e->x);
    if (o->kind == OPTIMISER_SGD) {
        double mu = o->use == MOMENTUM_IGNORED ? 0 : o->momentum, m = mu * e->m + g;
        e->x -= lr * (o->nesterov ? g + mu * m : m);
        e->m = o->use == MOMENTUM_UPDATED || o->use == MOMENTUM_MIXED ? m : e->m;
        return;
    }
    bool held = o->use == MOMENTUM_HELD;
    if (o->kind == OPTIMISER_ADAMW)
        e->x -= lr * decay * e->x;
    double m = o->momentum * e->m + (held ? 1 : 1 - o->momentum) * g;
    double v = o->beta2 * e->v + (1 - o->beta2) * g * g;
    e->x -= lr * (m / (1 - pow(o->momentum, t))) / (sqrt(v / (1 - pow(o->beta2, t))) + 1e-8);
    e->m = held ? e->m : m;
    e->v = held ? e->v : v;
}

/* Compares STEPS optimiser steps with the scalar loop, on a weight of n_weight floats, a bias of 5
 * floats and running statistics of 9 floats. */
static void check_steps(const struct optimiser *o, size_t n_weight)
{
    struct segment segments[3] = {{.offset = 0, .n = n_weight, .decays = true, .trained = true},
                                  {.offset = n_weight, .n = 5, .trained = true},
                                  {.offset = n_weight + 5, .n = 9, .decays = true}};
    static struct element e[N_MAX];
    static double wide[N_MAX];
    static float x[N_MAX], grad[N_MAX], m[N_MAX], v[N_MAX];
    size_t n = n_weight + 14;
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    noise(1, 0, wide, x, n);
    for (size_t i = 0; i < n; i++)
        e[i] = (struct element){.x = wide[i]};
    bool constant = o->use == MOMENTUM_HELD || o->use == MOMENTUM_IGNORED;
    if (constant)
        noise(3, 0, wide, m, n);
    for (size_t i = 0; i < n && constant; i++) {
        e[i].m = wide[i];
        v[i] = o->kind == OPTIMISER_SGD ? 0 : (float)(0.1 + wide[i] * wide[i]);
        e[i].v = (double)v[i];
    }
    for (uint64_t t = 1; t <= STEPS; t++) {
        double lr = 0.1 / (double)t;
        noise(2, t, wide, grad, n);
        struct optimiser_step s = {.segments = segments,
                                   .n_segments = 3,
                                   .x = x,
                                   .grad = grad,
                                   .m = m,
                                   .v = o->kind == OPTIMISER_SGD ? NULL : v,
                                   .t = t,
                                   .lr = lr};
        optimiser_step(o, &s);
        for (size_t i = 0; i < n; i++)
            step_ref(o,
                     &segments[i < n_weight       ? 0
                               : i < n_weight + 5 ? 1
                                                  : 2],
                     &e[i], wide[i], lr, (double)t);
    }
    for (size_t i = 0; i < n; i++) {
        if (!ref_near((double)x[i], e[i].x, 2e-6))
            fail_msg("x[%zu] of %zu: %.9g, expected %.9g", i, n, (double)x[i], e[i].x);
        bool kept = o->momentum > 0;
        bool mixed = o->kind != OPTIMISER_SGD && o->use == MOMENTUM_MIXED && i < n_weight + 5;
        /* The moments in the form in which they are stored. */
        double first = mixed ? e[i].m / (1 - pow(o->momentum, STEPS)) : e[i].m;
        double second = mixed ? sqrt(e[i].v / (1 - pow(o->beta2, STEPS))) : e[i].v;
        if (!ref_near((double)m[i], kept ? first : 0, 2e-6)
            || !ref_near((double)v[i], second, 2e-6))
            fail_msg("m, v[%zu] of %zu: %.9g, %.9g", i, n, (double)m[i], (double)v[i]);
    }
}

static void test_steps(void **state)
{
    (void)state;
    static const struct optimiser all[] = {
        {.kind = OPTIMISER_SGD},
        {.momentum = 0.9},
        {.momentum = 0.9, .nesterov = true},
        {.weight_decay = 0.1},
        {.momentum = 0.5, .nesterov = true, .weight_decay = 0.3},
        {.momentum = 0.9, .use = MOMENTUM_HELD},
        {.momentum = 0.7, .nesterov = true, .weight_decay = 0.3, .use = MOMENTUM_HELD},
        {.momentum = 0.9, .nesterov = true, .weight_decay = 0.3, .use = MOMENTUM_IGNORED},
        {.kind = OPTIMISER_ADAM, .momentum = 0.9, .beta2 = 0.999},
        {.kind = OPTIMISER_ADAM, .momentum = 0.8, .beta2 = 0.9, .weight_decay = 0.2},
        {.kind = OPTIMISER_ADAMW, .momentum = 0.9, .beta2 = 0.95, .weight_decay = 0.3},
        {.kind = OPTIMISER_ADAM,
         .momentum = 0.8,
         .beta2 = 0.9,
         .weight_decay = 0.2,
         .use = MOMENTUM_HELD},
        {.kind = OPTIMISER_ADAMW,
         .momentum = 0.9,
         .beta2 = 0.95,
         .weight_decay = 0.3,
         .use = MOMENTUM_HELD},
        {.momentum = 0.9, .nesterov = true, .use = MOMENTUM_MIXED},
        {.kind = OPTIMISER_ADAM,
         .momentum = 0.8,
         .beta2 = 0.9,
         .weight_decay = 0.2,
         .use = MOMENTUM_MIXED},
        {.kind = OPTIMISER_ADAMW,
         .momentum = 0.9,
         .beta2 = 0.999,
         .weight_decay = 0.3,
         .use = MOMENTUM_MIXED},
    };
    static const size_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 100, 1023};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_steps(&all[i], sizes[k]);
}

/* Adam's first two steps worked by hand: lr 0.1, betas 1/2 and 3/4, from x = 1
 * with gradients 2, then -4 (powers of two: m and v are exact).
 *   m = 1, v = 1:     x = 1 - 0.1 (1 / 0.5) / sqrt(1 / 0.25) = 0.9
 *   m = -1.5, v = 4.75: x = 0.9 + 0.1 (1.5 / 0.75) / sqrt(4.75 / 0.4375)
 * AdamW with a decay of 0.5 begins each step with x * 0.95. */
static void test_adam_by_hand(void **state)
{
    (void)state;
    struct segment seg = {.n = 1, .decays = true, .trained = true};
    for (int w = 0; w < 2; w++) {
        struct optimiser o = {.kind = w ? OPTIMISER_ADAMW : OPTIMISER_ADAM,
                              .momentum = 0.5,
                              .beta2 = 0.75,
                              .weight_decay = w ? 0.5 : 0};
        float x = 1, m = 0, v = 0, grad = 2;
        struct optimiser_step s = {.segments = &seg,
                                   .n_segments = 1,
                                   .x = &x,
                                   .grad = &grad,
                                   .m = &m,
                                   .v = &v,
                                   .t = 1,
                                   .lr = 0.1};
        optimiser_step(&o, &s);
        assert_true(m == 1 && v == 1);
        double want = w ? 0.85 : 0.9;
        assert_true(fabs((double)x - want) <= 1e-7);
        grad = -4;
        s.t = 2;
        optimiser_step(&o, &s);
        assert_true(m == -1.5f && v == 4.75f);
        want = want * (w ? 0.95 : 1) + 0.2 / sqrt(4.75 / 0.4375);
        assert_true(fabs((double)x - want) <= 1e-7);
    }
}

/* A NaN gradient makes its own parameter NaN, and no other. */
static void test_nan(void **state)
{
    (void)state;
    struct segment seg = {.n = 3, .trained = true};
    for (int k = 0; k < 3; k++) {
        struct optimiser o = {.kind = (enum optimiser_kind)k, .momentum = 0.9, .beta2 = 0.99};
        float x[3] = {1, 1, 1}, m[3] = {0}, v[3] = {0}, grad[3] = {1, NAN, 1};
        struct optimiser_step s = {&seg, 1, x, grad, m, v, 1, 0.1, NULL, NULL};
        optimiser_step(&o, &s);
        assert_true(isnan(x[1]) && x[0] < 1 && x[2] == x[0]);
    }
}

enum { N = 37 + 5 + 9 };

static const struct segment segments[] = {
    {.offset = 0, .n = 37, .decays = true, .trained = true},
    {.offset = 37, .n = 5, .decays = false, .trained = true},
    {.offset = 42, .n = 9, .decays = true, .trained = false},
};

/* A gradient with a norm above the clip (the limit of the norm) is scaled down to the clip. A
 * smaller gradient is unchanged. The norm excludes running statistics, and clipping does not change
 * them. A value that is not finite stays in the gradient. */
static void test_clip(void **state)
{
    (void)state;
    double wide[N];
    float grad[N], was[N];
    noise(3, 0, wide, was, N);
    was[45] = 1e30f; /* A running statistic, which is not trained. */
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
                fail_msg("clip %g: [%zu] is %.9g, was %.9g", share[k], i, (double)grad[i],
                         (double)was[i]);
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
        cmocka_unit_test(test_schedules),    cmocka_unit_test(test_steps),
        cmocka_unit_test(test_adam_by_hand), cmocka_unit_test(test_nan),
        cmocka_unit_test(test_clip),         cmocka_unit_test(test_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
