/* tests/unit/node_lone_sessions.c -- tests of a node's sessions: which members it dials, which of
 * two sessions it keeps, which run it takes, and what it sends when it leaves. */
#include "tests/unit/node_lone_world.h"

enum { LOW_ID = 0x10, HIGH_ID = 0xe0 };

/* Returns a node in training, with simulated peer 0 as neighbour. The id of peer 0 begins with
 * `first_id`. */
static struct lone *training_with(uint8_t first_id)
{
    struct lone *w = lone_new(1, first_id, 100000);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    assert_true(w->actor[0].n_delta > 10);
    return w;
}

/* ---- two sessions with one peer ---- */

/* Two peers have dialled each other at the same time. Both ends must keep the session that the peer
 * with the smaller id dialled, whichever came up first. */
static void test_crossed_sessions(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool node_is_low = k & 1, node_dialled_first = k & 2;
        struct lone *w = lone_new(1, node_is_low ? HIGH_ID : LOW_ID, 100000);
        w->actor[0].answers = w->actor[0].follows = false;
        lone_open(w);
        int first = lone_connect(w, 0, node_dialled_first, 0);
        lone_hello_of(w, 0, first, &w->run);
        int second = lone_connect(w, 0, !node_dialled_first, 0);
        lone_hello_of(w, 0, second, &w->run);
        int dialled = node_dialled_first ? first : second;
        int taken = node_dialled_first ? second : first;
        assert_int_equal(w->link[dialled].hung_up, !node_is_low);
        assert_int_equal(w->link[taken].hung_up, node_is_low);
        assert_false(w->link[first].violation || w->link[second].violation);
        lone_close(w);
    }
}

/* There are two sessions with a neighbour, both dialled by the same end. If the neighbour dialled
 * both, it has lost the first session, so the node keeps the second. If the node dialled both, it
 * keeps the first session, which is alive. */
static void test_second_session(void **state)
{
    (void)state;
    for (int node_dials = 0; node_dials < 2; node_dials++) {
        struct lone *w = lone_new(1, LOW_ID, 100000);
        w->actor[0].answers = w->actor[0].follows = false;
        lone_open(w);
        int first = lone_connect(w, 0, node_dials, 0);
        lone_hello_of(w, 0, first, &w->run);
        int second = lone_connect(w, 0, node_dials, 0);
        lone_hello_of(w, 0, second, &w->run);
        assert_int_equal(w->link[first].hung_up, !node_dials);
        assert_int_equal(w->link[second].hung_up, node_dials);
        lone_close(w);
    }
}

/* A session of a new process of the neighbour replaces the session of its dead predecessor, and a
 * new session replaces a silent one. Without this rule the older session would be kept, because the
 * peer with the smaller id dialled it. */
static void test_dead_session_gives_way(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        struct lone *w = training_with(LOW_ID);
        lone_disconnect(w, w->actor[0].link, false);
        w->actor[0].follows = false;
        /* The first session was dialled by the peer with the smaller id. */
        int first = lone_connect(w, 0, false, 0);
        lone_hello(w, 0);
        if (silent) {
            lone_run(w, 4 * SECOND);
        } else {
            w->actor[0].record.boot += 1;
            w->actor[0].record.incarnation += 1;
            w->actor[0].record = signed_record(w->actor[0].record);
        }
        int second = lone_connect(w, 0, true, 0);
        lone_hello(w, 0);
        assert_true(w->link[first].hung_up);
        assert_false(w->link[second].hung_up);
        lone_close(w);
    }
}

/* ---- choice of the run ---- */

/* If the run of the cluster contradicts the flags of the node, the node must report an error and
 * end. */
static void test_contradiction(void **state)
{
    (void)state;
    for (int agrees = 0; agrees < 2; agrees++) {
        char error[RUN_ERROR_MAX];
        struct lone *w = lone_new(1, LOW_ID, 1000);
        w->config.found = false;
        assert_int_equal(run_flags_set(&w->config.flags, "rounds", agrees ? "1000" : "500", error),
                         0);
        w->actor[0].follows = false;
        lone_open(w);
        int link = lone_connect(w, 0, false, 0);
        lone_hello_of(w, 0, link, &w->run);
        assert_int_equal(w->over, !agrees);
        assert_int_equal(w->n_errors, !agrees);
        assert_int_equal(node_run(w->node) != NULL, agrees);
        if (!agrees)
            assert_int_equal(w->exit_code, 2);
        lone_close(w);
    }
}

