/* tests/unit/gossip_gamma.c -- the residual-ratio rule, by hand. */
#include "gossip/gamma.h"
#include "nn/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want)))
        fail_msg("%.17g, expected %.17g", got, want);
}

/* One exchange where |x - a|^2 was 1 at both ends and e2 is left at both. */
static double next(struct gamma *g, double e2)
{
    struct gamma_exchange x = {1, e2, 1, e2, 0};
    return gamma_next(g, &x);
}

/* min(1, 1.5 min(delta_i, delta_j)), delta = 1 - e2/x2 */
static void test_first(void **state)
{
    static const struct
    {
        struct gamma_exchange x;
        double want;
    } row[] = {
        {{4, 3, 4, 3, 0}, 0.375},     /* delta 1/4 at both */
        {{4, 3, 10, 1, 0}, 0.375},    /* the smaller delta counts */
        {{10, 1, 4, 3, 0}, 0.375},    /* whoever has it */
        {{4, 1, 4, 1, 0}, 1},         /* delta 3/4: 1.125, cut to 1 */
        {{4, 4. / 3, 9, 3, 0}, 1},    /* delta 2/3: just 1 */
        {{7, 0, 3, 0, 0}, 1},         /* exact */
        {{4, 4, 4, 0, 0}, 0},         /* nothing came through */
        {{4, 5, 4, 0, 0}, 0},         /* worse than nothing */
        {{0, 0, 4, 3, 0}, 0.375},     /* nothing to say is said perfectly */
        {{0, 0, 0, 0, 0}, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g;
        gamma_init(&g, 0);
        assert_false(g.fixed || g.begun);
        near(gamma_next(&g, &row[i].x), row[i].want, 1e-15);
    }
}

/* gamma clip((0.6 / rho)^0.1, 0.9, 1.05), rho of the exchange before:
 * rho = sqrt((e2_i + e2_j) / 2) / D. */
static void test_then(void **state)
{
    static const struct
    {
        double e2, d2, factor; /* e2 at each end. */
    } row[] = {
        {0.36, 1, 1},                       /* rho 0.6: the target */
        {1, 1, 0.9502002165056764 },        /* rho 1: 0.6^0.1 */
        {0.25, 1, 1.0183993761470242},      /* rho 0.5: 1.2^0.1 */
        {0.7, 1, 0.9672978512556829},            /* rho sqrt(0.7) */
        {0.0001, 1, 1.05},                  /* rho 0.01: up, clipped */
        {0, 1, 1.05},                       /* rho 0 */
        {100, 1, 0.9},                      /* rho 10: down, clipped */
        {1, 1e-300, 0.9},
        {1, 0, 1},                          /* D = 0 tells nothing. */
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g;
        gamma_init(&g, 0);
        struct gamma_exchange x = {2, 1.6, 2, 1.6, 0}; /* delta 0.2: 0.3 */
        near(gamma_next(&g, &x), 0.3, 1e-12);
        gamma_measured(&g, 1.6 / 0.36);               /* rho 0.6 */
        near(next(&g, row[i].e2), 0.3, 1e-9);
        gamma_measured(&g, row[i].d2);
        near(next(&g, 0.5), 0.3 * row[i].factor, 1e-9);
    }
}

/* Never above 1, and it comes down again from there. */
static void test_cap(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    for (int i = 0; i < 20; i++) {
        near(next(&g, 0), 1, 0);
        gamma_measured(&g, 1);
    }
    (void)next(&g, 4); /* Of which gamma hears in the exchange after. */
    gamma_measured(&g, 1);
    near(next(&g, 4), 0.9, 1e-15);
    gamma_measured(&g, 1);
    near(next(&g, 4), 0.81, 1e-15);
}

/* An exchange whose mixing was never measured changes nothing. */
static void test_unmeasured(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    double first = next(&g, 0.8);
    near(first, 0.3, 1e-12);
    near(next(&g, 0.8), first, 0);
    gamma_measured(&g, 1);
    (void)next(&g, 0.8);
    near(next(&g, 0.8), g.value, 0);
}

static void test_fixed(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0.0375);
    for (int i = 0; i < 10; i++) {
        struct gamma_exchange x = {1, 0.1 * i, 2, 0, (uint32_t)i};
        assert_true(gamma_next(&g, &x) == 0.0375);
        gamma_measured(&g, i);
    }
    gamma_init(&g, 1.308); /* Over-relaxed: the user's word goes. */
    assert_true(next(&g, 0) == 1.308);
}

