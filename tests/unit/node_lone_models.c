/* tests/unit/node_lone_models.c -- tests of the models that a node sends on request or receives,
 * and of the announcement that its own model is final. */
#include "peer/node/join/state_transfer.h"
#include "peer/run/exit.h"
#include "tests/unit/node_lone_world.h"

enum { LOW_ID = 0x10, ROUNDS = 1000000 };

static struct lone *training_with(uint32_t n_actors)
{
    struct lone *w = lone_new(n_actors, LOW_ID, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    return w;
}

/* ---- models that the node sends ---- */

static void orders(struct lone *w, uint32_t who, uint64_t round)
{
    uint8_t out[32];
    struct wire_model_req m = {.round = round, .piece = WIRE_PIECE_WHOLE};
    lone_says(w, who, out, wire_put_model_req(out, sizeof out, &m));
}

/* A model request is answered with one model: of the round that the request names, or of the next
 * round if it names 0. */
static void test_orders(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    uint64_t round = lone_progress(w).round;
    orders(w, 0, 0);
    lone_run(w, 3 * LONE_STEP_US);
    assert_int_equal(a->n_model, 1);
    assert_true(a->model_round >= round && a->model_round <= round + 2);
    orders(w, 0, round + 40);
    lone_run(w, 30 * LONE_STEP_US);
    assert_int_equal(a->n_model, 1);
    lone_run(w, 60 * LONE_STEP_US);
    assert_int_equal(a->n_model, 2);
    assert_int_equal(a->model_round, round + 40);
    lone_close(w);
}

/* Reconnects simulated peer 1 as an observer. Returns the number of the new link. */
static int becomes_observer(struct lone *w)
{
    uint8_t out[64];
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_OBSERVER};
    lone_disconnect(w, w->actor[1].link, false);
    int link = lone_connect(w, 1, false, 0);
    w->actor[1].follows = false;
    lone_says(w, 1, out, wire_put_hello(out, sizeof out, &h));
    return link;
}

/* At most one model is on its way to an observer, however often it asks. The node must send the
 * next model as soon as the driver reports that the previous one was sent (NODE_SENT), even without
 * any other event. */
static void test_one_model_on_its_way(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    int link = becomes_observer(w);
    for (uint32_t n = 1; n < 4; n++) {
        for (int k = 0; k < 20; k++) {
            orders(w, 1, 0);
            lone_run(w, LONE_STEP_US);
        }
        lone_run(w, 3 * LONE_STEP_US);
        assert_int_equal(w->actor[1].n_model, n);
        struct node_event sent = {.type = NODE_SENT, .link = (uint32_t)link};
        lone_step(w, &sent);
        orders(w, 1, 0);
    }
    lone_close(w);
}

static void orders_layers(struct lone *w, uint32_t who, uint64_t round, uint64_t key)
{
    uint8_t out[64];
    struct wire_model_req m = {.round = round, .piece = WIRE_PIECE_LAYERS, .key = key};
    lone_says(w, who, out, wire_put_model_req(out, sizeof out, &m));
}

/* An observer gets sketches of the layers for the round that it requests. These layers are so small
 * that the sketch is the layer itself. A member may not request sketches of layers. */
static void test_layers(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    struct lone_actor *a = &w->actor[1];
    (void)becomes_observer(w);
    uint64_t round = lone_progress(w).round + 40;
    orders_layers(w, 1, round, 5);
    lone_run(w, 20 * LONE_STEP_US);
    assert_int_equal(a->n_model, 0);
    orders(w, 0, round);
    lone_run(w, 60 * LONE_STEP_US);
    assert_int_equal(a->n_model, 1);
    assert_int_equal(a->model_round, round);
    assert_int_equal(a->model_piece, WIRE_PIECE_LAYERS);
    assert_int_equal(a->model_key, 5);
    assert_int_equal(w->actor[0].n_model, 1);
    assert_int_equal(w->actor[0].model_piece, WIRE_PIECE_WHOLE);
    assert_memory_equal(a->model, w->actor[0].model, sizeof a->model);
    assert_int_equal(lone_progress(w).violations, 0);
    orders_layers(w, 0, 0, 5);
    lone_run(w, 3 * LONE_STEP_US);
    assert_int_equal(w->actor[0].n_model, 1);
    assert_int_equal(lone_progress(w).violations, 1);
    lone_close(w);
}

/* In lock step a node may wait for a neighbour between the local steps of a round and the mixing.
 * An observer compares models after the mixing, so its request must be served only then. A member
 * must get the present model at once. early: the requests come while the job with the local steps
 * runs. false: they come after that job. */
