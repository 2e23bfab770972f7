/* tests/unit/gossip_uplink.c -- tests the bandwidth estimate and the floor of the codec level.
 *
 * The bandwidth is estimated from bursts. The floor is the densest level that costs no time on the
 * link. */
#include "gossip/exchange/uplink.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- bursts of a link ---- */

/* Adds n bursts over a link of `bytes_per_s`, each with `over_us` microseconds of latency. */
static void carry(struct uplink_bursts *b, int n, double bytes, double bytes_per_s, double over_us)
{
    for (int i = 0; i < n; i++)
        uplink_burst(b, bytes, over_us + 1e6 * bytes / bytes_per_s);
}

static void near_rate(const struct uplink_bursts *b, double rtt_us, double bytes_per_s)
{
    double s = uplink_s_per_byte(b, rtt_us);
    if (!(fabs(s * bytes_per_s - 1) <= 1e-6))
        fail_msg("%g s a byte, expected %g", s, 1 / bytes_per_s);
}

/* Latency must not affect the estimated bandwidth, whatever the length of the bursts. */
static void test_goodput(void **state)
{
    (void)state;
    for (double rate = 1e3; rate < 1e10; rate *= 100) {
        struct uplink_bursts one = {0}, many = {0};
        carry(&one, 1, 1000, rate, 50000);
        near_rate(&one, 50000, rate);
        carry(&many, 7, 60000, rate, 300);
        carry(&many, 2, 300, rate, 300);
        near_rate(&many, 300, rate);
        assert_true(uplink_s_per_byte(&many, 0) * rate > 1);
    }
}

/* Bursts of fewer than UPLINK_BURST bytes, such as heartbeats, do not count. If a burst takes no
 * longer than the latency of the link, the estimate is 0 s per byte. */
static void test_goodput_bounds(void **state)
{
    (void)state;
    struct uplink_bursts none = {0}, latency = {0}, many = {0};
    assert_true(isnan(uplink_s_per_byte(&none, 100)));
    uplink_burst(&none, UPLINK_BURST - 1, 40000);
    assert_true(isnan(uplink_s_per_byte(&none, 100)));
    uplink_burst(&latency, UPLINK_BURST, 40000);
    assert_true(uplink_s_per_byte(&latency, 40000) == 0);
    assert_true(uplink_s_per_byte(&latency, 50000) == 0);
    carry(&many, 10, 60000, 1e6, 0);
    /* Heartbeats, which are acknowledged late, must not count as bursts. */
    carry(&many, 100, 25, 1e6, 44000);
    near_rate(&many, 0, 1e6);
}

/* ---- the floor ---- */

/* The delta of each level is four times as long as the delta of the level before: 1, 4, 16, ...,
 * 16384 bytes. */
static void begin(struct uplink *u)
{
    double bytes[CODEC_LEVELS_RUNGS];
    for (int i = 0; i < CODEC_LEVELS_RUNGS; i++)
        bytes[i] = ldexp(1, 2 * i);
    uplink_init(u, bytes);
}

/* Time budgets of a delta, in seconds. A link that takes 1 s per byte needs 80 % of the budget
 * roomy(k), 91 % of tight(k) and 101 % of over(k) for a delta of level k. */
static double roomy(int k)
{
    return ldexp(1.25, 2 * k);
}
static double tight(int k)
{
    return ldexp(1.1, 2 * k);
}
static double over(int k)
{
    return ldexp(0.99, 2 * k);
}

static uint32_t look(struct uplink *u, double budget, uint32_t drift)
{
    uint32_t sent = drift > u->floor ? drift : u->floor;
    uplink_look(u, 1, budget, sent);
    return u->floor;
}

/* On a fast link the floor (the sparsest codec level that may be used) rises after three
 * measurements to one level above the level that the drift requires. After that it rises by one
 * level per three measurements. */
static void test_fast_link(void **state)
{
    static const uint32_t floor[] = {0, 0, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7};
    struct uplink u;
    (void)state;
    begin(&u);
    for (size_t i = 0; i < sizeof floor / sizeof *floor; i++)
        assert_int_equal(look(&u, 1e9, 3), floor[i]);
}

static void test_slow_link(void **state)
{
    struct uplink u;
    (void)state;
    begin(&u);
    for (int i = 0; i < 100; i++)
        assert_int_equal(look(&u, 0.5, 3), 0);
}

