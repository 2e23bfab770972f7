/* tests/unit/gossip_gamma.c -- tests the consensus step size gamma of one edge.
 *
 * Tested are the residual-ratio rule, its bounds, the halving of gamma after a runaway, and the
 * bound that avoids negative eigenvalues of the mixing matrix. */
#include "gossip/exchange/gamma.h"
#include "nn/math/rng.h"
#include "topology/topology.h"

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

/* Runs one exchange in which |x - a|^2, for the model x and its replica a, is 1 before the delta
 * and e2 after it, at both ends. Returns gamma. */
static double next(struct gamma *g, double e2)
{
    struct gamma_exchange x = {1, e2, 1, e2, 0, 1};
    return gamma_next(g, &x);
}

/* Gamma of the first exchange is min(1, 1.5 min(delta_i, delta_j)). delta = 1 - e2/x2 is the
 * contraction at one end, where x2 and e2 are |x - a|^2 before and after the end's delta, for its
 * model x and its replica a. */
static void test_first(void **state)
{
    static const struct
    {
        struct gamma_exchange x;
        double want;
    } row[] = {
        /* The contraction delta is 1/4 at both ends, so gamma is 0.375. */
        {{4, 3, 4, 3, 0, 1}, 0.375},
        /* The contraction delta is 1/4 at one end and 9/10 at the other: the smaller counts. */
        {{4, 3, 10, 1, 0, 1}, 0.375},
        /* The smaller contraction delta counts, also if it is the neighbour's. */
        {{10, 1, 4, 3, 0, 1}, 0.375},
        /* The contraction delta is 3/4, so 1.5 delta = 1.125, which is limited to 1. */
        {{4, 1, 4, 1, 0, 1}, 1},
        {{4, 4. / 3, 9, 3, 0, 1}, 1}, /* The contraction delta is 2/3, so 1.5 delta is exactly 1. */
        {{7, 0, 3, 0, 0, 1},
         1}, /* The deltas of both ends have no error, so the contraction is 1. */
        {{4, 4, 4, 0, 0, 1}, 0}, /* This end's delta transmitted nothing: contraction 0. */
        {{4, 5, 4, 0, 0, 1}, 0}, /* This end's delta increased the error: gamma is 0. */
        /* This end's replica equals the model before the delta, so its contraction counts as 1. */
        {{0, 0, 4, 3, 0, 1}, 0.375},
        {{0, 0, 0, 0, 0, 1}, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g;
        gamma_init(&g, 0);
        assert_false(g.fixed || g.begun);
        near(gamma_next(&g, &row[i].x), row[i].want, 1e-15);
    }
}

/* Returns a gamma of 0.25, in the middle of its bounds delta/2 = 0.125 and 3 delta/2 = 0.375. One
 * exchange has been done. After it |x - a|^2, for the model x and its replica a, is e2 at each end.
 * The squared distance |b - a|^2 of the two replicas is d2. */
static struct gamma begun(double e2, double d2)
{
    return (struct gamma){
        .value = 0.25, .delta = 0.25, .most = 1, .begun = true, .e2 = 2 * e2, .d2 = d2};
}

/* From the second exchange on, gamma changes by the factor clip((0.6 / rho)^0.1, 0.9, 1.05). The
 * residual ratio rho = sqrt((e2_i + e2_j) / 2) / D is that of the previous exchange, where D = |b -
 * a| is the distance of the two replicas. */
static void test_then(void **state)
{
    static const struct
    {
        /* e2: |x - a|^2 at each end after its delta, where x is the model and a the replica. d2:
         * squared distance D^2 of the replicas. factor: the factor by which gamma must change. */
        double e2, d2, factor;
    } row[] = {
        {0.36, 1, 1},                  /* A residual ratio of 0.6, the target, keeps gamma. */
        {1, 1, 0.9502002165056764},    /* A residual ratio of 1 multiplies gamma by 0.6^0.1. */
        {0.25, 1, 1.0183993761470242}, /* A residual ratio of 0.5 multiplies gamma by 1.2^0.1. */
        {0.7, 1, 0.9672978512556829},  /* The residual ratio is sqrt(0.7), above its target 0.6. */
        /* A residual ratio of 0.01 multiplies gamma by the upper limit, 1.05. */
        {0.0001, 1, 1.05},
        {0, 1, 1.05},  /* A residual ratio of 0 multiplies gamma by the upper limit, 1.05. */
        {100, 1, 0.9}, /* A residual ratio of 10 multiplies gamma by the lower limit, 0.9. */
        {1, 1e-300, 0.9},
        /* The two replicas are equal (D is 0), so there is no residual ratio, and gamma must not
         * change. */
        {1, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g = begun(row[i].e2, row[i].d2);
        /* The contraction delta stays 1/4, so the bounds of gamma stay 1/8 and 3/8. */
        near(next(&g, 0.75), 0.25 * row[i].factor, 1e-9);
    }
    struct gamma g = begun(0.36, 1), h = begun(0.36, 1);
    near(next(&g, 0.75), 0.25, 1e-9);
    near(next(&h, 0.75), 0.25, 1e-9);
    /* For `g` the squared error e2 at each end and the squared distance D^2 of the replicas are all
     * 0.75, so the residual ratio rho = sqrt(e2 / D^2) is 1. For `h` D^2 is huge, so rho is nearly
     * 0. */
    gamma_measured(&g, 0.75);
    gamma_measured(&h, 1e9);
    near(next(&g, 0.75), 0.25 * 0.9502002165056764, 1e-9);
    near(next(&h, 0.75), 0.25 * 1.05, 1e-9);
}

/* ---- the bounds ---- */

/* Values of 100 rho^2 with which the tests set the residual ratio rho. SMALL (rho = 0) multiplies
 * gamma by 1.05, FITS (rho = 0.6) by 1, and LARGE (rho = 10) by 0.9. */
enum { SMALL = 0, FITS = 36, LARGE = 10000 };

/* gamma_bears() returns which share of its momentum an exchange may use, as a function of the
 * residual ratio rho. The share is 1 up to rho = 0.2, 0 from rho = 0.5 on, and linear in between.
 * If the distance of the replicas was not measured, rho is unknown and the share is 0. */
static void test_bears(void **state)
{
    static const struct
    {
        double e2_own, e2_other, d2, want;
    } row[] = {
        {0, 0, 1, 1},         {0.04, 0.04, 1, 1}, {0.05, 0.03, 1, 1}, {0.1225, 0.1225, 1, 0.5},
        {0.49, 0.49, 4, 0.5}, {0.25, 0.25, 1, 0}, {1, 1, 1, 0},       {0.04, 0.04, 0, 0},
        {0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g = begun(0.1, row[i].d2);
        struct gamma_exchange x = {1, row[i].e2_own, 1, row[i].e2_other, 0, 1};
        struct gamma_exchange other = {1, row[i].e2_other, 1, row[i].e2_own, 0, 1};
        assert_true(fabs(gamma_bears(&g, &x) - row[i].want) <= 1e-12);
        assert_true(gamma_bears(&g, &x) == gamma_bears(&g, &other));
    }
}

static void test_bounds(void **state)
{
    static const struct
    {
        double delta, value, most;
        int rho2;
        double want;
    } row[] = {
        /* If gamma is between its bounds, it depends on the residual ratio rho alone. */
        {0.4, 0.4, 1, LARGE, 0.36},
        {0.4, 0.4, 1, SMALL, 0.42},
        /* Gamma is never below delta/2 = 0.2, however large the residual ratio is. */
        {0.4, 0.21, 1, LARGE, 0.2},
        {0.4, 0.2, 1, LARGE, 0.2}, /* Gamma stays at the lower bound 0.2. */
        {0.4, 0.1, 1, LARGE, 0.2},
        {0.4, 0.1, 1, FITS, 0.2}, /* A gamma below the lower bound 0.2 is raised to it. */
        /* Gamma is never above 3 delta/2 = 0.6, however small the residual ratio is. */
        {0.4, 0.59, 1, SMALL, 0.6},
        {0.4, 0.6, 1, SMALL, 0.6},
        {0.4, 0.9, 1, FITS, 0.6},
        {0.4, 0.9, 1, LARGE, 0.6},
        {0.9, 0.99, 1, SMALL, 1}, /* Gamma is never above 1. */
        /* The limit `most`, which a runaway lowers, has precedence over the upper bound 3
         * delta/2. */
        {0.4, 0.4, 0.3, FITS, 0.3},
        {0.4, 0.7, 0.59, SMALL, 0.59},
        /* The limit `most` also has precedence over the lower bound delta/2 of gamma. */
        {0.4, 0.4, 0.05, FITS, 0.05},
        {0.4, 0.05, 0.05, LARGE, 0.05},
        {0.4, 0.4, 0.9, FITS, 0.4}, /* A limit `most` above both bounds of gamma has no effect. */
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g = {.value = row[i].value,
                          .delta = row[i].delta,
                          .most = row[i].most,
                          .begun = true,
                          .e2 = 2 * 0.01 * row[i].rho2,
                          .d2 = 1};
        double got = next(&g, 1 - row[i].delta);
        if (!(fabs(got - row[i].want) <= 1e-12))
            fail_msg("row %zu: %.17g, expected %g", i, got, row[i].want);
    }
}

/* The contraction delta is a moving average. Each exchange adds (new - delta) / 10, where `new` is
 * the smaller contraction of the two ends. */
static void test_smoothing(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    (void)next(&g, 0.8);
    /* The first contraction delta is stored as it is; later ones are averaged. */
    near(g.delta, 0.2, 1e-15);
    for (int t = 1; t <= 40; t++) {
        struct gamma_exchange x = {10, 3, 10, 1, 0, 1}, y = {10, 1, 10, 3, 0, 1};
        /* The residual ratio is large, so gamma goes to its lower bound. */
        gamma_measured(&g, 1e-9);
        double got = gamma_next(&g, t % 2 ? &x : &y);
        near(g.delta, 0.7 - 0.5 * pow(0.9, t), 1e-12);
        /* Gamma begins at 3 delta/2, and falls by a tenth per exchange, down to delta/2. */
        if (t > 6)
            near(got, g.delta / 2, 1e-12);
    }
}

/* Gamma never exceeds 1, and falls again when the residual ratio becomes large. */
static void test_cap(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    for (int i = 0; i < 20; i++) {
        near(next(&g, 0), 1, 0);
        gamma_measured(&g, 1);
    }
    /* The large error of this exchange affects gamma in the next exchange only. */
    (void)next(&g, 4);
    gamma_measured(&g, 1);
    near(next(&g, 4), 0.9, 1e-15);
    gamma_measured(&g, 1);
    near(next(&g, 4), 0.81, 1e-15);
}

/* If an exchange did not measure the distance of the replicas, gamma does not change. */
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
        struct gamma_exchange x = {1, 0.1 * i, 2, 0, (uint32_t)i, 1};
        assert_true(gamma_next(&g, &x) == 0.0375);
        gamma_measured(&g, i);
    }
    gamma_init(&g, 1.308); /* A fixed gamma above 1 (over-relaxation) is used as the user set it. */
    assert_true(next(&g, 0) == 1.308);
}

/* Another codec has another contraction, so gamma starts again from the first delta of the new
 * codec. */
static void test_codec_change(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    struct gamma_exchange coarse = {1, 0.9, 1, 0.9, 0, 1}, fine = {1, 0.5, 1, 0.5, 4, 1};
    near(gamma_next(&g, &coarse), 0.15, 1e-12);
    gamma_measured(&g, 1e-9);
    near(gamma_next(&g, &fine), 0.75, 1e-12);
    gamma_measured(&g, 0.5 / 0.36);
    near(gamma_next(&g, &fine), 0.75, 1e-9);
    gamma_measured(&g, 1e-9);
    /* The return to the first codec is a change, too, so gamma starts again. */
    near(gamma_next(&g, &coarse), 0.15, 1e-12);
    /* The contraction of the codec used before has no influence on gamma. */
    near(g.delta, 0.1, 1e-12);
    g.most = 0.01;
    gamma_measured(&g, 1);
    near(gamma_next(&g, &coarse), 0.01, 1e-12);
    gamma_measured(&g, 1);
    /* A change of the codec removes the limit `most` of gamma. */
    near(gamma_next(&g, &fine), 0.75, 1e-12);
    near(g.most, 1, 0);
}

/* The models already equal their replicas, so the deltas are empty and say nothing about the
 * contraction of the codec. The next exchange counts as the first one again. */
static void test_nothing_to_say(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    struct gamma_exchange silent = {0, 0, 0, 0, 0, 1};
    near(gamma_next(&g, &silent), 1, 0);
    gamma_measured(&g, 0);
    near(next(&g, 0.9), 0.15, 1e-12);
}

/* A threshold codec may send no value, which gives a step size of 0. The next exchange that does
 * send values must set gamma again. */
static void test_nothing_came_through(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    struct gamma_exchange stopped = {4, 4, 4, 4, 0, 1};
    for (int i = 0; i < 3; i++) {
        near(gamma_next(&g, &stopped), 0, 0);
        gamma_measured(&g, 1);
    }
    near(next(&g, 0.9), 0.15, 1e-12);
}

/* ---- a runaway ---- */

/* Runs a window of GAMMA_WINDOW exchanges, of which only the last one may make gamma_measured()
 * return true. d2: squared distance of the replicas in the last exchange. Returns the result of
 * the last gamma_measured(). */
static bool window(struct gamma *g, double d2)
{
    /* Only the distance in the last exchange of the window counts. The distances before it are
     * extreme. */
    for (int t = 1; t < GAMMA_WINDOW; t++)
        assert_false(gamma_measured(g, t % 2 ? 1e30 : 0));
    return gamma_measured(g, d2);
}

/* gamma_measured() must return true after two windows in a row in which D^2, the squared distance
 * of the replicas, grew by a factor above 2.25. The caller then calls gamma_judge(), which decides
 * whether this is a runaway. */
static void test_growth(void **state)
{
    static const struct
    {
        double d2[6];
        bool want[6];
    } row[] = {
        {{1, 2.26, 5.11, 5, 1, 3}, {0, 0, 1, 0, 0, 0}},
        /* D^2, the squared distance of the replicas, grows by a factor above 2.25 in no window. */
        {{1, 2.25, 5.0625, 11.390625, 25, 50}, {0, 0, 0, 0, 0, 0}},
        /* D^2 (the squared distance of the replicas) must grow in two consecutive windows. */
        {{1, 3, 3, 9, 27, 81}, {0, 0, 0, 0, 1, 1}},
        /* D^2 (the squared distance of the replicas) grows enough in every other window only, so
         * gamma_measured() must return false. */
        {{1, 3, 6, 18, 36, 108}, {0, 0, 0, 0, 0, 0}},
        {{9, 3, 1, 3, 9, 27}, {0, 0, 0, 0, 1, 1}},
        /* An increase of D^2, the squared distance of the replicas, from 0 does not count as
         * growth. */
        {{0, 3, 9, 27, 0, 0}, {0, 0, 0, 1, 0, 0}},
        {{1, 3, (double)NAN, 9, 27, 81}, {0, 0, 0, 0, 0, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct gamma g;
        gamma_init(&g, 0);
        for (int k = 0; k < 6; k++)
            if (window(&g, row[i].d2[k]) != row[i].want[k])
                fail_msg("row %zu, window %d", i, k);
        /* Only gamma_judge() counts runaways, and this test does not call it. */
        assert_int_equal(g.n_runaways, 0);
    }
}

/* gamma_judge() finds a runaway only if D^2 = |b - a|^2, the squared distance of the two replicas,
 * exceeds n2 = |a|^2 + |b|^2. D^2 is about n2 if the two models are unrelated. */
static void test_runaway(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0);
    /* The contraction delta is 0.4. The rule for gamma keeps gamma at delta/2 = 0.2 or more, unless
     * a runaway (fast growth of the distance of the replicas) lowers it. */
    near(next(&g, 0.6), 0.6, 1e-12);
    assert_false(window(&g, 1) || window(&g, 3));
    assert_true(window(&g, 9));
    assert_false(gamma_judge(&g, 9));
    assert_false(gamma_judge(&g, 1e30));
    assert_false(gamma_judge(&g, (double)NAN));
    near(g.most, 1, 0);
    assert_int_equal(g.n_runaways, 0);
    /* The distance still grows, so gamma_measured() returns true after each further window. */
    assert_true(window(&g, 27));
    assert_true(gamma_judge(&g, 26.9));
    assert_int_equal(g.n_runaways, 1);
    near(g.most, 0.3, 1e-12);
    /* The new limit of gamma (`most`), 0.3, takes effect from the next exchange on. */
    near(g.value, 0.6, 1e-12);
    near(next(&g, 0.6), 0.3, 1e-12);
    /* After a runaway, D^2 (the squared distance of the replicas) must grow in two more windows
     * before gamma_measured() returns true again. */
    assert_false(window(&g, 81));
    assert_true(window(&g, 243));
    assert_true(gamma_judge(&g, 1));
    /* The limit `most` forces gamma below its lower bound delta/2 = 0.2. */
    near(next(&g, 0.6), 0.15, 1e-12);
    assert_int_equal(g.n_runaways, 2);
}

/* After a runaway has lowered the limit `most` of gamma, the limit rises by 1 % per exchange, up to
 * 1. */
static void test_recovery(void **state)
{
    struct gamma g = {.value = 0.4, .delta = 0.4, .most = 1, .begun = true, .mark = 2};
    (void)state;
    assert_true(gamma_judge(&g, 1));
    for (int t = 0; t < 200; t++) {
        double want = 0.2 * pow(1.01, t);
        near(next(&g, 0.6), want < 0.6 ? want : 0.6, 1e-12);
        near(g.most, want * 1.01 < 1 ? want * 1.01 : 1, 1e-12);
        /* The residual ratio is small, so gamma rises as far as its limit `most` allows. */
        gamma_measured(&g, 1e9);
    }
}

/* A fixed gamma is kept after a runaway (fast growth of the distance between the two replicas),
 * because the user chose it. The runaway is only counted. */
static void test_fixed_runs_away(void **state)
{
    struct gamma g;
    (void)state;
    gamma_init(&g, 0.7);
    near(next(&g, 0.9), 0.7, 0);
    assert_false(window(&g, 1) || window(&g, 3));
    assert_true(window(&g, 9));
    assert_false(gamma_judge(&g, 1));
    assert_int_equal(g.n_runaways, 1);
    /* After a runaway, the count of windows in which D^2 (the squared distance of the replicas)
     * grew starts from 0 again. */
    assert_false(window(&g, 27));
    assert_true(window(&g, 81));
    for (int t = 0; t < 3; t++)
        near(next(&g, 0.9), 0.7, 0);
}

/* Both ends of an edge compute bitwise equal gammas, although each passes its own values first and
 * those of the other end second. This also holds after codec changes and runaways. */
static void test_both_ends(void **state)
{
    uint64_t runaways = 0, capped = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct rng r = rng_stream(rng_key(seed, RNG_TEST, 5, 0));
        struct gamma a, b;
        double d2 = 1;
        gamma_init(&a, 0);
        gamma_init(&b, 0);
        for (int t = 0; t < 200; t++) {
            struct gamma_exchange x = {.x2_own = exp(3 * rng_normal(&r)),
                                       .x2_other = exp(3 * rng_normal(&r)),
                                       .codecs = rng_below(&r, 60) == 0,
                                       .most = rng_below(&r, 2) == 0 ? 1 : 0.75};
            x.e2_own = x.x2_own * rng_unit(&r);
            x.e2_other = x.x2_other * rng_unit(&r);
            struct gamma_exchange y = {x.x2_other, x.e2_other, x.x2_own,
                                       x.e2_own,   x.codecs,   x.most};
            double ga = gamma_next(&a, &x), gb = gamma_next(&b, &y);
            if (memcmp(&ga, &gb, sizeof ga) != 0 || !(ga >= 0 && ga <= 1))
                fail_msg("seed %d, exchange %d: %.17g and %.17g", (int)seed, t, ga, gb);
            capped += a.most < 1;
            d2 *= exp(0.2 * rng_normal(&r) + 0.12);
            double n2 = 1e3 * rng_unit(&r);
            bool judged = gamma_measured(&a, d2);
            assert_int_equal(gamma_measured(&b, d2), judged);
            if (judged)
                assert_int_equal(gamma_judge(&a, n2), gamma_judge(&b, n2));
            assert_memory_equal(&a.most, &b.most, sizeof a.most);
            assert_memory_equal(&a.delta, &b.delta, sizeof a.delta);
            assert_int_equal(a.n_runaways, b.n_runaways);
        }
        runaways += a.n_runaways;
    }
    print_message("%d runaways in 50 runs of 200 exchanges\n", (int)runaways);
    assert_true(runaways > 50 && capped > 1000);
}

/* The tenth root in the rule for gamma is accurate to 1e-14 wherever the resulting factor is
 * between its limits 0.9 and 1.05. Outside this range the limits apply. */
static void test_tenth_root(void **state)
{
    double worst = 0;
    (void)state;
    for (int i = 0; i <= 4000; i++) {
        double factor = 0.89 + 0.17 * i / 4000;
        double rho = 0.6 / pow(factor, 10);
        struct gamma g = {
            .value = 0.5, .delta = 0.5, .most = 1, .begun = true, .e2 = 2 * rho * rho, .d2 = 1};
        double got = next(&g, 0.5) / 0.5;
        double want = factor < 0.9 ? 0.9 : factor > 1.05 ? 1.05 : factor;
        double off = fabs(got / want - 1);
        if (!(off <= worst))
            worst = off;
    }
    if (!(worst <= 1e-14))
        fail_msg("off by %g", worst);
}

/* ---- the bound for mixing matrices without negative eigenvalues ---- */

/* The bound of this exchange limits an adaptive gamma from the first exchange on, and does not
 * limit a fixed one. Later exchanges without the bound may use more. */
static void test_exchange_bound(void **state)
{
    static const struct gamma_exchange bounded = {1, 0.1, 1, 0.1, 0, 0.75},
                                       coarse = {1, 0.9, 1, 0.9, 0, 0.75},
                                       free_one = {1, 0.1, 1, 0.1, 0, 1};
    struct gamma g, fixed;
    (void)state;
    gamma_init(&g, 0);
    for (int i = 0; i < 10; i++) {
        assert_true(gamma_next(&g, &bounded) == 0.75);
        gamma_measured(&g, 100);
    }
    near(gamma_next(&g, &free_one), 0.75 * 1.05, 1e-12);
    gamma_init(&g, 0);
    near(gamma_next(&g, &coarse), 0.15, 1e-12);
    gamma_init(&fixed, 1);
    assert_true(gamma_next(&fixed, &bounded) == 1);
}

/* Returns the largest eigenvalue of L, where 1 - L is the mixing matrix of a graph with the step
 * sizes of gamma_semidefinite(). Power iteration; the result is too small, not too large. */
static double largest_of_laplacian(const struct graph *g)
{
    enum { VERTICES = 64, ITERATIONS = 4000 };
    static double x[VERTICES], y[VERTICES];
    struct rng r = rng_stream(rng_key(1, RNG_TEST, g->n, 7));
    double norm = 1;
    assert_true(g->n <= VERTICES);
    for (uint32_t v = 0; v < g->n; v++)
        x[v] = rng_normal(&r);
    for (int t = 0; t < ITERATIONS; t++) {
        double sum = 0;
        for (uint32_t v = 0; v < g->n; v++) {
            y[v] = 0;
            for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
                uint32_t u = g->neighbour[i], d_v = graph_degree(g, v), d_u = graph_degree(g, u);
                double gamma = gamma_semidefinite(d_v, d_u);
                assert_true(gamma > 0.5 && gamma <= 1 && gamma == gamma_semidefinite(d_u, d_v));
                y[v] += gamma * topology_weight(d_v, d_u) * (x[v] - x[u]);
            }
            sum += y[v] * y[v];
        }
        norm = sqrt(sum);
        for (uint32_t v = 0; v < g->n; v++)
            x[v] = y[v] / norm;
    }
    return norm;
}

