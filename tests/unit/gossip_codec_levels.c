/* tests/unit/gossip_codec_levels.c -- tests which codec level follows from drift estimates. */
#include "compress/compress.h"
#include "gossip/exchange/codec_levels.h"
#include "gossip/exchange/edge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LOOKS = 8 };

/* Reports, at round `now`, the consensus distance Xi that was estimated for round `of`. Xi is 2 *
 * excess, the local steps of a round have length 1, and the factor `spread` of the graph is 2. The
 * normalised drift Xi / (spread * length) is therefore `excess`. The lag (the part of the model
 * that deltas leave unsent) is set to Xi. */
static void look(struct codec_levels *l, double target, double excess, uint64_t of, uint64_t now)
{
    l->motion2 = 1;
    l->lag2 = 4 * excess * excess;
    codec_levels_mark(l, of);
    codec_levels_look(l, target, 2, 2 * excess, of, now);
}

/* Each row: the drift divided by the target at each estimate, and the codec level that must
 * follow. */
static void test_table(void **state)
{
    static const struct
    {
        double ratio[LOOKS];
        uint32_t rung[LOOKS]; /* Codec level after each drift estimate. The first level is 3. */
    } row[] = {
        /* A drift from 1/2 to 1 of the target keeps the level. */
        {{0.5, 0.51, 0.75, 0.99, 1, 0.5, 1, 0.5}, {3, 3, 3, 3, 3, 3, 3, 3}},
        /* A drift above the target moves one level denser. */
        {{1.001, 0.7, 2, 1, 1.5, 0.9, 1.9, 0.6}, {4, 4, 5, 5, 6, 6, 7, 7}},
        /* A drift above twice the target moves two levels denser. */
        {{2.001, 0.7, 0.7, 100, 0.7, 0.7, 0.7, 0.7}, {5, 5, 5, 7, 7, 7, 7, 7}},
        /* A drift under half of the target moves one level sparser, at the second estimate in a
         * row. */
        {{0.499, 0.499, 0.7, 0.1, 0.6, 0.1, 0.1, 0.7}, {3, 2, 2, 2, 2, 2, 1, 1}},
        /* Two further low estimates are needed before the next step to a sparser level. */
        {{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 0.7}, {3, 2, 2, 1, 1, 0, 0, 0}},
        /* A low drift estimate before a change to a denser level does not count after the
         * change. */
        {{0.1, 3, 0.1, 0.1, 1.5, 0.1, 0.5, 0.1}, {3, 5, 5, 4, 5, 5, 5, 5}},
        {{0.1, 1.5, 0.1, 0.7, 0.1, 0.1, 0.1, 0.1}, {3, 4, 4, 4, 4, 3, 3, 2}},
        /* The level never exceeds 7, the densest. */
        {{9, 9, 9, 1.5, 0.7, 0.1, 0.1, 9}, {5, 7, 7, 7, 7, 7, 6, 7}},
        /* The level never falls below 0, the sparsest. A drift of 0 is a valid estimate. */
        {{0, 0, 0, 0, 0, 0, 0, 0}, {3, 2, 2, 1, 1, 0, 0, 0}},
        /* A drift estimate that is not finite is ignored and does not interrupt a sequence of low
         * ones. */
        {{0.1, (double)NAN, 0.1, (double)NAN, (double)INFINITY, 1.5, -INFINITY, 0.7},
         {3, 3, 2, 2, 2, 3, 3, 3}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int target = 0; target < 2; target++) {
            double of = target ? 0.25 : 4;
            struct codec_levels l;
            codec_levels_init(&l, 1);
            assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
            for (uint64_t t = 0; t < LOOKS; t++) {
                look(&l, of, of * row[i].ratio[t], 10 * t + 7, 10 * t + 9);
                if (l.rung != row[i].rung[t])
                    fail_msg("row %zu, look %d: rung %u, expected %u", i, (int)t, l.rung,
                             row[i].rung[t]);
            }
        }
}

/* The lag is the part of the model that deltas leave unsent. If the drift is above the target, the
 * codec level becomes denser only if the lag exceeds half of the drift. If the drift is within the
 * target, the level becomes sparser if the lag is under a fifth of the drift. The lag is the one at
 * the time when the drift estimate began. */
static void test_lag(void **state)
{
    static const struct
    {
        double excess, lag;
        uint32_t rung; /* Codec level after two drift estimates. */
    } row[] = {{1.5, 0.51, 5}, {1.5, 0.49, 3}, {100, 0.49, 3}, {100, 0.51, 7},
               {1.5, 0.21, 3}, {1.5, 0.19, 3}, {100, 0, 3},    {0.7, 0.19, 2},
               {1, 0.19, 2},   {0.7, 0.21, 3}, {0.3, 0.49, 2}, {0.3, 10, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct codec_levels l;
        codec_levels_init(&l, 1);
        for (uint64_t t = 1; t <= 2; t++) {
            double xi = 2 * row[i].excess, lag = row[i].lag * xi;
            l.motion2 = 1;
            l.lag2 = lag * lag;
            codec_levels_mark(&l, 10 * t);
            /* A drift estimate takes several rounds. The lag (the part of the model that deltas
             * leave unsent) at its start must count, not the lag at its end. */
            l.lag2 = 100 - l.lag2;
            codec_levels_look(&l, 1, 2, xi, 10 * t, 10 * t + 3);
        }
        if (l.rung != row[i].rung)
            fail_msg("row %zu: rung %u, expected %u", i, l.rung, row[i].rung);
    }
}

/* The drift stays over its target although the lag (the part of the model that deltas leave unsent)
 * is small. The codec level must not become sparser. It must become denser after three consecutive
 * drift estimates over four times the target. */
static void test_far_over(void **state)
{
    static const struct
    {
        double excess[2]; /* The estimates alternate between these normalised drifts. */
        uint32_t rung;    /* Codec level after nine drift estimates. */
    } row[] = {{{1.01, 1.01}, 3}, {{4, 4}, 3}, {{4.01, 4.01}, 6}, {{29, 100}, 6}, {{100, 3}, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct codec_levels l;
        codec_levels_init(&l, 1);
        for (uint64_t t = 1; t <= 9; t++) {
            double xi = 2 * row[i].excess[t % 2];
            l.motion2 = 1;
            l.lag2 = 0.14 * 0.14 * xi * xi;
            codec_levels_mark(&l, 10 * t);
            codec_levels_look(&l, 1, 2, xi, 10 * t, 10 * t + 3);
        }
        if (l.rung != row[i].rung)
            fail_msg("row %zu: rung %u, expected %u", i, l.rung, row[i].rung);
    }
}

/* The price of a level is the time of its deltas relative to the bandwidth budget, and p is its
 * value. A level of price p is used only if the drift exceeds p times the target. It is replaced by
 * a sparser level if the drift is under p / 2 times the target. Prices change nothing else. */
static void test_prices(void **state)
{
    static const struct
    {
        /* Prices of the codec levels 3, 4 and 5 (time relative to the bandwidth budget). */
        double price[3];
        double ratio, lag;
        /* Codec level after three estimates of the same drift. */
        uint32_t rung;
        const char *by;
    } row[] = {
        {{1, 1, 1}, 1.1, 1, 6, "drift"},    {{1, 2, 4}, 1.9, 1, 3, "price"},
        {{1, 2, 4}, 2.1, 1, 4, "price"},    {{1, 2, 4}, 4.1, 1, 6, "price"},
        {{2, 4, 8}, 1.1, 1, 3, "price"},    {{2, 4, 8}, 0.9, 1, 2, "drift"},
        {{2, 4, 8}, 1.9, 0.1, 2, "drift"},  {{1, 2, 4}, 4.1, 0.14, 3, "drift"},
        {{1, 1, 4}, 4.1, 0.14, 4, "drift"}, {{1, 2, 4}, 8.2, 0.14, 4, "drift"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        double price[CODEC_LEVELS_RUNGS] = {
            1, 1, 1, row[i].price[0], row[i].price[1], row[i].price[2], 8, 8};
        struct codec_levels l;
        codec_levels_init(&l, 1);
        if (i == 0)
            price[6] = price[7] = 1;
        /* Level 5 is too expensive and level 6 is cheap, so one step goes from 4 to 6. */
        if (i == 3)
            price[6] = 1;
        codec_levels_set_prices(&l, price, 0);
        for (uint64_t t = 1; t <= 3; t++) {
            double xi = 2 * row[i].ratio;
            l.motion2 = 1;
            l.lag2 = row[i].lag * row[i].lag * xi * xi;
            codec_levels_mark(&l, 10 * t);
            codec_levels_look(&l, 1, 2, xi, 10 * t, 10 * t + 3);
        }
        if (l.rung != row[i].rung || strcmp(codec_levels_by(&l), row[i].by) != 0)
            fail_msg("row %zu: rung %u by %s, expected %u by %s", i, l.rung, codec_levels_by(&l),
                     row[i].rung, row[i].by);
    }
}

/* The price of a codec level is the estimated time of its deltas relative to the bandwidth budget.
 * If the price makes a level too expensive at 8 drift estimates in a row, the level is tried to
 * measure its price. If the measured price is as high as estimated, the trial ends, and the next
 * trial comes after twice as many estimates. */
static void test_trials(void **state)
{
    const double dear[CODEC_LEVELS_RUNGS] = {1, 1, 1, 1, 8, 8, 8, 8};
    struct codec_levels l;
    uint64_t t = 1;
    (void)state;
    codec_levels_init(&l, 1);
    look(&l, 1, 0.7, 10, 13);
    codec_levels_set_prices(&l, dear, 0);
    for (uint32_t wait = CODEC_LEVELS_TRY; wait <= 4 * CODEC_LEVELS_TRY; wait *= 2) {
        for (uint32_t k = 0; k < wait; k++, t++) {
            assert_int_equal(l.rung, 3);
            look(&l, 1, 2, 10 * t + 10, 10 * t + 13);
        }
        assert_int_equal(l.rung, 4);
        for (uint32_t k = 0; k < 20; k++, t++)
            look(&l, 1, 1.5, 10 * t + 10, 10 * t + 13);
        /* The trial of a codec level continues until its price (time relative to the bandwidth
         * budget) is measured, although the estimated price is too high. */
        assert_int_equal(l.rung, 4);
        for (uint32_t k = 0; k < CODEC_LEVELS_TRIAL; k++)
            codec_levels_set_prices(&l, dear, 0);
        for (uint32_t k = 0; k < 2; k++, t++)
            look(&l, 1, 1.5, 10 * t + 10, 10 * t + 13);
    }
    assert_int_equal(l.rung, 3);
    /* In the fourth trial of this codec level, its price (time relative to the bandwidth budget)
     * turns out to be low. */
    for (uint32_t k = 0; k < 8 * CODEC_LEVELS_TRY; k++, t++)
        look(&l, 1, 2, 10 * t + 10, 10 * t + 13);
    const double cheap[CODEC_LEVELS_RUNGS] = {1, 1, 1, 1, 1, 1, 8, 8};
    for (uint32_t k = 0; k < CODEC_LEVELS_TRIAL; k++)
        codec_levels_set_prices(&l, cheap, 0);
    assert_int_equal(l.rung, 4);
    look(&l, 1, 2, 10 * t + 10, 10 * t + 13);
    assert_int_equal(l.rung, 5);
    assert_int_equal(l.wait, CODEC_LEVELS_TRY);
}

/* Before the first drift estimate, a codec level whose price (time relative to the bandwidth
 * budget) is above 2 is replaced by a sparser level. No level below CODEC_LEVELS_MIDDLE is chosen
 * for this reason. */
static void test_dear_from_the_start(void **state)
{
    struct codec_levels l;
    (void)state;
    const double price[][CODEC_LEVELS_RUNGS] = {
        {1, 1, 1, 2, 8, 8, 8, 8}, {1, 1, 1, 2.1, 8, 8, 8, 8}, {8, 8, 8, 8, 8, 8, 8, 8}};
    for (size_t k = 0; k < 3; k++) {
        codec_levels_init(&l, k == 2 ? CODEC_LEVELS_BLIND + 1 : 1);
        codec_levels_set_prices(&l, price[k], 5);
        assert_int_equal(l.rung, k == 0 ? CODEC_LEVELS_FIRST : CODEC_LEVELS_MIDDLE);
        assert_string_equal(codec_levels_by(&l), k == 0 ? "drift" : "price");
        /* When the prices of the levels (time relative to the bandwidth budget) are low again, the
         * codec level returns to CODEC_LEVELS_FIRST. */
        codec_levels_set_prices(&l, price[0], 6);
        assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
    }
    codec_levels_init(&l, 1);
    look(&l, 1, 0.7, 10, 13);
    codec_levels_set_prices(&l, price[2], 20);
    /* Since the first drift estimate, only drift estimates may change the codec level. A change of
     * the prices (time relative to the bandwidth budget) does not change it. */
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
}

/* From level 0 a drift above the target moves one level denser, as from any other level. */
static void test_lower_end(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    for (uint64_t t = 1; t <= 20; t++)
        look(&l, 1, 0.1, 10 * t, 10 * t + 3);
    assert_int_equal(l.rung, 0);
    look(&l, 1, 0.7, 300, 303);
    assert_int_equal(l.rung, 0);
    look(&l, 1, 1.5, 310, 313);
    assert_int_equal(l.rung, 1);
}

/* A drift estimate must count once. An estimate from before the last change of the level must be
 * ignored. */
static void test_old_figures(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    look(&l, 1, 5, 0, 0); /* A drift estimate of round 0 is ignored. */
    assert_int_equal(l.rung, 3);
    for (uint64_t now = 8; now < 20; now++)
        look(&l, 1, 0.1, 8, now); /* A drift estimate counts once, however often it is reported. */
    assert_int_equal(l.rung, 3);
    look(&l, 1, 0.1, 7, 20); /* A drift estimate of an older round is ignored. */
    assert_int_equal(l.rung, 3);
    look(&l, 1, 0.1, 9, 21);
    assert_int_equal(l.rung, 2);
    /* Ignored: drift estimates of rounds up to 21, because the level changed in round 21. */
    for (uint64_t of = 9; of <= 21; of++)
        look(&l, 1, 9, of, 22);
    assert_int_equal(l.rung, 2);
    /* This is the first low drift estimate. A single low estimate changes nothing. */
    look(&l, 1, 0.1, 22, 30);
    assert_int_equal(l.rung, 2);
    look(&l, 1, 9, 22, 31);
    assert_int_equal(l.rung, 2);
    /* A high drift estimate of a newer round counts at once, without a second one. */
    look(&l, 1, 9, 23, 32);
    assert_int_equal(l.rung, 4);
    look(&l, 1, 9, 32, 40);
    assert_int_equal(l.rung, 4);
    look(&l, 1, 9, 33, 41);
    assert_int_equal(l.rung, 6);
    look(&l, 1, 9, 42, 50);
    assert_int_equal(l.rung, 7);
    /* The level is already the densest and does not change, so later drift estimates count at
     * once. */
    look(&l, 1, 9, 51, 60);
    look(&l, 1, 0.1, 52, 61);
    look(&l, 1, 0.1, 53, 62);
    assert_int_equal(l.rung, 6);
}

/* The normalised drift is Xi / (spread |Delta|): Xi is the consensus distance, `spread` a factor of
 * the graph, and |Delta| the length of a round's local steps when the drift estimate began. */
static void test_unit(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    assert_true(isnan(l.excess));
    /* The first squared distance of local steps sets the moving average. Later ones have weight
     * 0.1. */
    codec_levels_moved(&l, 4);
    codec_levels_mark(&l, 10);
    codec_levels_moved(&l, 14);
    codec_levels_lagged(&l, 2);
    codec_levels_lagged(&l, 3);
    codec_levels_mark(&l, 20);
    assert_true(fabs(l.motion2 - 5) < 1e-12 && fabs(l.lag2 - 2.1) < 1e-12);
    /* Distance 2.4, spread 1.5, squared length of local steps 4: 2.4 / (1.5 * sqrt(4)) = 0.8. */
    codec_levels_look(&l, 1, 1.5, 2.4, 10, 30);
    assert_true(fabs(l.excess - 0.8) < 1e-12);
    codec_levels_look(&l, 1, 1.5, 2.4, 20, 31);
    assert_true(fabs(l.excess - 2.4 / 1.5 / sqrt(5)) < 1e-12);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
}

/* A drift estimate is ignored if it cannot be divided by the length of this peer's local steps at
 * the time when the estimate began. There were no local steps yet, or their length is no longer
 * stored. An estimate is also ignored if the peer has no neighbour. */
static void test_no_unit(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    codec_levels_mark(&l, 5);
    codec_levels_look(&l, 1, 1, 99, 5, 30);
    codec_levels_moved(&l, 1);
    codec_levels_lagged(&l, 1e6);
    for (uint64_t t = 1; t <= CODEC_LEVELS_MARKS + 1; t++)
        codec_levels_mark(&l, 10 * t);
    /* The length of the local steps at round 10 is no longer stored. A drift estimate of round 10
     * is therefore ignored. */
    codec_levels_look(&l, 1, 1, 99, 10, 90);
    codec_levels_look(&l, 1, 1, 99, 11, 91);
    codec_levels_look(&l, 1, 0, 99, 20, 92);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
    codec_levels_look(&l, 1, 1, 99, 20, 93);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST + 2);
}

/* The floor is the densest level that does not delay training, and deltas never use a sparser
 * level. While the floor is in use, a drift above the target makes the level denser as usual. A low
 * drift changes nothing. */
static void test_floor(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST);
    codec_levels_set_floor(&l, 5, 0);
    assert_int_equal(codec_levels_rung(&l), 5);
    for (uint64_t t = 1; t < 6; t++)
        /* The drift would allow a sparser codec level, but the level in use is the floor, the
         * sparsest level allowed. */
        look(&l, 1, 0.1, 10 * t, 10 * t + 3);
    assert_int_equal(codec_levels_rung(&l), 5);
    codec_levels_set_floor(&l, 0, 60);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST);
    /* Ignored: the drift estimate is from the time when level 5 was sent. */
    look(&l, 1, 0.1, 55, 70);
    look(&l, 1, 0.1, 65, 71);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST);
    look(&l, 1, 0.1, 66, 72);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST - 1);
    codec_levels_set_floor(&l, 4, 80);
    look(&l, 1, 1.5, 81, 82);
    assert_int_equal(codec_levels_rung(&l), 5);
    /* The floor of the codec level falls to 3, but the level in use stays 5. */
    codec_levels_set_floor(&l, 3, 83);
    look(&l, 1, 1.5, 84, 85);
    assert_int_equal(codec_levels_rung(&l), 6);
    codec_levels_set_floor(&l, 6, 90);
    look(&l, 1, 0.1, 91, 92);
    look(&l, 1, 0.1, 92, 93);
    /* A low drift changes nothing while the codec level equals the floor, the sparsest level
     * allowed. */
    assert_int_equal(l.rung, 6);
}