/* The floor is the densest level that fits the time budget of a delta. The floor rises only to a
 * level that takes at most 80 % of the budget, and stays while its level takes at most 100 %. */
static void test_stops_where_it_fits(void **state)
{
    (void)state;
    for (uint32_t drift = 0; drift < CODEC_LEVELS_RUNGS; drift++)
        for (int k = 1; k < CODEC_LEVELS_RUNGS; k++) {
            struct uplink u;
            begin(&u);
            for (int i = 0; i < 100; i++)
                look(&u, roomy(k), drift);
            assert_int_equal(u.floor, k);
            for (int i = 0; i < 100; i++)
                look(&u, tight(k), drift);
            assert_int_equal(u.floor, k);
            for (int i = 0; i < 100; i++)
                /* The floor (the sparsest codec level that may be used) rises to a level only if
                 * its deltas take at most 80 % of the time budget. Deltas of level k + 1 take 91 %,
                 * so the floor must not rise to that level. */
                look(&u, tight(k + 1), drift);
            assert_int_equal(u.floor, k);
            look(&u, over(k), drift);
            assert_int_equal(u.floor, k);
            look(&u, over(k), drift);
            assert_int_equal(u.floor, k - 1);
        }
}

/* Price of a codec level whose deltas take longer than the time budget: their time divided by the
 * budget, averaged over the last measurements. */
static void test_prices(void **state)
{
    struct uplink u;
    double price[CODEC_LEVELS_RUNGS];
    (void)state;
    begin(&u);
    uplink_prices(&u, price);
    for (int i = 0; i < CODEC_LEVELS_RUNGS; i++)
        /* Before the first measurement the prices of all codec levels are 1. */
        assert_true(price[i] == 1);
    /* The time budget of a delta is the time in which the link carries 32 bytes. */
    look(&u, 32, 3);
    uplink_prices(&u, price);
    for (int i = 0; i < CODEC_LEVELS_RUNGS; i++)
        assert_true(fabs(price[i] - fmin(fmax(1, u.bytes[i] / 32), UPLINK_PRICE_MOST)) < 1e-12);
    assert_true(price[2] == 1 && price[3] == 2 && price[4] == UPLINK_PRICE_MOST);
    look(&u, 1e9, 3); /* In one measurement only, the link is fast. */
    uplink_prices(&u, price);
    assert_true(price[3] > 1.5 && price[3] < 1.7);
    for (int i = 0; i < 40; i++)
        look(&u, 1e9, 3);
    uplink_prices(&u, price);
    assert_true(price[3] == 1 && price[4] == 1);
    begin(&u);
    look(&u, 1e9, 3);
    /* The sent codec level has changed from 3 to 2. This measurement still includes bursts of level
     * 3, so it does not change the prices of the levels (time relative to the budget). */
    look(&u, 8, 2);
    uplink_prices(&u, price);
    assert_true(price[3] == 1 && price[4] == 1);
    look(&u, 32, 2);
    uplink_prices(&u, price);
    assert_true(fabs(price[3] - 2) < 1e-9);
}

/* A single measurement must not move the floor of the codec level, neither up nor down. */
static void test_in_a_row(void **state)
{
    struct uplink u;
    (void)state;
    begin(&u);
    for (int i = 0; i < 30; i++)
        assert_int_equal(look(&u, i % 3 == 2 ? 0.5 : 1e9, 3), 0);
    for (int i = 0; i < 30; i++)
        look(&u, 1e9, 3);
    assert_int_equal(u.floor, 7);
    for (int i = 0; i < 30; i++)
        assert_int_equal(look(&u, i % 2 ? 0.5 : 1e9, 3), 7);
}

/* The last three measurements may allow different levels. The floor rises to the sparsest of these
 * levels. */
static void test_least_of_a_row(void **state)
{
    struct uplink u;
    (void)state;
    begin(&u);
    look(&u, roomy(5), 6);
    look(&u, roomy(2), 6);
    assert_int_equal(look(&u, roomy(6), 6), 2);
}

/* If a link turns slow, the floor falls in one step to a level that fits the link. */
static void test_falls_far(void **state)
{
    struct uplink u;
    (void)state;
    begin(&u);
    for (int i = 0; i < 30; i++)
        look(&u, 1e9, 3);
    look(&u, tight(2), 3);
    assert_int_equal(look(&u, tight(2), 3), 2);
    begin(&u);
    for (int i = 0; i < 30; i++)
        look(&u, 1e9, 3);
    look(&u, 0.5, 3);
    assert_int_equal(look(&u, 0.5, 3), 0);
}