static void observer_waits(bool early)
{
    struct lone *w = training_with(2);
    struct lone_actor *a = &w->actor[1];
    (void)becomes_observer(w);
    w->step_us = SECOND;
    lone_run(w, 3 * SECOND);
    while (w->work_us <= w->now_us + SECOND / 2)
        lone_run(w, LONE_STEP_US);
    w->actor[0].follows = false;
    if (early)
        orders_layers(w, 1, lone_progress(w).round + 1, 5);
    while (w->work_us != 0)
        lone_run(w, LONE_STEP_US);
    lone_run(w, 2 * LONE_STEP_US);
    uint64_t round = lone_progress(w).round;
    if (!early)
        orders_layers(w, 1, round, 5);
    orders(w, 0, 0);
    lone_run(w, SECOND / 2);
    /* The node waits in lock step for simulated peer 0, so no job runs and the round does not
     * advance. */
    assert_true(w->work_us == 0 && lone_progress(w).round == round);
    assert_int_equal(w->actor[0].n_model, 1);
    assert_int_equal(a->n_model, 0);
    /* After 20 s the node no longer waits for the silent simulated peer 0. */
    lone_run(w, 20 * SECOND);
    assert_int_equal(a->n_model, 1);
    assert_int_equal(a->model_round, round);
    lone_close(w);
}

static void test_observer_waits(void **state)
{
    (void)state;
    observer_waits(false);
    observer_waits(true);
}

/* Two peers request the node's model of different rounds. Each gets the model of its round. */
static void test_orders_of_two(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    uint64_t round = lone_progress(w).round;
    orders(w, 0, 0);
    orders(w, 1, round + 40);
    lone_run(w, 20 * LONE_STEP_US);
    assert_int_equal(w->actor[0].n_model, 1);
    assert_int_equal(w->actor[1].n_model, 0);
    lone_run(w, 40 * LONE_STEP_US);
    assert_int_equal(w->actor[0].n_model, 1);
    assert_int_equal(w->actor[1].n_model, 1);
    lone_close(w);
}

/* A model request that arrives while a job runs is served when the job is done, even if the node
 * then waits in lock step for the neighbour that asks. */
static void test_order_between_jobs(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    w->step_us = SECOND;
    while (w->work_us <= w->now_us + SECOND / 2)
        lone_run(w, LONE_STEP_US);
    w->actor[0].follows = w->actor[1].follows = false;
    orders(w, 0, 0);
    lone_flush(w);
    assert_int_equal(w->actor[0].n_model, 0);
    uint64_t steps = w->n_steps;
    lone_run(w, 2 * SECOND);
    /* In lock step the node waits for the simulated peers, so no further job runs. */
    assert_true(w->work_us == 0 && w->n_steps <= steps + 1);
    assert_int_equal(w->actor[0].n_model, 1);
    lone_close(w);
}

/* If the model of a round is requested, the node sends its model before the local steps of that
 * round. */
static void test_model_of_its_round(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    const struct segment *segment;
    size_t n_segments, n;
    float before[LONE_DIM];
    /* Local steps no longer change the model, so the node and the simulated peers have equal
     * models. */
    w->pull = 0;
    lone_run(w, SECOND);
    memcpy(before, node_model(w->node, &segment, &n_segments, &n), sizeof before);
    uint64_t round = lone_progress(w).round + 10;
    orders(w, 0, round);
    while (lone_progress(w).round + 1 < round)
        lone_run(w, LONE_STEP_US / 4);
    /* The next local step belongs to the requested round, but the model must be sent as it is
     * before this step. From now on local steps change the model, so that the two models differ. */
    w->pull = 0.5f;
    lone_run(w, 5 * LONE_STEP_US);
    assert_int_equal(a->n_model, 1);
    assert_int_equal(a->model_round, round);
    for (size_t k = 0; k < LONE_DIM; k++)
        assert_true(fabsf(a->model[k] - before[k]) <= 1e-5f);
    lone_close(w);
}

/* A request may ask for the model at the next measurement of the consensus distance
 * (WIRE_ROUND_WINDOW). The measured distance, which the node reports later, is of the same round as
 * the model. */
static void test_model_of_a_window(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    for (int i = 0; i < 2; i++) {
        a->n_model = 0;
        orders(w, 0, WIRE_ROUND_WINDOW);
        while (a->n_model == 0)
            lone_run(w, LONE_STEP_US);
        for (int k = 0; k < 1500 && lone_progress(w).drift_round < a->model_round; k++)
            lone_run(w, LONE_STEP_US);
        assert_int_equal(lone_progress(w).drift_round, a->model_round);
    }
    lone_close(w);
}

