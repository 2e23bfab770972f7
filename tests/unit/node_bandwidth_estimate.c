/* tests/unit/node_bandwidth_estimate.c -- tests of the bandwidth estimate in a node: which codec
 * level deltas use.
 *
 * The level is the most precise one whose transfer over the slowest edge does not delay
 * training. The drift may require a more precise level. */
#include "tests/unit/node_lone_world.h"

#include "gossip/exchange/codec_levels.h"
/* The test reads the prices of the codec levels (their time relative to the bandwidth budget). */
#include "peer/node/state.h"

enum {
    LOW_ID = 0x10,
    ROUNDS = 100000,
    /* One tick: simulated time in ms between two readings of the clock by the worker. The local
     * steps of a round take one tick, and mixing takes two. */
    TICK_MS = 10,
    LOOKS = 40
};

/* Rates in bytes per second. At `fast` the transfer of a delta takes little time compared with the
 * local steps, at any codec level. At `slow` it takes far too long. */
static const double fast = 1e6, slow = 1;

static struct lone *training_with(uint32_t n_actors, enum node_uplink uplink, double rate)
{
    struct lone *w = lone_new(n_actors, LOW_ID, ROUNDS);
    strcpy(w->run.compress, RUN_AUTO);
    w->config.uplink = uplink;
    w->config.uplink_rate = rate;
    lone_tick_us = 1000 * TICK_MS;
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    return w;
}

/* Reports that the link to simulated peer `who` has carried bursts at this rate. 0: no report. */
static void carry(struct lone *w, uint32_t who, double bytes_per_s)
{
    struct node_event ev = {
        .type = NODE_CARRIED, .link = (uint32_t)w->actor[who].link, .carried.rtt_us = 200};
    for (int i = 0; i < 10; i++)
        uplink_burst(&ev.carried.bursts, 1000, 200 + 1e6 * 1000 / bytes_per_s);
    if (bytes_per_s > 0)
        lone_step(w, &ev);
}

static void carry_both(struct lone *w, int seconds, double first, double second)
{
    for (int t = 0; t < seconds; t++) {
        lone_run(w, SECOND);
        carry(w, 0, first);
        carry(w, 1, second);
    }
    lone_run(w, SECOND);
}

static bool by_link(struct lone *w)
{
    return strcmp(lone_progress(w).rung_by, "link") == 0;
}

/* Checks that all deltas of the node use the most precise codec level. */
static void sends_the_densest(struct lone *w)
{
    struct node_progress p = lone_progress(w);
    assert_true(by_link(w));
    assert_string_equal(p.rung, codec_levels_spec[CODEC_LEVELS_RUNGS - 1]);
    for (uint32_t i = 0; i < w->n_actors; i++)
        assert_int_equal(w->actor[i].delta.codec, DELTA_RUNG + CODEC_LEVELS_RUNGS - 1);
}

static void test_fast_then_slow(void **state)
{
    (void)state;
    struct lone *w = training_with(2, NODE_UPLINK_AUTO, 0);
    assert_false(by_link(w));
    assert_true(isnan(lone_progress(w).goodput));
    carry_both(w, LOOKS, fast, fast);
    sends_the_densest(w);
    assert_true(fabs(lone_progress(w).goodput / fast - 1) < 1e-6);
    carry_both(w, 4, slow, slow);
    assert_false(by_link(w));
    lone_close(w);
}

/* The price of a codec level is the time of its deltas relative to the time budget, and at least 1.
 * All prices must be 1 on a fast link and while the rate is not known. On a slow link the level
 * with the largest deltas must have the highest possible price. */
static void test_slow_is_dear(void **state)
{
    (void)state;
    struct lone *w = training_with(2, NODE_UPLINK_AUTO, 0);
    const double *price = w->node->workshop.ladder.price;
    assert_true(price[0] == 1 && price[CODEC_LEVELS_RUNGS - 1] == 1);
    carry_both(w, LOOKS, fast, fast);
    assert_true(price[0] == 1 && price[CODEC_LEVELS_RUNGS - 1] == 1);
    carry_both(w, 4, slow, slow);
    assert_true(price[CODEC_LEVELS_RUNGS - 1] == UPLINK_PRICE_MOST);
    lone_close(w);
}