/* ---- leaving ---- */

/* A stopped node must announce that it leaves, write its model, and end with success. */
static void test_leaving_is_said(void **state)
{
    (void)state;
    struct lone *w = training_with(LOW_ID);
    struct node_event stop = {.type = NODE_STOP};
    while (w->work_us == 0)
        lone_run(w, LONE_STEP_US / 4);
    lone_step(w, &stop);
    lone_flush(w);
    /* The node must not end while its running job still needs the model. */
    assert_false(w->over || w->wrote_model);
    assert_int_equal(w->actor[0].told.state, RECORD_RUNNING);
    lone_run(w, SECOND);
    assert_true(w->over && w->wrote_model);
    assert_int_equal(w->exit_code, 0);
    assert_int_equal(w->actor[0].told.state, RECORD_LEFT);
    lone_close(w);
}

/* ---- bootstrap ---- */

static const char *const names[] = {"one:7100", "two:7100"};

static void resolved(struct lone *w, uint32_t seed, const char *address)
{
    struct node_event ev = {.type = NODE_RESOLVED, .resolved = {seed, &address, address != NULL}};
    lone_step(w, &ev);
}

/* Bootstrap names are resolved again and again: soon while no peer is found, and about every 30 s
 * after that. */
static void test_names_are_resolved_again(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, 100000);
    w->config.bootstrap = names;
    w->config.n_bootstrap = 2;
    w->config.n_known = 0;
    w->actor[0].answers = false;
    lone_open(w);
    lone_run(w, SECOND);
    assert_int_equal(w->n_resolves[0], 1);
    /* The lookup of the second name has not returned yet, and must not be started again. */
    assert_int_equal(w->n_resolves[1], 1);
    /* The results of the name lookups alternate: no address, and the address of a dead host. */
    for (uint32_t i = 1; i <= 20; i++) {
        resolved(w, 0, i % 2 ? NULL : "10.9.9.9:7100");
        lone_run(w, 3 * SECOND);
        assert_int_equal(w->n_resolves[0], i + 1);
    }
    assert_int_equal(w->n_dials, 10);
    assert_int_equal(w->n_resolves[1], 1);
    w->actor[0].answers = true;
    resolved(w, 0, w->actor[0].record.address[0]);
    lone_run(w, 3 * SECOND);
    assert_int_equal(w->actor[0].n_hello > 0, true);
    uint32_t before = w->n_resolves[0];
    for (uint32_t i = 0; i < 20; i++) {
        resolved(w, 0, w->actor[0].record.address[0]);
        lone_run(w, 40 * SECOND);
    }
    uint32_t times = w->n_resolves[0] - before;
    assert_true(times >= 20 && times <= 40);
    assert_int_equal(w->n_resolves[1], 1);
    lone_close(w);
}

/* ---- dialling ---- */

/* Returns how often the node dials simulated peer 0 in 12 s, if peer 0 ends each session at once.
 * violates: each session ends after a protocol violation. */
static uint32_t calls(bool violates)
{
    struct lone *w = training_with(HIGH_ID);
    static const uint8_t junk[] = {0xc1};
    w->actor[0].follows = false;
    lone_disconnect(w, w->actor[0].link, false);
    w->actor[0].n_dialled = 0;
    for (int64_t end = w->now_us + 12 * SECOND; w->now_us < end;) {
        lone_run(w, LONE_STEP_US);
        int link = w->actor[0].link;
        if (link == NO_LINK)
            continue;
        lone_hello(w, 0);
        if (violates)
            lone_says(w, 0, junk, sizeof junk);
        lone_disconnect(w, link, false);
    }
    uint32_t n = w->actor[0].n_dialled;
    lone_close(w);
    return n;
}

/* After sessions that end without an edge, the node dials again after growing intervals. After a
 * protocol violation it waits for the longest interval at once. */
static void test_back_off(void **state)
{
    (void)state;
    uint32_t useless = calls(false), violator = calls(true);
    print_message("%u calls of a useless peer, %u of a violator in 12 s\n", useless, violator);
    assert_true(useless >= 6 && useless <= 10);
    assert_true(violator >= 1 && violator <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossed_sessions),
        cmocka_unit_test(test_second_session),
        cmocka_unit_test(test_dead_session_gives_way),
        cmocka_unit_test(test_contradiction),
        cmocka_unit_test(test_leaving_is_said),
        cmocka_unit_test(test_names_are_resolved_again),
        cmocka_unit_test(test_back_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
