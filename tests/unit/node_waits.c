/* tests/unit/node_waits.c -- tests of node_wait(), which reports what a node waits for. */
#include "tests/unit/node_lone_world.h"

enum { LOW_ID = 0x10, ROUNDS = 1000000, MS = 1000 };

static struct node_wait wait_of(const struct lone *w)
{
    struct node_wait wait;
    node_wait(w->node, &wait);
    return wait;
}

static void test_members(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->run.min_peers = 3;
    lone_open(w);
    lone_run(w, 5 * SECOND);
    struct node_wait wait = wait_of(w);
    assert_int_equal(wait.what, NODE_WAITS_MEMBERS);
    assert_int_equal(wait.have, 2);
    assert_int_equal(wait.need, 3);
    assert_in_range((int64_t)wait.since_s, 4, 5);
    assert_true(wait.busy_s == 0);
    lone_close(w);
}

/* In lock step the node reports which neighbour it waits for, the round of that neighbour, and how
 * long the node has been waiting. While a job of its own runs, the node waits for nothing. */
static void test_neighbour(void **state)
{
    (void)state;
    struct lone *w = lone_new(2, LOW_ID, ROUNDS);
    struct node_neighbour b;
    struct wire_status status;
    lone_open(w);
    lone_run(w, 15 * SECOND);
    while (w->work_us == 0)
        lone_run(w, MS);
    assert_int_equal(wait_of(w).what, NODE_WAITS_NOTHING);
    w->actor[1].follows = false;
    lone_run(w, 2 * SECOND);
    struct node_wait wait = wait_of(w);
    uint64_t round = lone_progress(w).round;
    assert_int_equal(wait.what, NODE_WAITS_NEIGHBOUR);
    assert_memory_equal(wait.id, w->actor[1].id, WIRE_ID_BYTES);
    assert_true(wait.beat < round);
    assert_true(wait.since_s > 1.5 && wait.since_s <= 2);
    node_status(w->node, &status);
    assert_int_equal(status.n_edges, 2);
    for (size_t i = 0; i < 2; i++) {
        bool silent = memcmp(status.edges[i].id, w->actor[1].id, WIRE_ID_BYTES) == 0;
        node_neighbour(w->node, i, &b);
        assert_true(b.has_beat && (silent ? isnan(b.busy_s) : b.busy_s == 0));
        assert_int_equal(b.beat < round, silent);
        if (silent)
            assert_int_equal(b.beat, wait.beat);
    }
    lone_ping(w, 1, 1, 700);
    lone_run(w, 100 * MS);
    for (size_t i = 0; i < 2; i++) {
        bool silent = memcmp(status.edges[i].id, w->actor[1].id, WIRE_ID_BYTES) == 0;
        node_neighbour(w->node, i, &b);
        assert_true(silent ? b.busy_s >= 0.7 && b.busy_s < 0.9 : b.busy_s == 0);
    }
    lone_answer(w, 1); /* The delta shows that the neighbour's job is done. */
    for (size_t i = 0; i < 2; i++) {
        node_neighbour(w->node, i, &b);
        if (memcmp(status.edges[i].id, w->actor[1].id, WIRE_ID_BYTES) == 0)
            assert_true(isnan(b.busy_s));
    }
    /* The node must not wait for a neighbour that has no session. */
    lone_disconnect(w, w->actor[1].link, false);
    w->actor[1].answers = false;
    lone_run(w, 200 * MS);
    assert_int_not_equal(wait_of(w).what, NODE_WAITS_NEIGHBOUR);
    lone_close(w);
}

static void test_job(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    w->step_us = 3 * SECOND;
    lone_run(w, SECOND);
    while (!(wait_of(w).busy_s > 1))
        lone_run(w, LONE_STEP_US);
    assert_int_equal(wait_of(w).what, NODE_WAITS_NOTHING);
    assert_true(wait_of(w).busy_s < 3);
    lone_close(w);
}

static void test_quorum(void **state)
{
    (void)state;
    struct lone *w = lone_new(3, LOW_ID, ROUNDS);
    w->run.quorum = 1;
    w->config.patience_us = 600 * (int64_t)SECOND;
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    for (int i = 0; i < 2; i++) {
        lone_disconnect(w, w->actor[i].link, false);
        w->actor[i].answers = false;
    }
    lone_run(w, 20 * SECOND);
    assert_true(lone_progress(w).holds);
    struct node_wait wait = wait_of(w);
    assert_int_equal(wait.what, NODE_WAITS_QUORUM);
    assert_int_equal(wait.need, 4);
    assert_int_equal(wait.have, 2);
    assert_true(wait.since_s > 5 && wait.since_s <= 20);
    lone_close(w);
}

/* When the node's own model is final, the node reports that it waits for the other peers. It does
 * not report that while it still evaluates its model. */
