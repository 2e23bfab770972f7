/* tests/unit/node_lone_edges.c -- tests of a node's edges: how they open and close, and what
 * becomes of them if the session is lost, the neighbour is silent, or the member leaves. */
#include "tests/unit/node_lone_world.h"

#include "peer/node/result/verdict.h"

enum { LOW_ID = 0x10, HIGH_ID = 0xe0, ROUNDS = 100000 };

/* Returns a node that is training, with `n_actors` neighbours. */
static struct lone *training_with(uint32_t n_actors, uint8_t first_id)
{
    struct lone *w = lone_new(n_actors, first_id, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    for (uint32_t i = 0; i < n_actors; i++)
        assert_true(w->actor[i].n_delta > 10);
    return w;
}

static uint32_t state_with(struct lone *w, uint32_t who)
{
    const struct wire_status_edge *e = lone_edge_to(w, who);
    return e != NULL ? e->state : EDGE_CLOSED;
}

/* ---- EDGE before there is an edge ---- */

/* Returns a node without a run, and a silent neighbour whose HELLO has no run either. */
static struct lone *without_run(void)
{
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.found = false;
    w->actor[0].follows = w->actor[0].answers = false;
    lone_open(w);
    lone_hello_of(w, 0, lone_connect(w, 0, false, 0), NULL);
    return w;
}

static void edge_asks(struct lone *w)
{
    lone_edge(w, 0, (struct wire_edge){.nonce = ++w->actor[0].nonce});
}

/* An EDGE message that comes before the run is known is remembered, and answered as soon as the
 * edge exists. */
static void test_early_edge_counts(void **state)
{
    (void)state;
    struct lone *w = without_run();
    edge_asks(w);
    lone_hello(w, 0);
    lone_run(w, SECOND);
    assert_int_equal(w->actor[0].n_edge, 1);
    assert_int_equal(state_with(w, 0), EDGE_OPEN);
    lone_close(w);
}

/* An EDGE message that came before the run is known does not count if its sender has withdrawn it
 * (EDGE_CLOSE), or if its session has ended. */
static void test_early_edge_is_void(void **state)
{
    (void)state;
    for (int session = 0; session < 2; session++) {
        uint8_t out[16];
        struct lone *w = without_run();
        edge_asks(w);
        if (session) {
            lone_disconnect(w, w->actor[0].link, false);
            (void)lone_connect(w, 0, false, 0);
        } else {
            lone_says(w, 0, out, wire_put_edge_close(out, sizeof out));
        }
        lone_hello(w, 0);
        lone_run(w, SECOND);
        assert_int_equal(w->actor[0].n_edge, 1);
        assert_int_equal(state_with(w, 0), EDGE_ASKING);
        edge_asks(w);
        assert_int_equal(state_with(w, 0), EDGE_OPEN);
        lone_close(w);
    }
}

/* An EDGE message that came before the run is known names a round after the end of the run. The
 * message is a protocol violation as soon as the run is known, and the node does not skip to that
 * round. */
static void test_early_edge_of_an_impossible_round(void **state)
{
    (void)state;
    struct lone *w = without_run();
    lone_edge(w, 0,
              (struct wire_edge){.nonce = ++w->actor[0].nonce, .run_round = UINT64_C(1) << 63});
    lone_hello(w, 0);
    lone_run(w, SECOND);
    assert_int_equal(lone_progress(w).violations, 1);
    assert_int_equal(lone_progress(w).round, 0);
    lone_close(w);
}

/* ---- EDGE on an open edge ---- */

/* An EDGE message on an open edge is answered once, and the edge continues in its epoch. */
static void test_edge_is_answered(void **state)
{
    (void)state;
    struct lone *w = training_with(1, LOW_ID);
    struct lone_actor *a = &w->actor[0];
    uint32_t n_edge = a->n_edge;
    uint64_t epoch = a->delta.epoch;
    a->follows = false;
    lone_edge(w, 0,
              (struct wire_edge){.epoch = epoch, .round = a->delta.round, .nonce = ++a->nonce});
    lone_flush(w);
    assert_int_equal(a->n_edge, n_edge + 1);
    assert_int_equal(a->edge.answers, a->nonce);
    assert_int_equal(a->edge.epoch, epoch);
    assert_int_equal(state_with(w, 0), EDGE_OPEN);
    assert_int_equal(lone_edge_to(w, 0)->resets, 0);
    lone_close(w);
}

/* The neighbour closes the edge. The node must ask the neighbour to open the edge again. */
static void test_closed_edge_is_asked_for(void **state)
{
    (void)state;
    uint8_t out[16];
    struct lone *w = training_with(1, LOW_ID);
    uint32_t n_edge = w->actor[0].n_edge;
    lone_says(w, 0, out, wire_put_edge_close(out, sizeof out));
    lone_run(w, SECOND);
    assert_int_equal(w->actor[0].n_edge, n_edge + 1);
    assert_int_equal(state_with(w, 0), EDGE_OPEN);
    lone_close(w);
}

/* ---- sessions come and go ---- */

/* After a session is lost, the node must dial again at once, and the edge must continue in its
 * epoch. */
static void test_edge_survives_a_session(void **state)
{
    (void)state;
    struct lone *w = training_with(1, HIGH_ID);
    struct lone_actor *a = &w->actor[0];
    for (int i = 0; i < 5; i++) {
        uint32_t n_edge = a->n_edge, n_dialled = a->n_dialled;
        struct wire_delta before = a->delta;
        lone_disconnect(w, a->link, false);
        lone_run(w, SECOND / 10);
        assert_int_equal(a->n_dialled, n_dialled + 1);
        /* The node sends an EDGE message only after a HELLO. */
        assert_int_equal(a->n_edge, n_edge);
        lone_hello(w, 0);
        lone_run(w, SECOND);
        assert_int_equal(a->n_edge, n_edge + 1);
        assert_int_equal(a->delta.epoch, before.epoch);
        assert_true(a->delta.round >= before.round + 10);
        assert_int_equal(lone_edge_to(w, 0)->resets, 0);
    }
    lone_close(w);
}

/* ---- silent peers ---- */

/* The node soon continues without a neighbour that is silent or has lost its session. It does not
 * accuse the neighbour within the first 3 s, and removes the edge in the end. */
static void test_silent_neighbour(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct lone *w = training_with(2, LOW_ID);
        struct lone_actor *a = &w->actor[1];
        a->follows = a->answers = false;
        if (lost)
            lone_disconnect(w, a->link, false);
        lone_run(w, 2500 * 1000);
        assert_int_equal(w->actor[0].n_accusations, 0);
        lone_run(w, 1500 * 1000);
        assert_true(w->actor[0].n_accusations > 0);
        uint64_t round = lone_progress(w).round;
        lone_run(w, SECOND);
        assert_true(lone_progress(w).round >= round + 20);
        lone_run(w, 7 * SECOND);
        assert_int_equal(lone_progress(w).n_live, 2);
        assert_null(lone_edge_to(w, 1));
        lone_close(w);
    }
}