/* Another codec has another contraction: begin anew, from its first delta. */
static void test_codec_change(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    struct gamma_exchange coarse = {1, 0.9, 1, 0.9, 0}, fine = {1, 0.5, 1, 0.5, 4};
    near(gamma_next(&g, &coarse), 0.15, 1e-12);
    gamma_measured(&g, 1e-9);
    near(gamma_next(&g, &fine), 0.75, 1e-12);
    gamma_measured(&g, 0.5 / 0.36);
    near(gamma_next(&g, &fine), 0.75, 1e-9);
    gamma_measured(&g, 1e-9);
    near(gamma_next(&g, &coarse), 0.15, 1e-12); /* Back again: anew, too. */
}

/* Both replicas were equal to the models: no delta says how the codec does, so
 * the next exchange is the first again. */
static void test_nothing_to_say(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    struct gamma_exchange silent = {0, 0, 0, 0, 0};
    near(gamma_next(&g, &silent), 1, 0);
    gamma_measured(&g, 0);
    near(next(&g, 0.9), 0.15, 1e-12);
}

/* A threshold may let nothing pass: a step of 0 must not stay for ever. */
static void test_nothing_came_through(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    struct gamma_exchange stopped = {4, 4, 4, 4, 0};
    for (int i = 0; i < 3; i++) {
        near(gamma_next(&g, &stopped), 0, 0);
        gamma_measured(&g, 1);
    }
    near(next(&g, 0.9), 0.15, 1e-12);
}

/* The two ends are each other's mirror image and get the same bits. */
static void test_both_ends(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct rng r = rng_stream(rng_key(seed, RNG_TEST, 5, 0));
        struct gamma a, b;
        gamma_init(&a, 0);
        gamma_init(&b, 0);
        for (int t = 0; t < 200; t++) {
            struct gamma_exchange x = {
                .x2_own = exp(3 * rng_normal(&r)),
                .x2_other = exp(3 * rng_normal(&r)),
                .codecs = rng_below(&r, 30) == 0};
            x.e2_own = x.x2_own * rng_unit(&r);
            x.e2_other = x.x2_other * rng_unit(&r);
            struct gamma_exchange y = {x.x2_other, x.e2_other, x.x2_own,
                                       x.e2_own, x.codecs};
            double ga = gamma_next(&a, &x), gb = gamma_next(&b, &y);
            if (memcmp(&ga, &gb, sizeof ga) != 0 || !(ga >= 0 && ga <= 1))
                fail_msg("seed %d, exchange %d: %.17g and %.17g", (int)seed, t,
                         ga, gb);
            double d2 = exp(4 * rng_normal(&r));
            gamma_measured(&a, d2);
            gamma_measured(&b, d2);
        }
    }
}

/* The tenth root is the library's to the last digits, over the whole range
 * between the clips, and the clips lie where they should. */
static void test_tenth_root(void **state)
{
    double worst = 0;
    (void)state;
    for (int i = 0; i <= 4000; i++) {
        double factor = 0.89 + 0.17 * i / 4000;
        double rho = 0.6 / pow(factor, 10);
        struct gamma g = {.value = 0.5, .begun = true, .e2 = 2 * rho * rho,
                          .d2 = 1};
        double got = next(&g, 0.5) / 0.5;
        double want = factor < 0.9 ? 0.9 : factor > 1.05 ? 1.05 : factor;
        double off = fabs(got / want - 1);
        if (!(off <= worst))
            worst = off;
    }
    if (!(worst <= 1e-14))
        fail_msg("off by %g", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_then),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_unmeasured),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_codec_change),
        cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_nothing_came_through),
        cmocka_unit_test(test_both_ends),
        cmocka_unit_test(test_tenth_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