/* With the step sizes of gamma_semidefinite() no mixing matrix has a negative eigenvalue: L has no
 * eigenvalue above 1. On bipartite graphs with equal degrees and on stars the smallest eigenvalue
 * of the mixing matrix is 0. */
static void test_semidefinite(void **state)
{
    static const struct
    {
        const char *topology;
        uint32_t n;
        /* Step size of an edge of vertex 0, and whether the smallest eigenvalue must be 0. */
        double gamma;
        bool zero;
    } rows[] = {{"ring", 2, 1, true},
                {"ring", 3, 0.75, false},
                {"ring", 8, 0.75, true},
                {"ring", 9, 0.75, false},
                {"path", 9, 1, false},
                {"torus", 8, 4.0 / 6, true},
                {"torus", 16, 0.625, true},
                {"torus:3x5", 15, 0.625, false},
                {"complete", 4, 4.0 / 6, false},
                {"complete", 8, 8.0 / 14, false},
                {"hypercube", 8, 4.0 / 6, true},
                {"hypercube", 64, 7.0 / 12, true},
                {"regular:4", 16, 0.625, false},
                {"exponential", 16, 8.0 / 14, false},
                {"bipartite", 16, 9.0 / 16, true},
                {"star", 9, 1, true},
                {"tree", 15, 0.8, false},
                {"base:1", 8, 4.0 / 6, true},
                {"base:2", 9, 0.625, false}};
    static const char *const random[] = {"er:0.2", "small-world", "trees", "grid", "regular:7"};
    struct graph g;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(graph_build(&g, rows[i].topology, rows[i].n, 1), 0);
        double greatest = largest_of_laplacian(&g);
        double gamma = gamma_semidefinite(graph_degree(&g, 0), graph_degree(&g, g.neighbour[0]));
        graph_close(&g);
        near(gamma, rows[i].gamma, 1e-15);
        if (!(greatest <= 1 + 1e-12) || (rows[i].zero && !(greatest >= 1 - 1e-9)))
            fail_msg("%s, %u peers: %.12g", rows[i].topology, rows[i].n, greatest);
    }
    for (size_t i = 0; i < sizeof random / sizeof random[0]; i++)
        for (uint32_t n = 5; n < 60; n += 7)
            for (uint64_t seed = 1; seed <= 3; seed++) {
                assert_int_equal(graph_build(&g, random[i], n, seed), 0);
                double greatest = largest_of_laplacian(&g);
                graph_close(&g);
                if (!(greatest <= 1 + 1e-12))
                    fail_msg("%s, %u peers, seed %d: %.12g", random[i], n, (int)seed, greatest);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_then),
        cmocka_unit_test(test_bears),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_smoothing),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_unmeasured),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_codec_change),
        cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_nothing_came_through),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_runaway),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_fixed_runs_away),
        cmocka_unit_test(test_both_ends),
        cmocka_unit_test(test_tenth_root),
        cmocka_unit_test(test_exchange_bound),
        cmocka_unit_test(test_semidefinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
