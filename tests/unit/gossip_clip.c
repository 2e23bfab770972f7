/* tests/unit/gossip_clip.c -- tests the clipping threshold of --byzantine and the outlier filter of
 * an edge, against simple references. */
#include "gossip/exchange/outlier_filter.h"
#include "gossip/mixers/clip.h"
#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 12, DIM = 5003 };

/* ---- the threshold ---- */

/* Reference for the clipping threshold: sorts the terms (corrections from neighbours) by
 * distance, and goes from the farthest to the nearest. */
static double plain_threshold2(const struct correction *term, size_t n, uint32_t tolerate,
                               uint32_t behind)
{
    size_t order[MOST];
    double weight[MOST], need = 0, above = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && term[order[at - 1]].d2 <= term[i].d2; at--)
            order[at] = order[at - 1];
        order[at] = i;
        for (at = i; at > 0 && weight[at - 1] < term[i].w; at--)
            weight[at] = weight[at - 1];
        weight[at] = term[i].w;
    }
    for (size_t i = 0; i < n && i < tolerate; i++)
        need += behind * weight[i];
    for (size_t i = 0; i < n; i++) {
        const struct correction *t = &term[order[i]];
        if (above > need - 1e-6 && isfinite(t->d2))
            return t->d2;
        above += t->w;
    }
    return 0;
}

static void random_terms(struct rng *rng, struct correction *term, size_t n)
{
    bool regular = rng_below(rng, 2);
    for (size_t i = 0; i < n; i++) {
        term[i] = (struct correction){.w = 1.0 / (regular ? 5 : 3 + (double)rng_below(rng, 5)),
                                      .d2 = (double)rng_below(rng, 6)};
        if (rng_below(rng, 12) == 0)
            term[i].d2 = (double)INFINITY;
    }
}

static void threshold_is_the_twins(void **state)
{
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 12, 0));
    struct correction term[MOST];
    (void)state;
    for (int trial = 0; trial < 20000; trial++) {
        size_t n = rng_below(&rng, MOST + 1);
        uint32_t tolerate = (uint32_t)rng_below(&rng, 4);
        uint32_t behind = trial % 2 ? CLIP_LAST : CLIP_TRAINING;
        random_terms(&rng, term, n);
        double got = clip_threshold2(term, n, tolerate, behind);
        double want = plain_threshold2(term, n, tolerate, behind);
        if (!(got == want))
            fail_msg("trial %d: %zu terms, B = %u: %g, expected %g", trial, n, tolerate, got, want);
        assert_true(n > (size_t)behind * tolerate || got == 0);
    }
}

/* Four neighbours have equal weights, and one of them may be Byzantine. During training the
 * clipping threshold is the second-smallest of the neighbours' distances from this peer. In the
 * consensus phase it is the second-largest. */
static void four_neighbours(void **state)
{
    static const double d2[][6] = {{1, 2, 3, 4, 2, 3},
                                   {9, 1, 1, 9, 1, 9},
                                   {7, 7, 7, 7, 7, 7},
                                   {4, 1e20, 2, 3, 3, 4},
                                   {0, 5, 6, 7, 5, 6}};
    struct correction term[4];
    (void)state;
    for (size_t i = 0; i < sizeof d2 / sizeof d2[0]; i++) {
        for (size_t k = 0; k < 4; k++)
            term[k] = (struct correction){.w = 0.2, .d2 = d2[i][k]};
        assert_true(clip_threshold2(term, 4, 1, CLIP_TRAINING) == d2[i][4]);
        assert_true(clip_threshold2(term, 4, 1, CLIP_LAST) == d2[i][5]);
        assert_true(clip_threshold2(term, 4, 2, CLIP_TRAINING) == 0);
        assert_true(clip_threshold2(term, 2, 1, CLIP_TRAINING) == 0);
        assert_true(clip_threshold2(term, 1, 1, CLIP_LAST) == 0);
    }
}

/* ---- the pass ---- */

struct pass
{
    float x[DIM], a[MOST][DIM], b[MOST][DIM];
    double want[DIM];
    struct correction term[MOST];
};

static void fill_pass(struct pass *p, struct rng *rng, size_t n)
{
    for (size_t k = 0; k < DIM; k++)
        p->want[k] = (double)(p->x[k] = (float)rng_normal(rng));
    for (size_t i = 0; i < n; i++) {
        float size = expf(2 * (float)rng_normal(rng));
        for (size_t k = 0; k < DIM; k++) {
            p->a[i][k] = p->x[k];
            p->b[i][k] = p->a[i][k] + size * (float)rng_normal(rng);
        }
        p->term[i] = (struct correction){.a = p->a[i], .b = p->b[i], .coefficient = 0.1f, .w = 0.2};
    }
}

