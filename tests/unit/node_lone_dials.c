/* tests/unit/node_lone_dials.c -- tests of dialling: which members a node dials, when and at which
 * address, and which sessions it closes. */
#include "tests/unit/node_lone_world.h"

#include "peer/node/state.h"

enum { LOW_ID = 0x10, HIGH_ID = 0xe0, ROUNDS = 1000000 };

static struct lone *training_with(uint32_t n_actors, uint8_t first_id)
{
    struct lone *w = lone_new(n_actors, first_id, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    return w;
}

/* ---- neighbours ---- */

/* After a session is lost, the end with the smaller id dials again at once. The end with the larger
 * id waits two seconds before it dials. */
static void test_who_calls(void **state)
{
    (void)state;
    for (uint32_t low = 0; low < 2; low++) {
        struct lone *w = training_with(1, low ? HIGH_ID : LOW_ID);
        uint32_t n = w->actor[0].n_dialled;
        lone_disconnect(w, w->actor[0].link, false);
        lone_run(w, 1700 * 1000);
        assert_int_equal(w->actor[0].n_dialled, n + low);
        lone_run(w, SECOND);
        assert_int_equal(w->actor[0].n_dialled, n + 1);
        lone_close(w);
    }
}

/* A peer that has a session with the node is not dialled, even before its HELLO. */
static void test_no_call_beside_a_session(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, HIGH_ID, ROUNDS);
    w->actor[0].follows = w->actor[0].answers = false;
    lone_open(w);
    lone_run(w, SECOND);
    uint32_t n = w->actor[0].n_dialled;
    assert_true(n > 0);
    (void)lone_connect(w, 0, false, 0);
    lone_run(w, 5 * SECOND);
    assert_int_equal(w->actor[0].n_dialled, n);
    lone_close(w);
}

/* The node must dial the addresses of a member in turn. */
static void test_second_address(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, HIGH_ID, ROUNDS);
    struct record r = w->actor[0].record;
    snprintf(r.address[1], sizeof r.address[1], "10.0.0.99:7100");
    r.n_addresses = 2;
    w->actor[0].record = w->known[0] = signed_record(r);
    w->actor[0].nth = 1;
    lone_open(w);
    lone_run(w, 3 * SECOND);
    assert_true(w->actor[0].link != NO_LINK);
    lone_close(w);
}

/* After many failed dials to a neighbour, the interval between dials is long. When a later session
 * with an open edge is lost, the node nevertheless dials again at once. */
static void test_called_at_once_after_use(void **state)
{
    (void)state;
    struct lone *w = training_with(2, HIGH_ID);
    struct lone_actor *a = &w->actor[0];
    a->answers = false;
    lone_disconnect(w, a->link, false);
    lone_run(w, 9 * SECOND);
    a->answers = true;
    (void)lone_connect(w, 0, false, 0);
    lone_hello(w, 0);
    lone_flush(w);
    assert_int_equal(lone_edge_to(w, 0)->state, EDGE_OPEN);
    uint32_t n = a->n_dialled;
    lone_disconnect(w, a->link, false);
    lone_run(w, SECOND / 5);
    assert_int_equal(a->n_dialled, n + 1);
    lone_close(w);
}

/* Dead members are dialled again and again, at long intervals. */
static void test_the_dead_are_called(void **state)
{
    (void)state;
    struct lone *w = training_with(2, LOW_ID);
    struct lone_actor *a = &w->actor[1];
    a->answers = false;
    lone_disconnect(w, a->link, false);
    lone_run(w, 30 * SECOND);
    assert_int_equal(lone_progress(w).n_live, 2);
    for (int i = 0; i < 3; i++) {
        uint32_t n = a->n_dialled;
        lone_run(w, 180 * SECOND);
        assert_true(a->n_dialled >= n + 4 && a->n_dialled <= n + 8);
    }
    a->answers = true;
    for (int i = 0; i < 60 && a->link == NO_LINK; i++)
        lone_run(w, SECOND);
    lone_hello(w, 1);
    lone_run(w, SECOND);
    assert_int_equal(lone_progress(w).n_live, 3);
    lone_close(w);
}

/* ---- bootstrap ---- */

static const char *const name[] = {"one:7100"};

static void resolved(struct lone *w, const char *address)
{
    struct node_event ev = {.type = NODE_RESOLVED, .resolved = {0, &address, 1}};
    lone_step(w, &ev);
}