/* Another member reports that it hears the neighbour. Only the node's own path to the neighbour is
 * then broken, so the node does not accuse it. */
static void test_vouched_for(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    struct lone_actor *a = &w->actor[1];
    w->actor[0].vouches = true;
    a->follows = a->answers = false;
    lone_disconnect(w, a->link, false);
    lone_run(w, 12 * SECOND);
    assert_int_equal(w->actor[0].n_accusations, 0);
    assert_int_equal(lone_progress(w).n_live, 3);
    lone_close(w);
}

/* A node that is asked about a member confirms that the member is alive, but only if the node
 * itself has heard the member recently. */
static void test_vouches(void **state)
{
    (void)state;
    uint8_t out[64];
    struct lone *w = training_with(2, LOW_ID);
    struct wire_probe m;
    memcpy(m.id, w->actor[1].id, WIRE_ID_BYTES);
    size_t n = wire_put_probe(out, sizeof out, &m);
    lone_says(w, 0, out, n);
    lone_flush(w);
    assert_int_equal(w->actor[0].n_heard, 1);
    w->actor[1].follows = false;
    lone_run(w, 4 * SECOND);
    lone_says(w, 0, out, n);
    lone_flush(w);
    assert_int_equal(w->actor[0].n_heard, 1);
    lone_close(w);
}

/* A neighbour is silent for 4 s, and then sends messages again. The edge must continue without a
 * new EDGE message. */
static void test_heard_again(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    struct lone_actor *a = &w->actor[1];
    struct wire_ping ping = {.round = 1};
    uint8_t out[64];
    uint32_t n_edge = a->n_edge;
    a->follows = false;
    lone_run(w, 4 * SECOND);
    assert_int_equal(lone_progress(w).n_edges, 1);
    lone_says(w, 1, out, wire_put_ping(out, sizeof out, &ping));
    assert_int_equal(state_with(w, 1), EDGE_OPEN);
    assert_int_equal(a->n_edge, n_edge);
    lone_close(w);
}

/* A node whose process was suspended for a minute accuses no other peer. */
static void test_own_stop(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    w->now_us += 60 * SECOND;
    lone_run(w, 3 * SECOND);
    assert_int_equal(w->actor[0].n_accusations + w->actor[1].n_accusations, 0);
    assert_int_equal(lone_progress(w).n_edges, 2);
    assert_int_equal(lone_progress(w).n_live, 3);
    lone_close(w);
}

/* A neighbour is silent, but other members report that it is alive, so its edge still belongs to
 * the graph. A consensus distance without that neighbour would not describe all members, so the
 * node reports no new distance. */
static void test_no_figure_without_a_neighbour(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    while (!(lone_progress(w).drift >= 0))
        lone_run(w, SECOND);
    w->actor[0].vouches = true;
    w->actor[1].follows = false;
    lone_run(w, 4 * SECOND);
    assert_int_equal(lone_progress(w).n_edges, 1);
    struct node_progress before = lone_progress(w);
    lone_run(w, 60 * SECOND);
    assert_true(lone_progress(w).round > before.round + 2000);
    assert_int_equal(lone_progress(w).n_live, 3);
    assert_int_equal(lone_progress(w).drift_round, before.drift_round);
    lone_close(w);
}