/* A model request is void after the session over which it came has ended. */
static void test_order_of_a_lost_session(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    orders(w, 0, lone_progress(w).round + 20);
    lone_disconnect(w, a->link, false);
    (void)lone_connect(w, 0, false, 0);
    lone_hello(w, 0);
    lone_run(w, 3 * SECOND);
    assert_true(lone_progress(w).round > 100);
    assert_int_equal(a->n_model, 0);
    lone_close(w);
}

/* ---- pieces of models that the node sends ---- */

/* Requests piece 0 of the node's model. Returns the round of the model from which the piece
 * comes. */
static uint64_t piece_round(struct lone *w, uint32_t who)
{
    uint8_t out[32];
    struct lone_actor *a = &w->actor[who];
    struct wire_model_req m = {.piece = 0}; /* A model this small has only one piece. */
    uint32_t n_before = a->n_model;
    lone_says(w, who, out, wire_put_model_req(out, sizeof out, &m));
    lone_run(w, 3 * LONE_STEP_US);
    assert_int_equal(a->n_model, n_before + 1);
    return a->model_round;
}

/* The node copies its model for the first piece that is requested. The copy serves all requests
 * within 10 s, even if rounds pass. After that the node makes a new copy. */
static void test_pieces_of_one_copy(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    uint64_t round = piece_round(w, 0);
    for (int i = 0; i < 8; i++) {
        lone_run(w, SECOND);
        assert_true(lone_progress(w).round > round + 10);
        assert_int_equal(piece_round(w, (uint32_t)i % 2), round);
    }
    lone_run(w, 3 * SECOND);
    assert_true(piece_round(w, 1) > round + 100);
    lone_close(w);
}

/* ---- models that the node receives ---- */

/* A node that joins late requests the model's only piece from the member that has done the most
 * rounds. If no answer comes, the node asks the next member as well, each member once. After 20 s
 * without an answer it asks the first member again. */
static void test_donors(void **state)
{
    (void)state;
    static const uint64_t started[] = {90, 40, 60};
    struct lone *w = lone_new(3, LOW_ID, ROUNDS);
    for (uint32_t i = 0; i < 3; i++) {
        w->actor[i].answers = false;
        w->actor[i].started = started[i];
    }
    lone_open(w);
    for (uint32_t i = 0; i < 3; i++) {
        (void)lone_connect(w, i, false, 0);
        lone_flush(w);
    }
    lone_run(w, SECOND);
    assert_int_equal(w->actor[0].n_model_req, 1);
    assert_int_equal(w->actor[1].n_model_req + w->actor[2].n_model_req, 0);
    lone_run(w, 2 * SECOND);
    assert_int_equal(w->actor[1].n_model_req, 0);
    assert_int_equal(w->actor[2].n_model_req, 1);
    lone_run(w, 14 * SECOND);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(w->actor[i].n_model_req, 1);
    lone_run(w, 10 * SECOND);
    assert_int_equal(w->actor[0].n_model_req, 2);
    assert_int_equal(lone_progress(w).phase, NODE_JOINING);
    lone_close(w);
}

/* While a node fetches the model from one member, it also dials some members that are not its
 * neighbours. */
static void test_more_are_called(void **state)
{
    (void)state;
    uint32_t n = 0;
    struct lone *w = lone_new(LONE_ACTORS, LOW_ID, ROUNDS);
    snprintf(w->run.topology, sizeof w->run.topology, "ring");
    w->actor[0].started = 90;
    lone_open(w);
    (void)lone_connect(w, 0, false, 0);
    lone_run(w, SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_JOINING);
    for (uint32_t i = 1; i < LONE_ACTORS; i++)
        n += w->actor[i].n_dialled > 0;
    assert_int_equal(n, STATE_TRANSFER_SOURCES - 1);
    lone_close(w);
}

/* ---- the final model ---- */

/* At the end a node announces that its model is final, by PING and by its record. While it stays
 * for a neighbour that still mixes, it also tells peers that connect later. */
static void test_end_is_said(void **state)
{
    (void)state;
    struct lone *w = lone_new(2, LOW_ID, 50);
    w->actor[0].goes_on = true;
    w->actor[1].answers = false;
    w->run.min_peers = 2;
    lone_open(w);
    while (lone_progress(w).phase != NODE_FINISHING && w->now_us < 60 * SECOND)
        lone_run(w, LONE_STEP_US);
    lone_run(w, 10 * LONE_STEP_US);
    assert_int_equal(lone_progress(w).phase, NODE_FINISHING);
    assert_true(w->wrote_model);
    assert_true(w->actor[0].told_finished);
    assert_int_equal(w->actor[0].told.state, RECORD_FINISHED);
    assert_false(w->actor[1].told_finished);
    (void)lone_connect(w, 1, false, 0);
    lone_hello(w, 1);
    lone_flush(w);
    assert_true(w->actor[1].told_finished);
    lone_close(w);
}