static struct lone *with_name(void)
{
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.bootstrap = name;
    w->config.n_bootstrap = 1;
    w->config.n_known = 0;
    return w;
}

/* Sends the node a HELLO with the node's own record on its first link, as if the node had dialled
 * itself. */
static void lone_own_hello(struct lone *w)
{
    uint8_t out[4096];
    struct wire_hello h = {
        .version = WIRE_VERSION, .role = WIRE_PEER, .record = *members_self(w->node->env.members)};
    lone_says_on(w, 0, out, wire_put_hello(out, sizeof out, &h));
}

/* The bootstrap list is the same for all peers, so it contains the node's own name. The node dials
 * that name only once. */
static void test_own_name(void **state)
{
    (void)state;
    struct lone *w = with_name();
    w->alone = true;
    lone_open(w);
    for (int i = 0; i < 5; i++) {
        resolved(w, "10.7.7.7:7100");
        if (i == 0)
            lone_own_hello(w);
        lone_run(w, 3 * SECOND);
        assert_int_equal(w->n_dials, 1);
        assert_true(w->link[0].hung_up && !w->link[0].violation);
    }
    lone_close(w);
}

/* A peer that has a session with the node is not dialled again at its bootstrap name. */
static void test_name_of_who_is_there(void **state)
{
    (void)state;
    struct lone *w = with_name();
    lone_open(w);
    for (int i = 0; i < 5; i++) {
        resolved(w, w->actor[0].record.address[0]);
        lone_run(w, 3 * SECOND);
        assert_int_equal(w->n_dials, 1);
    }
    lone_close(w);
}

/* While the node dials the addresses of a bootstrap name, another result of the lookup of this name
 * has no effect. */
static void test_answer_while_calling(void **state)
{
    (void)state;
    struct lone *w = with_name();
    w->deaf = true;
    lone_open(w);
    resolved(w, "10.7.7.7:7100");
    static const char *const more[] = {"10.7.7.8:7100", "10.7.7.9:7100"};
    struct node_event ev = {.type = NODE_RESOLVED, .resolved = {0, more, 2}};
    lone_step(w, &ev);
    lone_run(w, 10 * SECOND);
    assert_int_equal(w->n_dials, 1);
    lone_close(w);
}

/* A peer with a bootstrap list waits 3 s for an answer before it begins a run alone. */
static void test_waits_for_bootstrap(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct lone *w = with_name();
        w->config.n_bootstrap = (uint32_t)named;
        w->run.min_peers = 1;
        lone_open(w);
        lone_run(w, 2500 * 1000);
        assert_int_equal(lone_progress(w).round > 0, !named);
        lone_run(w, 2 * SECOND);
        assert_true(lone_progress(w).round > 0);
        lone_close(w);
    }
}

/* ---- sessions that the node closes ---- */

/* In a ring of six members the node has two neighbours. A session that the node dialled to another
 * member is not needed, and the node closes it after 15 s. If the other end dialled, the node
 * leaves the session open, because that end may need it. */
static void test_surplus_sessions(void **state)
{
    (void)state;
    for (int node_dials = 0; node_dials < 2; node_dials++) {
        struct lone *w = lone_new(5, HIGH_ID, ROUNDS);
        uint32_t far = LONE_ACTORS;
        snprintf(w->run.topology, sizeof w->run.topology, "ring");
        lone_open(w);
        lone_run(w, 15 * SECOND);
        for (uint32_t i = 0; i < 5; i++)
            far = w->actor[i].n_edge == 0 ? i : far;
        assert_true(far < LONE_ACTORS);
        int link = lone_connect(w, far, node_dials, 0);
        lone_hello(w, far);
        lone_run(w, 20 * SECOND);
        assert_int_equal(w->link[link].hung_up, node_dials);
        for (uint32_t i = 0; i < w->n_links; i++) /* The sessions with the neighbours stay open. */
            assert_true((int)i == link || !w->link[i].hung_up);
        assert_int_equal(lone_progress(w).n_edges, 2);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_calls),
        cmocka_unit_test(test_no_call_beside_a_session),
        cmocka_unit_test(test_second_address),
        cmocka_unit_test(test_called_at_once_after_use),
        cmocka_unit_test(test_the_dead_are_called),
        cmocka_unit_test(test_own_name),
        cmocka_unit_test(test_name_of_who_is_there),
        cmocka_unit_test(test_answer_while_calling),
        cmocka_unit_test(test_waits_for_bootstrap),
        cmocka_unit_test(test_surplus_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