/* On this link, deltas of one codec level fit the time budget by extrapolation from a sparser
 * level, but exceed it when they are sent. The tries of such a level must become less and less
 * frequent. */
static void test_flapping_link(void **state)
{
    struct uplink u;
    uint32_t last = 0, n_tries = 0;
    int at[16] = {0};
    (void)state;
    begin(&u);
    for (int i = 0; i < 2000; i++) {
        uint32_t was = u.floor;
        look(&u, u.floor == 5 ? over(5) : roomy(5), 3);
        if (u.floor > was && u.floor == 5) {
            assert_true(n_tries < 16);
            at[n_tries++] = i;
        }
    }
    assert_true(n_tries >= 6 && n_tries <= 10);
    for (uint32_t k = 2; k < n_tries; k++) {
        uint32_t pause = (uint32_t)(at[k] - at[k - 1]);
        assert_true(pause > last || last > UPLINK_WAIT_MOST);
        assert_true(pause <= UPLINK_WAIT_MOST + UPLINK_UP + UPLINK_DOWN);
        last = pause;
    }
    /* The link is fast from now on, so the denser codec level is tried again and kept. */
    for (int i = 0; i < UPLINK_WAIT_MOST + 100; i++)
        look(&u, roomy(5), 3);
    assert_int_equal(u.floor, 5);
    /* The floor has stayed at this codec level for a long time. If the floor falls below the level
     * again, the next try of the level must therefore come after the shortest wait, UPLINK_WAIT. */
    for (int i = 0; i < 2; i++)
        look(&u, over(5), 3);
    assert_int_equal(u.floor, 4);
    for (int i = 0; i < UPLINK_WAIT + UPLINK_UP; i++)
        look(&u, roomy(5), 3);
    assert_int_equal(u.floor, 5);
}

/* After the floor (the sparsest codec level that may be used) has fallen by several levels, its old
 * level may not be tried again for a while. The levels between the new and the old floor may be
 * tried at once. */
static void test_below_the_one_left(void **state)
{
    struct uplink u;
    (void)state;
    begin(&u);
    for (int i = 0; i < 30; i++)
        look(&u, roomy(5), 3);
    look(&u, 0.5, 3);
    look(&u, 0.5, 3);
    assert_int_equal(u.floor, 0);
    for (int i = 0; i < UPLINK_UP; i++)
        look(&u, 1e9, 7);
    assert_int_equal(u.floor, 4);
}

/* The drift demands a denser level than the link allows. The floor stays at the densest level that
 * fits the link. */
static void test_under_the_drift(void **state)
{
    struct uplink u;
    (void)state;
    begin(&u);
    for (int i = 0; i < 20; i++)
        look(&u, roomy(2), 7);
    assert_int_equal(u.floor, 2);
}

static void test_no_look(void **state)
{
    struct uplink u, was;
    (void)state;
    begin(&u);
    for (int i = 0; i < 8; i++)
        look(&u, 1e9, 3);
    was = u;
    uplink_look(&u, (double)NAN, 1, 3);
    uplink_look(&u, (double)INFINITY, 1, 3);
    uplink_look(&u, 1, (double)NAN, 3);
    assert_memory_equal(&u, &was, sizeof u);
}

static void test_budget(void **state)
{
    (void)state;
    assert_true(fabs(uplink_budget(2, false, 1) - 0.2) < 1e-12);
    assert_true(uplink_budget(2, true, 0.5) == 1.5);
    /* The time budget of a delta is always at least a tenth of the computing time. */
    assert_true(fabs(uplink_budget(2, true, 3) - 0.2) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_goodput_bounds),
        cmocka_unit_test(test_fast_link),
        cmocka_unit_test(test_slow_link),
        cmocka_unit_test(test_stops_where_it_fits),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_in_a_row),
        cmocka_unit_test(test_least_of_a_row),
        cmocka_unit_test(test_falls_far),
        cmocka_unit_test(test_flapping_link),
        cmocka_unit_test(test_below_the_one_left),
        cmocka_unit_test(test_under_the_drift),
        cmocka_unit_test(test_no_look),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