/* Without neighbours the node measures no distance. Only in a run that has never had another member
 * is the distance 0. */
static void test_no_figure_while_alone(void **state)
{
    (void)state;
    struct lone *w = training_with(1, LOW_ID);
    w->actor[0].answers = false;
    lone_disconnect(w, w->actor[0].link, false);
    lone_run(w, 15 * SECOND);
    struct node_progress p = lone_progress(w);
    assert_int_equal(p.n_live, 1);
    assert_true(p.phase == NODE_TRAINING && p.round > 100);
    assert_true(isnan(p.drift) && isnan(p.relative_drift) && isnan(p.own_distance));
    lone_close(w);
    static const char *const names[] = {"one:7100"};
    for (uint32_t n_names = 0; n_names < 2; n_names++) {
        struct verdict_facts f;
        w = lone_new(1, LOW_ID, ROUNDS);
        w->run.min_peers = 1;
        w->config.n_known = 0;
        w->config.bootstrap = names;
        w->config.n_bootstrap = n_names;
        w->deaf = true;
        lone_open(w);
        lone_run(w, 15 * SECOND);
        p = lone_progress(w);
        node_facts(w->node, &f);
        assert_true(p.phase == NODE_TRAINING && p.round > 100);
        assert_true(n_names > 0 ? isnan(p.drift) && isnan(p.relative_drift) && isnan(f.distance)
                                : p.drift == 0 && p.relative_drift == 0 && f.distance == 0);
        lone_close(w);
    }
}

/* Simulated peer 0 relays a new record of peer 1. The node cannot reach peer 1 and has accused it.
 * Returns the time until the node accuses peer 1 again, in microseconds. */
static int64_t believed_us(struct lone *w)
{
    struct record *r = &w->actor[1].record;
    const uint32_t *n = &w->actor[0].n_accusations;
    r->incarnation++;
    lone_tell(w, 0, *r);
    lone_run(w, SECOND / 10);
    uint32_t before = *n;
    int64_t from_us = w->now_us;
    while (*n == before && w->now_us < from_us + 100 * (int64_t)SECOND)
        lone_run(w, SECOND / 10);
    return w->now_us - from_us;
}

/* Only this node cannot reach a member, so the member refutes each accusation. The node then waits
 * longer before it accuses the member again: 5 s, 10 s, and so on, but at most a minute. */
static void test_refuted_word(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    w->actor[1].answers = false;
    lone_disconnect(w, w->actor[1].link, false);
    while (w->actor[0].n_accusations == 0) {
        assert_true(w->now_us < 60 * SECOND);
        lone_run(w, SECOND / 10);
    }
    for (int64_t s = 5; s < 100; s *= 2) {
        int64_t us = believed_us(w), least_us = (s < 60 ? s : 60) * SECOND;
        assert_true(us >= least_us - SECOND / 5 && us < least_us + 3 * SECOND);
    }
    lone_close(w);
}

/* ---- members that leave ---- */

/* A member that announces that it leaves is no longer a neighbour, although its session is open. */
static void test_edge_to_who_leaves(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    struct record r = w->actor[1].record;
    r.incarnation++;
    r.state = RECORD_LEFT;
    lone_tell(w, 1, r);
    lone_run(w, SECOND);
    assert_int_equal(w->actor[1].n_close, 1);
    assert_null(lone_edge_to(w, 1));
    assert_int_equal(lone_progress(w).n_edges, 1);
    assert_int_equal(w->n_keys, 2);
    lone_close(w);
}

/* ---- the first round ---- */

/* If two peers dial each other at the same time, one of the two sessions is soon closed, together
 * with its edge. The run therefore begins only when the last edge has been open for a while. */
static void test_first_round_waits_for_crossing_sessions(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    lone_open(w);
    while (state_with(w, 0) != EDGE_OPEN)
        lone_run(w, SECOND / 1000);
    lone_run(w, SECOND / 10);
    assert_int_equal(lone_progress(w).phase, NODE_JOINING);
    lone_run(w, SECOND / 2);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    lone_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early_edge_counts),
        cmocka_unit_test(test_early_edge_is_void),
        cmocka_unit_test(test_early_edge_of_an_impossible_round),
        cmocka_unit_test(test_edge_is_answered),
        cmocka_unit_test(test_closed_edge_is_asked_for),
        cmocka_unit_test(test_edge_survives_a_session),
        cmocka_unit_test(test_silent_neighbour),
        cmocka_unit_test(test_vouched_for),
        cmocka_unit_test(test_vouches),
        cmocka_unit_test(test_heard_again),
        cmocka_unit_test(test_own_stop),
        cmocka_unit_test(test_no_figure_without_a_neighbour),
        cmocka_unit_test(test_no_figure_while_alone),
        cmocka_unit_test(test_refuted_word),
        cmocka_unit_test(test_edge_to_who_leaves),
        cmocka_unit_test(test_first_round_waits_for_crossing_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