/* All edges get the same delta, so the slowest edge decides on the codec level. */
static void test_slowest_edge_decides(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct lone *w = training_with(2, NODE_UPLINK_AUTO, 0);
        carry_both(w, LOOKS, k ? slow : fast, k ? fast : slow);
        assert_false(by_link(w));
        assert_true(fabs(lone_progress(w).goodput / slow - 1) < 1e-6);
        lone_close(w);
    }
}

/* An edge without a measurement may be slow, so the measured rates do not count until all edges
 * have one. */
static void test_all_edges_are_asked(void **state)
{
    (void)state;
    struct lone *w = training_with(2, NODE_UPLINK_AUTO, 0);
    carry_both(w, LOOKS, fast, 0);
    assert_false(by_link(w));
    assert_true(isnan(lone_progress(w).goodput));
    /* The edge without measurements is closed, so the only open edge has measurements. */
    lone_disconnect(w, w->actor[1].link, false);
    w->actor[1].answers = false;
    carry_both(w, LOOKS, fast, 0);
    assert_true(by_link(w));
    lone_close(w);
}

/* A measurement is used only once. If one edge has no new measurement, the rates of all edges are
 * ignored. */
static void test_figures_are_used_once(void **state)
{
    (void)state;
    struct lone *w = training_with(2, NODE_UPLINK_AUTO, 0);
    carry_both(w, UPLINK_UP - 1, fast, fast);
    carry_both(w, LOOKS, fast, 0);
    assert_false(by_link(w));
    lone_close(w);
}

/* Measurements of a link that does not exist any more do not count for the new link. */
static void test_figures_go_with_their_link(void **state)
{
    (void)state;
    struct lone *w = training_with(1, NODE_UPLINK_AUTO, 0);
    for (int t = 0; t < LOOKS; t++) {
        struct node_event ev = {.type = NODE_CARRIED, .link = 4000};
        uplink_burst(&ev.carried.bursts, 1000, 1);
        lone_run(w, SECOND);
        lone_step(w, &ev);
    }
    assert_true(isnan(lone_progress(w).goodput));
    assert_false(by_link(w));
    lone_close(w);
}

/* A given rate (--bandwidth RATE) is divided by the number of edges, and measurements are
 * ignored. */
static void test_given_rate(void **state)
{
    (void)state;
    struct lone *w = training_with(2, NODE_UPLINK_RATE, fast);
    carry_both(w, LOOKS, slow, slow);
    sends_the_densest(w);
    assert_true(fabs(lone_progress(w).goodput / (fast / 2) - 1) < 1e-6);
    lone_close(w);
    w = training_with(2, NODE_UPLINK_RATE, slow);
    carry_both(w, LOOKS, fast, fast);
    assert_false(by_link(w));
    lone_close(w);
}

static void test_off(void **state)
{
    (void)state;
    struct lone *w = training_with(2, NODE_UPLINK_OFF, 0);
    carry_both(w, LOOKS, fast, fast);
    assert_false(by_link(w));
    assert_true(isnan(lone_progress(w).goodput));
    lone_close(w);
}

/* A run with a fixed codec has no codec levels. */
static void test_fixed_codec(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.uplink = NODE_UPLINK_AUTO;
    lone_open(w);
    lone_run(w, 15 * SECOND);
    carry(w, 0, fast);
    lone_run(w, SECOND);
    assert_null(lone_progress(w).rung);
    assert_null(lone_progress(w).rung_by);
    lone_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_then_slow),
        cmocka_unit_test(test_slowest_edge_decides),
        cmocka_unit_test(test_slow_is_dear),
        cmocka_unit_test(test_all_edges_are_asked),
        cmocka_unit_test(test_figures_are_used_once),
        cmocka_unit_test(test_figures_go_with_their_link),
        cmocka_unit_test(test_given_rate),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_fixed_codec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