static void test_others(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, 20);
    w->actor[0].goes_on = true;
    lone_open(w);
    while (lone_progress(w).phase != NODE_FINISHING)
        lone_run(w, MS);
    assert_true(w->work_us != 0);
    assert_int_equal(wait_of(w).what, NODE_WAITS_NOTHING);
    while (w->work_us != 0)
        lone_run(w, MS);
    lone_run(w, SECOND);
    assert_int_equal(wait_of(w).what, NODE_WAITS_OTHERS);
    assert_true(wait_of(w).since_s > 0.9 && wait_of(w).since_s < 1.1);
    lone_close(w);
}

/* Both other members leave when the node has its final model. They may return and vote, so the node
 * waits for them: for --quorum-timeout and 30 s. */
static void test_voters_leave_at_the_end(void **state)
{
    (void)state;
    struct lone *w = lone_new(2, LOW_ID, 200);
    w->run.min_peers = 3;
    w->run.final_drift = 1e-3;
    w->config.patience_us = 40 * (int64_t)SECOND;
    lone_open(w);
    while (lone_progress(w).phase != NODE_FINISHING) {
        assert_true(w->now_us < 600 * (int64_t)SECOND);
        lone_run(w, MS);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct lone_actor *a = &w->actor[i];
        a->record.state = RECORD_LEFT;
        a->record.incarnation++;
        lone_tell(w, i, a->record);
        a->answers = false;
        lone_disconnect(w, a->link, true);
    }
    lone_run(w, 35 * SECOND);
    assert_false(w->over);
    assert_int_equal(wait_of(w).what, NODE_WAITS_OTHERS);
    assert_true(lone_said(w, "the initial members that are present are no quorum") > 0);
    lone_run(w, 40 * SECOND);
    assert_true(w->over);
    assert_int_equal(w->exit_code, 3);
    lone_close(w);
}

/* If the only other member dies or leaves during training, and its identity is the smaller one, the
 * node is the half of the members that is no quorum. It waits for the other half, and names it and
 * the limit. With jobs of 3 s, other members may need more than 30 s for their last rounds, so the
 * limit is longer. */
static void test_dead_half(void **state)
{
    (void)state;
    static const struct
    {
        int64_t step_us;
        bool leaves;
    } row[] = {{0, false}, {0, true}, {3 * SECOND, false}};
    for (size_t i = 0; i < 3; i++) {
        bool slow = row[i].step_us > 0;
        struct lone *w = lone_new(1, LOW_ID, slow ? 30 : 3000);
        w->run.final_drift = 1e-3;
        w->config.patience_us = 100 * (int64_t)SECOND;
        w->step_us = slow ? row[i].step_us : w->step_us;
        lone_open(w);
        lone_run(w, 5 * SECOND);
        assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
        if (row[i].leaves) {
            w->actor[0].record.state = RECORD_LEFT;
            w->actor[0].record.incarnation++;
            lone_tell(w, 0, w->actor[0].record);
        }
        lone_disconnect(w, w->actor[0].link, false);
        w->actor[0].answers = false;
        while (lone_progress(w).phase != NODE_FINISHING || w->work_us != 0)
            lone_run(w, LONE_STEP_US);
        int64_t final_us = w->now_us;
        lone_run(w, 20 * SECOND);
        struct node_wait wait = wait_of(w);
        assert_int_equal(wait.what, NODE_WAITS_OTHERS);
        assert_memory_equal(wait.id, w->actor[0].id, WIRE_ID_BYTES);
        assert_float_equal(wait.limit_s, slow ? 148 : 130, 0.1);
        assert_true(wait.since_s < 25);
        assert_int_equal(lone_said(w, "the initial members that are present are no quorum"), 1);
        assert_int_equal(lone_said(w, "waiting for peer-1, which left: ") > 0, row[i].leaves);
        assert_int_equal(
            lone_said(w, slow ? "(--quorum-timeout + 48 s)" : "(--quorum-timeout + 30 s)"), 1);
        while (!w->over)
            lone_run(w, SECOND / 10);
        assert_in_range(w->now_us - final_us, (int64_t)(wait.limit_s - 1) * SECOND,
                        (int64_t)(wait.limit_s + 1) * SECOND);
        lone_close(w);
    }
}

/* node_vertices() returns the vertices of the graph in order, and node_topology() its
 * specification. */
static void test_graph(void **state)
{
    (void)state;
    struct lone *w = lone_new(2, LOW_ID, ROUNDS);
    uint32_t at[WIRE_MEMBERS_MAX];
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(node_vertices(w->node, at), 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(at[i], i);
    assert_string_equal(node_topology(w->node), w->run.topology);
    lone_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_members),
                                       cmocka_unit_test(test_neighbour),
                                       cmocka_unit_test(test_job),
                                       cmocka_unit_test(test_quorum),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_dead_half),
                                       cmocka_unit_test(test_voters_leave_at_the_end),
                                       cmocka_unit_test(test_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