/* Reference for the pass that adds the terms d (corrections) to x: x += sum of 0.1 d min(1, tau
 * / |d|) in double, without refused terms. */
static void plain_pass(struct pass *p, size_t n, uint32_t tolerate, double most2)
{
    double d2[MOST], tau2 = (double)INFINITY;
    struct correction term[MOST];
    memcpy(term, p->term, sizeof term);
    for (size_t i = 0; i < n; i++) {
        d2[i] = vec_dist2(p->b[i], p->a[i], DIM);
        term[i].d2 = p->term[i].limit2 > 0 && d2[i] > p->term[i].limit2 ? (double)INFINITY : d2[i];
    }
    if (tolerate > 0)
        tau2 = plain_threshold2(term, n, tolerate, CLIP_TRAINING);
    tau2 = tau2 < most2 ? tau2 : most2;
    for (size_t i = 0; i < n; i++) {
        double c = d2[i] > tau2 ? 0.1 * sqrt(tau2 / d2[i]) : 0.1;
        for (size_t k = 0; k < DIM && isfinite(term[i].d2); k++)
            p->want[k] += c * ((double)p->b[i][k] - (double)p->a[i][k]);
    }
}

static void compare_pass(const struct pass *p, double tolerance)
{
    for (size_t k = 0; k < DIM; k++)
        if (!(fabs((double)p->x[k] - p->want[k]) <= tolerance))
            fail_msg("x[%zu] is %g, expected %g", k, (double)p->x[k], p->want[k]);
}

static void clipped_pass_is_the_twins(void **state)
{
    static struct pass p;
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 13, 0));
    (void)state;
    for (int trial = 0; trial < 60; trial++) {
        size_t n = rng_below(&rng, MOST + 1);
        uint32_t tolerate = (uint32_t)rng_below(&rng, 3);
        fill_pass(&p, &rng, n);
        if (n > 0 && trial % 3 == 0)
            p.term[rng_below(&rng, n)].limit2 = 3 * DIM;
        /* The random limit of the distance is below, among or above the distances of the terms
         * (corrections from neighbours). */
        bool limited = tolerate > 0 && trial % 2 == 0;
        double most2 = limited ? DIM * exp(3 * rng_normal(&rng)) : (double)INFINITY;
        plain_pass(&p, n, tolerate, most2);
        if (tolerate > 0)
            clip_terms(p.term, n, DIM, &(struct clip_rule){tolerate, CLIP_TRAINING, most2});
        correction_pass(p.x, DIM, p.term, n);
        compare_pass(&p, 1e-3);
        for (size_t i = 0; i < n; i++)
            assert_true(
                p.term[i].refused
                == (p.term[i].limit2 > 0 && vec_dist2(p.b[i], p.a[i], DIM) > p.term[i].limit2));
    }
}

/* The correction from one neighbour (a term) has one enormous value near its end. The term is
 * refused, and those of its blocks that were already added must be subtracted again. */
static void one_enormous_float_changes_nothing(void **state)
{
    static struct pass p;
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 14, 0));
    (void)state;
    for (int tolerate = 0; tolerate < 2; tolerate++) {
        fill_pass(&p, &rng, 5);
        p.b[2][DIM - 3] = 1e30f;
        p.term[2].limit2 = 1e9;
        plain_pass(&p, 5, (uint32_t)tolerate, (double)INFINITY);
        if (tolerate > 0)
            clip_terms(p.term, 5, DIM, &(struct clip_rule){1, CLIP_TRAINING, (double)INFINITY});
        correction_pass(p.x, DIM, p.term, 5);
        assert_true(p.term[2].refused);
        compare_pass(&p, 1e-3);
    }
}

/* ---- the outlier filter ---- */

static double limit2(const struct outlier_filter *t, double x2, double way2, double others2)
{
    return outlier_filter_limit2(
        t, &(struct outlier_filter_view){.x2 = x2, .way2 = way2, .others2 = others2});
}

