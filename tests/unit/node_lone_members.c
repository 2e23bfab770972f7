/* tests/unit/node_lone_members.c -- tests of what a node sends about itself and about other
 * members, to which peers and how often. Also tested: which run a node takes from other peers. */
#include "tests/unit/node_lone_world.h"

enum { LOW_ID = 0x10, HIGH_ID = 0xe0, ROUNDS = 1000000 };

static struct lone *training_with(uint32_t n_actors, uint8_t first_id)
{
    struct lone *w = lone_new(n_actors, first_id, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    return w;
}

/* ---- messages of the node ---- */

/* The node sends two heartbeats per second. Every 10 s it sends its whole member table to one
 * member, even if the table has not changed. */
static void test_heartbeats_and_entropy(void **state)
{
    (void)state;
    struct lone *w = training_with(1, LOW_ID);
    uint32_t n_ping = w->actor[0].n_ping, n_members = w->actor[0].n_members;
    lone_run(w, 60 * SECOND);
    n_ping = w->actor[0].n_ping - n_ping;
    n_members = w->actor[0].n_members - n_members;
    assert_true(n_ping >= 90 && n_ping <= 130);
    assert_true(n_members >= 4 && n_members <= 8);
    lone_close(w);
}

/* A new member or observer, as soon as it has sent its HELLO, gets all records of members that have
 * changed since the node's start. */
static void test_newcomer_is_told(void **state)
{
    (void)state;
    for (int observer = 0; observer < 2; observer++) {
        uint8_t out[64], said[4096];
        struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_OBSERVER};
        struct lone *w = training_with(2, LOW_ID);
        struct record newer = w->actor[0].record;
        struct wire_members m = {.n_records = 1, .records = &newer};
        newer.incarnation++;
        newer = signed_record(newer);
        lone_disconnect(w, w->actor[1].link, false);
        lone_says(w, 0, said, wire_put_members(said, sizeof said, &m));
        lone_flush(w);
        w->actor[1].told_others = false;
        (void)lone_connect(w, 1, false, 0);
        lone_flush(w);
        assert_false(w->actor[1].told_others);
        if (observer)
            lone_says(w, 1, out, wire_put_hello(out, sizeof out, &h));
        else
            lone_hello(w, 1);
        lone_flush(w);
        assert_true(w->actor[1].told_others);
        lone_close(w);
    }
}

/* Without --advertise, the node announces the local address of its sessions, with its listening
 * port. */
static void test_address_is_learnt(void **state)
{
    (void)state;
    static const char *const advertise[] = {"nat.example:9000"};
    for (uint32_t n = 0; n < 2; n++) {
        struct lone *w = lone_new(1, LOW_ID, ROUNDS);
        w->config.advertise = advertise;
        w->config.n_advertise = n;
        lone_open(w);
        lone_run(w, 5 * SECOND);
        assert_int_equal(w->actor[0].told.n_addresses, 1);
        assert_string_equal(w->actor[0].told.address[0], n ? advertise[0] : "10.0.1.1:7100");
        lone_close(w);
    }
}

/* ---- accusations ---- */

/* Simulated peer 0 sends the node an accusation, which says that peer 1 is silent. */
static void accuse(struct lone *w)
{
    uint8_t out[1024], msg[2048];
    struct accusation said = {.incarnation = 1};
    memcpy(said.accused, w->actor[1].id, WIRE_ID_BYTES);
    memcpy(said.accuser, w->actor[0].id, WIRE_ID_BYTES);
    toy_signature(said.accuser, msg, wire_accusation_signed(msg, sizeof msg, &said),
                  said.signature);
    struct wire_members m = {.n_accusations = 1, .accusations = &said};
    lone_says(w, 0, out, wire_put_members(out, sizeof out, &m));
}

/* A member has two sessions with the node, and one of them ends. The member still counts as
 * connected, even if another member accuses it. */
static void test_one_of_two_sessions(void **state)
{
    (void)state;
    for (int newer_stays = 0; newer_stays < 2; newer_stays++) {
        struct lone *w = training_with(2, LOW_ID);
        struct lone_actor *a = &w->actor[1];
        int first = a->link, second = lone_connect(w, 1, !newer_stays, 0);
        lone_hello(w, 1);
        assert_int_equal(w->link[first].hung_up, newer_stays);
        assert_int_equal(w->link[second].hung_up, !newer_stays);
        a->link = newer_stays ? second : first;
        accuse(w);
        lone_run(w, 20 * SECOND);
        assert_int_equal(lone_progress(w).n_live, 3);
        assert_int_equal(lone_progress(w).n_edges, 2);
        lone_close(w);
    }
}

/* If a message contains a forged record, the records after it are ignored. */
static void test_rest_of_a_forged_message(void **state)
{
    (void)state;
    uint8_t out[4096];
    struct lone *w = training_with(2, LOW_ID);
    struct record r[2] = {w->actor[0].record, w->actor[1].record};
    r[0].incarnation += 5; /* The record is changed but not signed again, so it is forged. */
    r[1].incarnation += 5;
    r[1].state = RECORD_LEFT;
    r[1] = signed_record(r[1]);
    struct wire_members m = {.n_records = 2, .records = r};
    lone_says(w, 0, out, wire_put_members(out, sizeof out, &m));
    assert_int_equal(lone_progress(w).violations, 1);
    assert_non_null(lone_edge_to(w, 1));
    lone_run(w, SECOND);
    assert_non_null(lone_edge_to(w, 1));
    lone_close(w);
}

