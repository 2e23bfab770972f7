/* tests/unit/node_hostile.c -- tests of a node against a hostile neighbour that does one thing at a
 * time. */
#include "tests/unit/node_hostile_says.h"

static void test_acts(void **state)
{
    (void)state;
    struct world *w = world_in_training(100000);
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        try_act(w, &acts[i]);
    world_close(w);
}

/* Any message before HELLO is a violation. After its HELLO an observer may send STATUS_REQ and
 * PING, but nothing else. */
static void test_out_of_turn(void **state)
{
    static uint8_t out[SCRATCH];
    (void)state;
    struct world *w = world_in_training(100000);
    size_t (*const early[])(struct world *, uint8_t *) = {ping,
                                                          edge_max,
                                                          close_edge,
                                                          delta_good,
                                                          model_unasked,
                                                          status_of_mine,
                                                          members_accuses_friend};
    for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
        evil_connects(w);
        evil_says(w, out, early[i](w, out));
        assert_true(w->violation);
    }
    for (size_t i = 0; i <= sizeof early / sizeof early[0]; i++) {
        struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_OBSERVER};
        evil_connects(w);
        evil_says(w, out, wire_put_hello(out, sizeof out, &h));
        assert_false(w->hung_up);
        evil_says(w, out, wire_put_status_req(out, sizeof out));
        assert_true(!w->hung_up && w->seen.has_status);
        if (i == 0) { /* The node ignores a PING of an observer. */
            evil_says(w, out, ping(w, out));
            assert_false(w->hung_up);
            continue;
        }
        evil_says(w, out,
                  i < sizeof early / sizeof early[0] ? early[i](w, out) : hello_again(w, out));
        assert_true(w->violation);
    }
    check_alive(w);
    world_close(w);
}

/* ---- the whole run ---- */

/* A hostile member without an edge sends all kinds of messages during a run, valid and invalid
 * ones. The final models are equal, bit for bit, to those of a run without these messages. */
static void test_same_models(void **state)
{
    static uint8_t out[SCRATCH];
    float final[2][NODES][DIM];
    (void)state;
    for (int harm = 0; harm < 2; harm++) {
        struct world *w = world_in_training(900);
        size_t i = 0;
        while (!w->over[OURS] || !w->over[FRIEND]) {
            run_for(w, STEP_US);
            assert_true(w->now_us < 60 * SECOND);
            const struct act *a = &acts[i++ % (sizeof acts / sizeof acts[0])];
            if (!harm || a->opened || w->over[OURS])
                continue;
            evil_connects(w);
            evil_hello(w);
            evil_says(w, out, a->make(w, out));
        }
        for (uint32_t k = 0; k < NODES; k++) {
            assert_int_equal(w->exit_code[k], 0);
            assert_int_equal(progress(w, k).round, 900);
            memcpy(final[harm][k], model(w, k), sizeof final[harm][k]);
        }
        assert_true(!harm || progress(w, OURS).violations > 50);
        world_close(w);
    }
    assert_memory_equal(final[0], final[1], sizeof final[0]);
}

/* ---- a joiner and a bad donor ---- */

/* Connects a third peer, which the test plays, and returns its link. */
static uint32_t third_connects(struct world *w)
{
    char text[WIRE_RUN_MAX + 1];
    uint32_t link = connect_ends(w, WATCH, OURS, 0);
    struct wire_hello h = good_hello(w, text);
    h.record = record(WATCH, 1);
    say(w, link, scratch, wire_put_hello(scratch, sizeof scratch, &h));
    assert_true(w->link[link].up);
    return link;
}

static void test_bad_donor(void **state)
{
    static uint8_t out[SCRATCH];
    (void)state;
    struct world *w = world_open(1000, 3, false);
    run_for(w, SECOND / 2);
    assert_int_equal(progress(w, OURS).phase, NODE_JOINING);
    float before[DIM];
    memcpy(before, model(w, OURS), sizeof before);
    for (int k = 0; k < 5; k++) {
        size_t n = k == 0   ? model_now(out, DIM - 1, 2)
                   : k == 1 ? model_now(out, DIM + 1, 2)
                   : k == 2 ? model_now(out, 0, 0)
                   : k == 3 ? model_now(out, DIM, (float)NAN)
                            : model_now(out, DIM, (float)-INFINITY);
        evil_is_asked(w);
        evil_says(w, out, n);
        assert_true(w->violation);
        assert_memory_equal(before, model(w, OURS), sizeof before);
        assert_int_equal(progress(w, OURS).round, 0);
    }
    evil_is_asked(w);
    /* The node asked the hostile peer for a model, not this third peer. */
    uint32_t third = third_connects(w);
    say(w, third, out, model_now(out, DIM, 3));
    assert_false(w->link[third].up);
    assert_memory_equal(before, model(w, OURS), sizeof before);
    evil_says(w, out, model_now(out, DIM, 7));
    assert_false(w->hung_up);
    assert_memory_equal(before, model(w, OURS), sizeof before);
    /* No other member can confirm the model of the hostile peer, so the node uses it after a
     * while. */
    run_for(w, 4 * SECOND);
    assert_true(model(w, OURS)[DIM / 2] == 7);
    /* The node takes the round from the HELLO of the hostile peer. */
    assert_int_equal(progress(w, OURS).round, 50);
    /* The node has asked for one model, so a second MODEL message is a violation. */
    evil_says(w, out, model_now(out, DIM, 8));
    assert_true(w->violation);
    assert_true(model(w, OURS)[DIM / 2] == 7);
    world_close(w);
}

/* The node gives up its own run for the run of the cluster while a model that was requested is
 * still in a send queue. It must take the cluster's run, and must still answer other requests. */
static void test_run_gives_way(void **state)
{
    static uint8_t out[SCRATCH];
    (void)state;
    struct world *w = world_open(1000, 3, false);
    run_for(w, SECOND / 2);
    (void)status(w);
    w->hold = true;
    say(w, w->watch, out, model_req(w, out));
    evil_connects(w);
    w->run.seed += 5;
    evil_hello(w);
    assert_int_equal(node_run(w->node[OURS])->seed, w->run.seed);
    assert_true(w->seen.hello);
    (void)status(w);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acts),          cmocka_unit_test(test_out_of_turn),
        cmocka_unit_test(test_same_models),   cmocka_unit_test(test_bad_donor),
        cmocka_unit_test(test_run_gives_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
