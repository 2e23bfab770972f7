/* tests/unit/gossip_codec_levels.c -- the codec level for each sequence of drift estimates. */
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

/* A look where a round's motion was 1 when `of` began, and the graph's spread
 * is 2: the excess is `excess`. The replicas lag behind by as much as models differ. */
static void look(struct codec_levels *l, double target, double excess, uint64_t of, uint64_t now)
{
    l->motion2 = 1;
    l->lag2 = 4 * excess * excess;
    codec_levels_mark(l, of);
    codec_levels_look(l, target, 2, 2 * excess, of, now);
}

/* The drift over the target at each look, and the rung after it. */
static void test_table(void **state)
{
    static const struct
    {
        double ratio[LOOKS];
        uint32_t rung[LOOKS]; /* Levels after each look. The first level is 3. */
    } row[] = {
        /* Between 1/2 and 1, both included, it stays. */
        {{0.5, 0.51, 0.75, 0.99, 1, 0.5, 1, 0.5}, {3, 3, 3, 3, 3, 3, 3, 3}},
        /* Above the target: one denser. */
        {{1.001, 0.7, 2, 1, 1.5, 0.9, 1.9, 0.6}, {4, 4, 5, 5, 6, 6, 7, 7}},
        /* Above twice the target: two. */
        {{2.001, 0.7, 0.7, 100, 0.7, 0.7, 0.7, 0.7}, {5, 5, 5, 7, 7, 7, 7, 7}},
        /* Under half: one sparser, at the second look in a row. */
        {{0.499, 0.499, 0.7, 0.1, 0.6, 0.1, 0.1, 0.7}, {3, 2, 2, 2, 2, 2, 1, 1}},
        /* The next level needs two new looks. */
        {{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 0.7}, {3, 2, 2, 1, 1, 0, 0, 0}},
        /* A low drift before a step up does not count after it. */
        {{0.1, 3, 0.1, 0.1, 1.5, 0.1, 0.5, 0.1}, {3, 5, 5, 4, 5, 5, 5, 5}},
        {{0.1, 1.5, 0.1, 0.7, 0.1, 0.1, 0.1, 0.1}, {3, 4, 4, 4, 4, 3, 3, 2}},
        /* The upper end. */
        {{9, 9, 9, 1.5, 0.7, 0.1, 0.1, 9}, {5, 7, 7, 7, 7, 7, 6, 7}},
        /* The lower end, and back; 0 is a drift. */
        {{0, 0, 0, 0, 0, 0, 0, 0}, {3, 2, 2, 1, 1, 0, 0, 0}},
        /* An unknown drift is not a look and does not interrupt a sequence. */
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

/* Denser only where replicas lag by more than half of the drift, as they did when the
 * figure's window began; sparser where they lag by less than a fifth. */
static void test_lag(void **state)
{
    static const struct
    {
        double excess, lag;
        uint32_t rung; /* After two looks. */
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
            l.lag2 = 100 - l.lag2; /* The value at the time of the look does not matter. */
            codec_levels_look(&l, 1, 2, xi, 10 * t, 10 * t + 3);
        }
        if (l.rung != row[i].rung)
            fail_msg("row %zu: rung %u, expected %u", i, l.rung, row[i].rung);
    }
}

/* The drift is over the target for long, and replicas hardly lag: no sparser rung, and where
 * it is far over it a denser one, at the third such look in a row. */
static void test_far_over(void **state)
{
    static const struct
    {
        double excess[2]; /* In turns. */
        uint32_t rung;    /* After nine looks. */
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

/* A level with a price is used if the drift is above the target by that factor, and given up if
 * it is under half of that. Nothing else changes. */
static void test_prices(void **state)
{
    static const struct
    {
        double price[3]; /* Prices of the levels 3, 4 and 5. */
        double ratio, lag;
        uint32_t rung; /* After three looks that have this ratio. */
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
        if (i == 3) /* Two at once, but no more. */
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

/* A rung that is too dear is tried after 8 looks, and its price awaited; where that is as high, it is left
 * again, and tried after twice as many. */
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
        assert_int_equal(l.rung, 4); /* No price of its deltas has come. */
        for (uint32_t k = 0; k < CODEC_LEVELS_TRIAL; k++)
            codec_levels_set_prices(&l, dear, 0);
        for (uint32_t k = 0; k < 2; k++, t++)
            look(&l, 1, 1.5, 10 * t + 10, 10 * t + 13);
    }
    assert_int_equal(l.rung, 3);
    for (uint32_t k = 0; k < 8 * CODEC_LEVELS_TRY;
         k++, t++) /* This time it turns out to be cheap. */
        look(&l, 1, 2, 10 * t + 10, 10 * t + 13);
    const double cheap[CODEC_LEVELS_RUNGS] = {1, 1, 1, 1, 1, 1, 8, 8};
    for (uint32_t k = 0; k < CODEC_LEVELS_TRIAL; k++)
        codec_levels_set_prices(&l, cheap, 0);
    assert_int_equal(l.rung, 4);
    look(&l, 1, 2, 10 * t + 10, 10 * t + 13);
    assert_int_equal(l.rung, 5);
    assert_int_equal(l.wait, CODEC_LEVELS_TRY);
}

/* Until the drift is known no dear rung is sent, down to the middle one. */
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
        codec_levels_set_prices(&l, price[0], 6); /* The link was slow for a moment only. */
        assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
    }
    codec_levels_init(&l, 1);
    look(&l, 1, 0.7, 10, 13);
    codec_levels_set_prices(&l, price[2], 20);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST); /* From then on the drift has its say. */
}