/* Another process has the node's identity, and started earlier. The node ends when it hears of that
 * process, even while a job runs. The job must then return its packets to their pool, because
 * packet_pool_close() asserts that none is missing. */
static void test_a_clone_ends_us(void **state)
{
    (void)state;
    struct lone *w = training_with(1, LOW_ID);
    for (int i = 0; i < 50 && w->work_us == 0; i++)
        lone_run(w, LONE_STEP_US / 10);
    assert_true(w->work_us != 0);
    struct record clone = w->actor[0].told;
    /* `over` is the boot id of the node's process, which proves that the other process has received
     * the node's record. */
    clone.over = clone.boot;
    clone.boot = 99;
    clone.incarnation += 10;
    clone.age_ms = 3600 * 1000;
    lone_tell(w, 0, clone);
    lone_flush(w);
    lone_run(w, SECOND);
    assert_true(w->over);
    assert_int_equal(w->exit_code, 2);
    assert_int_equal(w->actor[0].told.state, RECORD_RUNNING);
    lone_close(w);
}

/* ---- choice of the run ---- */

/* Two peers with different runs meet before any run has begun. The peer that dialled takes the run
 * of the other peer, and announces it to all peers. */
static void test_run_of_who_was_dialled(void **state)
{
    (void)state;
    for (int node_dials = 0; node_dials < 2; node_dials++) {
        struct lone *w = lone_new(2, LOW_ID, ROUNDS);
        for (int i = 0; i < 2; i++)
            w->actor[i].answers = w->actor[i].follows = false;
        w->run.min_peers = 3;
        lone_open(w);
        (void)lone_connect(w, 1, false, 0);
        lone_hello(w, 1);
        lone_flush(w);
        uint32_t n_hello = w->actor[1].n_hello;
        struct run other = w->run;
        other.seed++;
        lone_hello_of(w, 0, lone_connect(w, 0, node_dials, 0), &other);
        lone_flush(w);
        assert_int_equal(node_run(w->node)->seed, other.seed - !node_dials);
        assert_int_equal(w->actor[1].n_hello, n_hello + (uint32_t)node_dials);
        lone_close(w);
    }
}

/* While two peers have announced different runs, no edge may open between them. Either the other
 * peer will take the node's run and has not announced that yet, or the node has taken the run of
 * the other peer. In the second case the other peer may not know that yet. */
static void test_no_edge_before_one_run(void **state)
{
    (void)state;
    for (int node_dials = 0; node_dials < 2; node_dials++) {
        struct lone *w = lone_new(2, LOW_ID, ROUNDS);
        for (int i = 0; i < 2; i++)
            w->actor[i].answers = w->actor[i].follows = false;
        w->run.min_peers = 3;
        lone_open(w);
        /* The two simulated peers' HELLO messages name different runs. `who` is the peer whose run
         * the node does not take. */
        uint32_t who = node_dials ? 1 : 0;
        struct run other = w->run;
        other.seed++;
        (void)lone_connect(w, 1, false, 0);
        lone_hello(w, 1);
        lone_hello_of(w, 0, lone_connect(w, 0, node_dials, 0), &other);
        lone_flush(w);
        w->actor[0].n_edge = w->actor[1].n_edge = 0;
        lone_run(w, SECOND);
        assert_int_equal(w->actor[who].n_edge, 0);
        lone_hello_of(w, who, w->actor[who].link, node_run(w->node));
        lone_run(w, SECOND);
        assert_int_equal(w->actor[who].n_edge, 1);
        lone_close(w);
    }
}

/* The node has taken the run that simulated peer 1 has begun. It does not give that run up for the
 * run of peer 0, whichever end dialled, even if the session with peer 1 is lost. If peer 1 has
 * left, no member has begun its run, so the node takes the run of peer 0. */
static void test_run_that_another_has_begun(void **state)
{
    (void)state;
    enum { TALKS, IS_LOST, HAS_LEFT, CASES };
    for (int k = 0; k < 2 * CASES; k++) {
        struct lone *w = lone_new(2, LOW_ID, ROUNDS);
        for (int i = 0; i < 2; i++) {
            w->actor[i].answers = w->actor[i].follows = false;
            w->actor[i].started = 5;
        }
        w->run.min_peers = 3;
        w->config.n_known = 0;
        lone_open(w);
        struct run first = w->run, second = w->run;
        first.seed += 1;
        second.seed += 2;
        lone_hello_of(w, 1, lone_connect(w, 1, false, 0), &first);
        lone_flush(w);
        if (k / 2 == HAS_LEFT) {
            struct record gone = w->actor[1].record;
            gone.state = RECORD_LEFT;
            gone.incarnation++;
            lone_tell(w, 1, gone);
        }
        if (k / 2 != TALKS)
            lone_disconnect(w, w->actor[1].link, true);
        lone_hello_of(w, 0, lone_connect(w, 0, k & 1, 0), &second);
        lone_flush(w);
        assert_int_equal(node_run(w->node)->seed, k / 2 == HAS_LEFT ? second.seed : first.seed);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heartbeats_and_entropy),
        cmocka_unit_test(test_newcomer_is_told),
        cmocka_unit_test(test_a_clone_ends_us),
        cmocka_unit_test(test_address_is_learnt),
        cmocka_unit_test(test_one_of_two_sessions),
        cmocka_unit_test(test_rest_of_a_forged_message),
        cmocka_unit_test(test_run_of_who_was_dialled),
        cmocka_unit_test(test_no_edge_before_one_run),
        cmocka_unit_test(test_run_that_another_has_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
