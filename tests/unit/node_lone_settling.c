/* tests/unit/node_lone_settling.c -- tests of the consensus phase of a node: which distances it
 * believes, its speed and its codec, and the last exchange with a neighbour that has ended. */
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

/* A consensus distance that was measured during training does not describe the models at the end of
 * training. The consensus phase therefore waits for a measurement of its own. */
static void test_figure_of_training(void **state)
{
    (void)state;
    for (int blind = 0; blind < 2; blind++) {
        struct lone *w = new_world(ROUNDS);
        lone_open(w);
        run_to_phase(w, NODE_TRAINING);
        while (lone_progress(w).round < ROUNDS - 10)
            lone_run(w, LONE_STEP_US);

        /* blind: the simulated peer sends no more sketches, so no measurement of the distance is
         * completed. */
        w->actor[0].blind = blind;
        run_to_phase(w, NODE_CONSENSUS);
        /* The node must not end, because its neighbour does not finish. */
        lone_run(w, 10 * SECOND);
        assert_int_equal(lone_progress(w).phase, blind ? NODE_CONSENSUS : NODE_FINISHING);
        lone_close(w);
    }
}

/* If no measurement of the distance is completed, the consensus phase must end after 64 rounds per
 * member, not after a certain time. n_made_up: number of members that only simulated peer 0 has
 * reported, which must not prolong the phase. */
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
    /* The consensus phase would not end while a neighbour still trains, so the neighbour announces
     * the end of its training. */
    trained.state = RECORD_TRAINED;
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
    /* Rounds become slow, so that the limit of the consensus phase, 64 rounds per member, now takes
     * longer than 30 s. */
    w->step_us = SECOND / 4;
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

/* Mixer `average` exchanges updates, so its replicas are sums of updates and not models when the
 * consensus phase begins. The first mixing may then increase the distance between models. The phase
 * must therefore continue until its second measurement of the distance. The tag of a sketch
 * contains the number of the measurement to which the sketch belongs. */
static void test_replicas_that_lag(void **state)
{
    (void)state;
    struct lone *w = new_world(ROUNDS);
    const struct lone_actor *a = &w->actor[0];
    w->run.mixer = 1;
    /* The graph is a ring, because an update must not reach all peers in one round. */
    snprintf(w->run.topology, sizeof w->run.topology, "ring");
    lone_open(w);
    run_to_phase(w, NODE_FINISHING);
    assert_int_equal((a->delta.sketch_generation >> 16) - (a->window[1] >> 16), 2);
    lone_close(w);
}

/* ---- pace ---- */

/* Without lock step, a peer in the consensus phase that waits for slow trainers does no more rounds
 * per second than in its own training. */
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

/* In the consensus phase an edge uses the codec of that phase only when the other end is in the
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
    /* The neighbour announces steps that are ROUNDS / 4 below its real steps, as if it still
     * trained. The field `ahead` is unsigned and is added modulo 2^64, so this large value acts as
     * -ROUNDS / 4. */
    a->ahead = UINT64_MAX - ROUNDS / 4 + 1;
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

/* A neighbour sends its last delta and then announces its end. If both deltas of the last exchange
 * have arrived, both ends commit it. After that the node does not wait for the neighbour. */
static void test_last_exchange_of_a_neighbour(void **state)
{
    (void)state;
    uint8_t out[64];
    struct lone *w = new_world(ROUNDS);
    struct lone_actor *a = &w->actor[0];
    a->blind = true; /* Without sketches the consensus phase does not end by itself. */
    lone_open(w);
    run_to_phase(w, NODE_CONSENSUS);
    lone_run(w, SECOND);
    while (w->work_us == 0)
        lone_run(w, LONE_STEP_US / 4);
    a->follows = false;
    /* `d` is the last delta of the neighbour. The delta belongs to the exchange that the node's
     * running job begins. */
    struct wire_delta d = a->delta;
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
    /* The node does not know the consensus distance, so it waits for the finish protocol, which
     * does not answer. */
    struct record finished = a->record;
    finished.state = RECORD_FINISHED;
    finished.incarnation++;
    lone_tell(w, 0, finished);
    lone_run(w, 2 * SCHEDULE_STALL_US);
    assert_true(w->over && w->wrote_model);
    lone_close(w);
}

/* ---- edges of training in another topology ---- */

/* --final-topology: the consensus phase uses a ring, the training a complete graph. Simulated peer
 * `who` loses its session at the end of training, and returns with a session but never opens its
 * edge again. Returns whether the node still has the edge after SCHEDULE_LOST_US. */
static bool keeps_edge(uint32_t who)
{
    struct lone *w = lone_new(3, LOW_ID, ROUNDS);
    struct lone_actor *a = &w->actor[who];
    w->run.final_drift = 1e-3;
    snprintf(w->run.final_topology, sizeof w->run.final_topology, "ring");
    for (uint32_t i = 0; i < 3; i++)
        w->actor[i].blind = true;
    lone_open(w);
    run_to_phase(w, NODE_CONSENSUS);
    lone_disconnect(w, a->link, false);
    a->follows = false;
    (void)lone_connect(w, who, false, 0);
    lone_hello(w, who);
    lone_run(w, SECOND);
    assert_non_null(lone_edge_to(w, who));
    for (int64_t begun = w->now_us; w->now_us < begun + SCHEDULE_LOST_US + SECOND;) {
        lone_ping(w, who, ROUNDS, 0);
        lone_run(w, SECOND / 2);
    }
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    bool keeps = lone_edge_to(w, who) != NULL;
    lone_close(w);
    return keeps;
}

/* The peer opposite the node in the ring has only an edge of training. The node drops this edge,
 * and keeps the edges of the ring. */
static void test_lost_edge_of_training(void **state)
{
    (void)state;
    assert_int_equal(keeps_edge(0) + keeps_edge(1) + keeps_edge(2), 2);
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
        cmocka_unit_test(test_lost_edge_of_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
