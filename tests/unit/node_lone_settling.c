/* tests/unit/node_lone_settling.c -- which figures the consensus phase believes, how fast it goes and in
 * which codec, and what is still mixed with a neighbour that has ended. */
#include "tests/unit/node_lone_world.h"

enum { LOW_ID = 0x10, ROUNDS = 2000, MS = 1000 };

static struct lone *new_world(uint64_t rounds)
{
    struct lone *w = lone_new(1, LOW_ID, rounds);
    w->run.final_drift = 1e-3;
    return w;
}

static void run_to_phase(struct lone *w, enum node_phase phase)
{
    while (lone_progress(w).phase < phase) {
        assert_true(w->now_us < 600 * (int64_t)SECOND);
        lone_run(w, LONE_STEP_US / 2);
    }
}

/* ---- figures ---- */

/* A distance that was measured while models were trained says nothing of where training left
 * them: the phase waits for one of its own. */
static void test_figure_of_training(void **state)
{
    (void)state;
    for (int blind = 0; blind < 2; blind++) {
        struct lone *w = new_world(ROUNDS);
        lone_open(w);
        run_to_phase(w, NODE_TRAINING);
        while (lone_progress(w).round < ROUNDS - 10)
            lone_run(w, LONE_STEP_US);

        w->actor[0].blind = blind; /* No window ends from here on. */
        run_to_phase(w, NODE_CONSENSUS);
        lone_run(w, 10 * SECOND); /* Its neighbour, which has not ended, may need its model. */
        assert_int_equal(lone_progress(w).phase, blind ? NODE_CONSENSUS : NODE_FINISHING);
        lone_close(w);
    }
}

/* Time alone does not end the phase: while exchanges are committed and no window has ended, the
 * phase continues for 64 rounds per member. Members known from one other member only are not
 * vertices and do not count. */
static void stall_waits_for_windows(uint32_t n_made_up)
{
    struct lone *w = new_world(ROUNDS);
    lone_open(w);
    run_to_phase(w, NODE_TRAINING);
    while (lone_progress(w).round < ROUNDS - 10)
        lone_run(w, LONE_STEP_US);
    w->actor[0].blind = true;
    run_to_phase(w, NODE_CONSENSUS);
    struct record trained = w->actor[0].record;
    trained.state = RECORD_TRAINED; /* While it trains there is something to wait for. */
    trained.incarnation++;
    lone_tell(w, 0, trained);
    for (uint32_t i = 0; i < n_made_up; i++) {
        struct record r = {.n_addresses = 1, .incarnation = 1, .state = RECORD_TRAINED};
        r.id[0] = 0xe0;
        r.id[1] = (uint8_t)i;
        snprintf(r.name, sizeof r.name, "ghost-%u", i);
        snprintf(r.address[0], sizeof r.address[0], "10.9.0.%u:7100", i);
        lone_tell(w, 0, r);
    }
    w->step_us = SECOND / 4; /* 64 rounds a member are more than 30 s. */
    lone_run(w, 35 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    lone_run(w, 45 * SECOND);
    assert_true(lone_progress(w).phase > NODE_CONSENSUS);
    assert_true(lone_progress(w).settle_rounds >= 2 * 64);
    lone_close(w);
}

static void test_stall_waits_for_windows(void **state)
{
    (void)state;
    stall_waits_for_windows(0);
    stall_waits_for_windows(50);
}

/* Where updates were averaged, replicas are sums of them and of no model when the consensus phase
 * begins, so that mixing may part models: the window that begins with the phase is no bound, the
 * next one is. A window is told by a sketch's tag. */
static void test_replicas_that_lag(void **state)
{
    (void)state;
    struct lone *w = new_world(ROUNDS);
    const struct lone_actor *a = &w->actor[0];
    w->run.mixer = 1;
    snprintf(w->run.topology, sizeof w->run.topology, "ring"); /* Updates do not reach all. */
    lone_open(w);
    run_to_phase(w, NODE_FINISHING);
    assert_int_equal((a->delta.sketch_generation >> 16) - (a->window[1] >> 16), 2);
    lone_close(w);
}

/* ---- pace ---- */

/* Without lock step, a peer that waits for slow trainers is not faster than its own training
 * was. */
static void test_pace_of_training(void **state)
{
    (void)state;
    struct lone *w = new_world(20);
    w->run.policy = RUN_ASYNC;
    w->step_us = SECOND;
    lone_open(w);
    run_to_phase(w, NODE_CONSENSUS);
    w->step_us = LONE_STEP_US;
    lone_run(w, 2 * SECOND);
    uint32_t n = w->actor[0].n_delta;
    lone_run(w, 20 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    assert_true(w->actor[0].n_delta >= n + 10 && w->actor[0].n_delta <= n + 21);
    lone_close(w);
}

/* In the consensus phase an edge uses the codec of that phase only after the other end is in the
 * phase, too. */
static void test_codec_waits_for_the_other_end(void **state)
{
    (void)state;
    struct lone *w = new_world(ROUNDS);
    struct lone_actor *a = &w->actor[0];
    w->run.policy = RUN_ASYNC;
    lone_open(w);
    run_to_phase(w, NODE_TRAINING);
    while (lone_progress(w).round < ROUNDS / 2)
        lone_run(w, LONE_STEP_US);
    a->ahead = UINT64_MAX - ROUNDS / 4 + 1; /* The neighbour is behind by that number of steps. */
    run_to_phase(w, NODE_CONSENSUS);
    lone_run(w, 2 * SECOND);
    assert_true(a->delta.run_round > ROUNDS);
    assert_int_equal(a->delta.codec, DELTA_RUN);
    a->ahead = 0;
    lone_run(w, 2 * SECOND);
    assert_int_equal(a->delta.codec, DELTA_FINAL);
    lone_close(w);
}

/* ---- the other end is final ---- */

/* The announcement of the end comes after the last delta: an exchange with both halves here is
 * committed at both ends, and then no peer is waited for. */
static void test_last_exchange_of_a_neighbour(void **state)
{
    (void)state;
    uint8_t out[64];
    struct lone *w = new_world(ROUNDS);
    struct lone_actor *a = &w->actor[0];
    a->blind = true; /* The phase continues. */
    lone_open(w);
    run_to_phase(w, NODE_CONSENSUS);
    lone_run(w, SECOND);
    while (w->work_us == 0)
        lone_run(w, LONE_STEP_US / 4);
    a->follows = false;
    struct wire_delta d = a->delta; /* The neighbour's half of the exchange that this job begins. */
    struct wire_ping last = {.round = 1, .finished = true};
    uint64_t n_exchanges = lone_progress(w).exchanges;
    d.round++;
    d.run_round++;
    d.sketch_generation = 0;
    d.sketch.n = 0;
    lone_delta(w, 0, &d, a->last, a->n_last);
    lone_says(w, 0, out, wire_put_ping(out, sizeof out, &last));
    lone_run(w, 5 * SECOND);
    assert_int_equal(lone_progress(w).exchanges, n_exchanges + 1);
    assert_true(w->over && w->wrote_model);
    lone_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure_of_training),
        cmocka_unit_test(test_replicas_that_lag),
        cmocka_unit_test(test_pace_of_training),
        cmocka_unit_test(test_codec_waits_for_the_other_end),
        cmocka_unit_test(test_last_exchange_of_a_neighbour),
        cmocka_unit_test(test_stall_waits_for_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