/* Runs a node without faults until it has to store its final model. The driver does not report that
 * the model is stored. */
static struct lone *at_the_end(void)
{
    struct lone *w = lone_new(1, LOW_ID, 50);
    w->slow_disk = true;
    w->config.patience_us = 3 * (int64_t)SECOND;
    lone_open(w);
    while (!w->wrote_model && w->now_us < 60 * SECOND)
        lone_run(w, LONE_STEP_US);
    lone_run(w, 10 * LONE_STEP_US);
    assert_true(w->wrote_model && !w->over);
    assert_false(w->actor[0].told_finished);
    assert_int_equal(w->actor[0].told.state, RECORD_TRAINED);
    return w;
}

/* Reports a failed write to the node, which must not announce the end. Checks that the next write
 * begins after_us later. */
static void write_fails(struct lone *w, int64_t after_us)
{
    struct node_wait wait;
    w->wrote_model = false;
    lone_kept(w, false);
    node_wait(w->node, &wait);
    assert_int_equal(wait.what, NODE_WAITS_DISK);
    lone_run(w, after_us - SECOND / 5);
    assert_false(w->wrote_model || w->over || w->actor[0].told_finished);
    lone_run(w, 2 * SECOND / 5);
    assert_true(w->wrote_model);
}

/* The node must announce the end only after its model has been stored. If storing fails, it must
 * try again after 1 s and 2 s. At the time limit of 3 s it must report that it failed, complete the
 * run with its neighbours, and exit with an error. */
static void test_end_is_said_once_stored(void **state)
{
    (void)state;
    for (int stored = 0; stored < 2; stored++) {
        struct lone *w = at_the_end();
        if (!stored) {
            write_fails(w, SECOND);
            write_fails(w, 2 * SECOND - SECOND / 5);
        }
        lone_kept(w, stored);
        lone_flush(w);
        assert_true(w->actor[0].told_finished);
        assert_int_equal(w->actor[0].told.state, stored ? RECORD_FINISHED : RECORD_FAILED);
        assert_int_equal(w->n_errors, !stored);
        lone_run(w, 60 * SECOND);
        assert_true(w->over);
        assert_true((w->exit_code == CMD_FAILED) == !stored);
        lone_close(w);
    }
}

/* After a stop request the node must not wait for space on the disk: it must ask for one last
 * write, and end. */
static void test_stop_ends_retries(void **state)
{
    (void)state;
    struct lone *w = at_the_end();
    w->wrote_model = false;
    lone_kept(w, false);
    lone_step(w, &(struct node_event){.type = NODE_STOP});
    assert_true(w->wrote_model && w->over);
    lone_close(w);
}

/* At the end of a run no exchange remains half done. The node has sent each neighbour the same
 * number of deltas, and every delta was part of an exchange. */
static void test_end_is_clean(void **state)
{
    (void)state;
    for (uint64_t rounds = 20; rounds < 26; rounds++) {
        struct lone *w = lone_new(2, LOW_ID, rounds);
        w->run.final_drift = 1e-3;
        lone_open(w);
        lone_run(w, 120 * SECOND);
        assert_true(w->over && w->wrote_model);
        assert_int_equal(w->exit_code, 0);
        assert_int_equal(lone_progress(w).round, rounds);
        assert_int_equal(w->n_steps, rounds);
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(w->actor[i].n_delta, w->actor[0].n_delta);
        assert_int_equal(lone_progress(w).exchanges, 2 * w->actor[0].n_delta);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_orders_of_two),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_observer_waits),
        cmocka_unit_test(test_one_model_on_its_way),
        cmocka_unit_test(test_order_between_jobs),
        cmocka_unit_test(test_model_of_its_round),
        cmocka_unit_test(test_model_of_a_window),
        cmocka_unit_test(test_order_of_a_lost_session),
        cmocka_unit_test(test_pieces_of_one_copy),
        cmocka_unit_test(test_donors),
        cmocka_unit_test(test_more_are_called),
        cmocka_unit_test(test_end_is_said),
        cmocka_unit_test(test_end_is_said_once_stored),
        cmocka_unit_test(test_stop_ends_retries),
        cmocka_unit_test(test_end_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