/* From the lower end it goes up as from anywhere. */
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

/* A figure counts once, and one of before the last change says nothing of it. */
static void test_old_figures(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    look(&l, 1, 5, 0, 0); /* Round 0: there has been no window yet. */
    assert_int_equal(l.rung, 3);
    for (uint64_t now = 8; now < 20; now++)
        look(&l, 1, 0.1, 8, now); /* Known all the time: one look. */
    assert_int_equal(l.rung, 3);
    look(&l, 1, 0.1, 7, 20); /* Older still. */
    assert_int_equal(l.rung, 3);
    look(&l, 1, 0.1, 9, 21);
    assert_int_equal(l.rung, 2);
    for (uint64_t of = 9; of <= 21; of++) /* All of before the change at 21. */
        look(&l, 1, 9, of, 22);
    assert_int_equal(l.rung, 2);
    look(&l, 1, 0.1, 22, 30); /* This is a look without a change. */
    assert_int_equal(l.rung, 2);
    look(&l, 1, 9, 22, 31);
    assert_int_equal(l.rung, 2);
    look(&l, 1, 9, 23, 32); /* A newer estimate counts at once. */
    assert_int_equal(l.rung, 4);
    look(&l, 1, 9, 32, 40);
    assert_int_equal(l.rung, 4);
    look(&l, 1, 9, 33, 41);
    assert_int_equal(l.rung, 6);
    look(&l, 1, 9, 42, 50);
    assert_int_equal(l.rung, 7);
    look(&l, 1, 9, 51, 60); /* No change at the end: as without. */
    look(&l, 1, 0.1, 52, 61);
    look(&l, 1, 0.1, 53, 62);
    assert_int_equal(l.rung, 6);
}

/* The distance is measured by what a round of local steps moves, as it was when
 * the figure's window began, times the graph's spread. */
static void test_unit(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    assert_true(isnan(l.excess));
    codec_levels_moved(&l, 4); /* The first counts whole, the others a tenth. */
    codec_levels_mark(&l, 10);
    codec_levels_moved(&l, 14);
    codec_levels_lagged(&l, 2);
    codec_levels_lagged(&l, 3);
    codec_levels_mark(&l, 20);
    assert_true(fabs(l.motion2 - 5) < 1e-12 && fabs(l.lag2 - 2.1) < 1e-12);
    codec_levels_look(&l, 1, 1.5, 2.4, 10, 30); /* 2.4 / (1.5 * 2) */
    assert_true(fabs(l.excess - 0.8) < 1e-12);
    codec_levels_look(&l, 1, 1.5, 2.4, 20, 31);
    assert_true(fabs(l.excess - 2.4 / 1.5 / sqrt(5)) < 1e-12);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
}

/* No unit, no look: a window that began before this peer's first steps or is
 * not remembered any more, a peer with no neighbour. */
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
    codec_levels_look(&l, 1, 1, 99, 10, 90); /* The oldest has made room. */
    codec_levels_look(&l, 1, 1, 99, 11, 91);
    codec_levels_look(&l, 1, 0, 99, 20, 92);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST);
    codec_levels_look(&l, 1, 1, 99, 20, 93);
    assert_int_equal(l.rung, CODEC_LEVELS_FIRST + 2);
}

/* The floor is the level that is sent. The drift then continues from the floor: up as usual, and
 * never to a level that was not tried. */
static void test_floor(void **state)
{
    struct codec_levels l;
    (void)state;
    codec_levels_init(&l, 1);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST);
    codec_levels_set_floor(&l, 5, 0);
    assert_int_equal(codec_levels_rung(&l), 5);
    for (uint64_t t = 1; t < 6; t++)
        look(&l, 1, 0.1, 10 * t, 10 * t + 3); /* Sparser would do, and is not sent. */
    assert_int_equal(codec_levels_rung(&l), 5);
    codec_levels_set_floor(&l, 0, 60);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST);
    look(&l, 1, 0.1, 55, 70); /* A figure of when it was 5. */
    look(&l, 1, 0.1, 65, 71);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST);
    look(&l, 1, 0.1, 66, 72);
    assert_int_equal(codec_levels_rung(&l), CODEC_LEVELS_FIRST - 1);
    codec_levels_set_floor(&l, 4, 80);
    look(&l, 1, 1.5, 81, 82);
    assert_int_equal(codec_levels_rung(&l), 5);
    codec_levels_set_floor(&l, 3, 83); /* Nothing that is sent changes: figures count on. */
    look(&l, 1, 1.5, 84, 85);
    assert_int_equal(codec_levels_rung(&l), 6);
    codec_levels_set_floor(&l, 6, 90);
    look(&l, 1, 0.1, 91, 92);
    look(&l, 1, 0.1, 92, 93);
    assert_int_equal(l.rung, 6); /* A level as dense as the floor gives the same result. */
}

/* Every rung is a codec by its canonical name, denser than the one before, and
 * has a code on the wire. */
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

/* If estimates are rare, the first level must not lose much before the first estimate. */
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