/* Every level is a valid codec under its canonical name. Its deltas are at least a quarter larger
 * than the deltas of the level before, and its number fits the wire format. */
static void test_rungs(void **state)
{
    static const struct segment segment = {
        .name = "x", .n = 60000, .rows = 200, .cols = 300, .trained = true};
    size_t before = 0;
    (void)state;
    for (int i = 0; i < CODEC_LEVELS_RUNGS; i++) {
        char canonical[COMPRESS_SPEC_MAX], error[COMPRESS_ERROR_MAX];
        struct compress *c;
        assert_int_equal(compress_canonical(codec_levels_spec[i], canonical, error), 0);
        assert_int_equal(compress_open(&c, codec_levels_spec[i], &segment, 1), 0);
        if (compress_nominal(c) < before + before / 4)
            fail_msg("%s is no denser than the rung before", codec_levels_spec[i]);
        before = compress_nominal(c);
        compress_close(c);
    }
    assert_true(DELTA_CODECS - 1 <= WIRE_CODE_MAX);
    assert_true(CODEC_LEVELS_FIRST < CODEC_LEVELS_RUNGS
                && CODEC_LEVELS_MIDDLE < CODEC_LEVELS_RUNGS);
}

/* If estimates of the consensus distance are more than CODEC_LEVELS_BLIND rounds apart, the run
 * must begin with a denser codec level: before the first estimate a peer cannot notice that its
 * deltas leave too much unsent. */
static void begins_dense_where_it_is_blind(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, CODEC_LEVELS_BLIND);
    assert_string_equal(codec_levels_spec[codec_levels_rung(&l)], "topk:0.1+qsgd:4");
    codec_levels_init(&l, CODEC_LEVELS_BLIND + 1);
    assert_string_equal(codec_levels_spec[codec_levels_rung(&l)], "qsgd:4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_dense_where_it_is_blind),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_lag),
        cmocka_unit_test(test_far_over),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_trials),
        cmocka_unit_test(test_dear_from_the_start),
        cmocka_unit_test(test_lower_end),
        cmocka_unit_test(test_old_figures),
        cmocka_unit_test(test_unit),
        cmocka_unit_test(test_no_unit),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_rungs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