static void limit_is_by_what_was_seen(void **state)
{
    struct outlier_filter t = {.most2 = 0};
    const double times2 = OUTLIER_FILTER_TIMES * OUTLIER_FILTER_TIMES,
                 apart2 = OUTLIER_FILTER_APART * OUTLIER_FILTER_APART;
    const double ways2 = OUTLIER_FILTER_WAYS * OUTLIER_FILTER_WAYS;
    (void)state;
    /* No distance has been measured on this edge yet, so the correction from its neighbour has
     * no limit. */
    assert_true(limit2(&t, 0, 0, 0) == 0);
    assert_true(limit2(&t, 4, 1, 0) == 4 * times2);
    /* The distances on other edges have no influence before outlier_filter_warn() is called. */
    assert_true(limit2(&t, 4, 1, 1e-3) == 4 * times2);
    /* If the largest distance seen on this edge is tiny, the limit is OUTLIER_FILTER_WAYS times
     * this peer's distance from the initial model. A peer that joins late and still has the initial
     * model is then accepted. */
    assert_true(limit2(&t, 1e-9, 1, 0) == ways2);
    assert_false(outlier_filter_saw(&t, 9, 0.2, false, false));
    assert_false(outlier_filter_saw(&t, 1, 0.2, false, false));
    assert_true(limit2(&t, 4, 1, 0) == 9 * times2);
    outlier_filter_begin(&t);
    assert_true(limit2(&t, 4, 1, 0) == 4 * times2);
    assert_false(outlier_filter_saw(&t, 9, 0.2, false, false));
    outlier_filter_warn(&t);
    outlier_filter_begin(&t);
    assert_true(limit2(&t, 4, 1, 0) == 9 * times2);
    assert_true(limit2(&t, 4, 1, 1) == apart2);
    assert_true(limit2(&t, 4, 1, 1e-9) == 0.25);
    assert_true(outlier_filter_apart(apart2 * 1.01, 1, 1) && !outlier_filter_apart(apart2, 1, 1));
    assert_false(outlier_filter_apart(apart2 * 1.01, 1, 5 * apart2));
}

/* Only a neighbour that stays far away without interruption becomes suspect. */
static void suspects_stay_apart(void **state)
{
    struct outlier_filter t = {.most2 = 0};
    int n = 0;
    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_false(outlier_filter_saw(&t, 1, 0.5, i % 15 != 0, false));
    assert_false(outlier_filter_saw(&t, 1, 0.5, false, false));
    while (!outlier_filter_saw(&t, 1, 0.5, true, false))
        n++;
    assert_int_equal(n, 2 * OUTLIER_FILTER_PULL);
    outlier_filter_warn(&t);
    assert_false(outlier_filter_saw(&t, 1, 0.5, true, false));
}

/* A neighbour becomes suspect if its distance grows, unless all neighbours move away. */
static void suspects_go_away(void **state)
{
    struct outlier_filter t = {.most2 = 0};
    const double grown2 = OUTLIER_FILTER_GROWN * OUTLIER_FILTER_GROWN;
    (void)state;
    assert_false(outlier_filter_saw(&t, 1, 1e-3, true, false));
    assert_false(outlier_filter_saw(&t, 0.99 * grown2, 1e-3, true, false));
    /* All neighbours have moved away, so no single neighbour is suspect. */
    assert_false(outlier_filter_saw(&t, 2 * grown2, 1e-3, false, false));
    assert_false(outlier_filter_saw(&t, 2 * grown2, 1e-3, true, false));
    assert_false(outlier_filter_saw(&t, 2 * grown2 * grown2, 1e-3, true, false));
    assert_true(outlier_filter_saw(&t, 2.1 * grown2 * grown2, 1e-3, true, false));
}

/* In a run with empty deltas (--trigger) a distance may grow further before its neighbour is
 * suspect. A neighbour that pulls is suspect as soon as in other runs. */
static void empty_deltas_let_a_distance_grow(void **state)
{
    struct outlier_filter t = {.most2 = 0};
    const double grown2 = OUTLIER_FILTER_GROWN_TRIGGER * OUTLIER_FILTER_GROWN_TRIGGER;
    int n = 1;
    (void)state;
    assert_false(outlier_filter_saw(&t, 1, 1e-3, true, true));
    assert_false(outlier_filter_saw(&t, 0.99 * grown2, 1e-3, true, true));
    assert_true(outlier_filter_saw(&t, 1.01 * grown2, 1e-3, true, true));
    t = (struct outlier_filter){.most2 = 0};
    while (!outlier_filter_saw(&t, 1, 0.5, true, true))
        n++;
    assert_int_equal(n, 2 * OUTLIER_FILTER_PULL + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threshold_is_the_twins),
        cmocka_unit_test(four_neighbours),
        cmocka_unit_test(clipped_pass_is_the_twins),
        cmocka_unit_test(one_enormous_float_changes_nothing),
        cmocka_unit_test(limit_is_by_what_was_seen),
        cmocka_unit_test(suspects_stay_apart),
        cmocka_unit_test(suspects_go_away),
        cmocka_unit_test(empty_deltas_let_a_distance_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
