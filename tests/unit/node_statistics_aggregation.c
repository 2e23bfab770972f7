/* tests/unit/node_statistics_aggregation.c -- tests of peer/node/join/statistics_aggregation.h:
 * before a run exists, members send and relay statistics of their data, and one member creates the
 * run from them. Invalid statistics are refused. */
#include "tests/unit/node_lone_world.h"

/* FEWER and MORE: statistics with other label names than those of the node. */
enum { LOW_ID = 0x10, ACTORS = 3, BAD = 0xee, UNLIKE = 'x', FEWER = 'f', MORE = 'm' };

/* Replaces the trainer. The statistics of a member are one byte, and the seed of the run depends on
 * all statistics that were used. */
struct toy
{
    struct node_pool pool;
    const struct run *run;
    uint8_t own[1];
    uint32_t n_pools;
    /* The members from whose statistics the run was made, each with its statistics, such as
     * "peer-0=a peer-1=b ". */
    char parts[100];
    bool fails;
};

static const char *toy_check(void *self, struct bytes theirs)
{
    (void)self;
    return theirs.p[0] == BAD ? "moments of a toy that are bad" : NULL;
}

static bool toy_differ(void *self, struct bytes theirs, bool theirs_lead, char why[NODE_POOL_WHY])
{
    (void)self;
    (void)theirs_lead;
    snprintf(why, NODE_POOL_WHY, "column 3: found numbers, expected words");
    return theirs.p[0] == UNLIKE || theirs.p[0] == FEWER || theirs.p[0] == MORE;
}

static uint64_t toy_labels(void *self, struct bytes statistics)
{
    (void)self;
    return statistics.p[0] == FEWER ? 2 : statistics.p[0] == MORE ? 4 : 3;
}

static int toy_pool(void *self, const struct node_part *part, size_t n, struct run *run,
                    char error[RUN_ERROR_MAX])
{
    struct toy *t = self;
    size_t at = 0;
    t->n_pools++;
    *run = *t->run;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(t->parts + at, sizeof t->parts - at, "%s=%c ", part[i].name,
                               (char)part[i].moments.p[0]);
    run->seed = rng_hash(t->parts, at);
    snprintf(error, RUN_ERROR_MAX, "no room for the columns of %zu members", n);
    return t->fails ? -EINVAL : 0;
}

static struct toy toy;

/* Returns a node that may create the run as soon as `min_peers` members have sent statistics, and
 * simulated peers without a run. `name` decides whether the node comes before or after the peers,
 * peer-1 to peer-3, in the member table. The first member that may create the run does so. */
static struct lone *begin(const char *name, uint32_t min_peers)
{
    struct lone *w = lone_new(ACTORS, LOW_ID, 10);
    w->run.min_peers = min_peers;
    toy = (struct toy){.pool = {.self = &toy,
                                .own = {toy.own, 1},
                                .founds = true,
                                .check = toy_check,
                                .differ = toy_differ,
                                .labels = toy_labels,
                                .pool = toy_pool},
                       .run = &w->run,
                       .own = {'o'}};
    w->config.name = name;
    w->config.pool = &toy.pool;
    for (uint32_t i = 0; i < ACTORS; i++)
        w->actor[i].follows = w->actor[i].answers = false;
    lone_open(w);
    for (uint32_t i = 0; i < ACTORS; i++)
        lone_hello_of(w, i, lone_connect(w, i, false, 0), NULL);
    lone_flush(w);
    return w;
}

/* The simulated peer `teller` sends the statistics of the peer `who` to the node. founds: `who` may
 * create the run. */
static void tell(struct lone *w, uint32_t teller, uint32_t who, uint8_t byte, bool founds)
{
    static uint8_t msg[WIRE_MOMENTS_MAX + 128];
    uint8_t out[2048];
    struct wire_moments m = {
        .record = w->actor[who].record, .founds = founds, .payload = {&byte, 1}};
    toy_signature(m.record.id, msg, wire_moments_signed(msg, sizeof msg, &m), m.signature);
    lone_says(w, teller, out, wire_put_moments(out, sizeof out, &m));
}

static bool has_run(const struct lone *w)
{
    return node_run(w->node) != NULL;
}

/* Advances the time by `us`. All simulated peers send a heartbeat each second. */
static void run_for(struct lone *w, int64_t us)
{
    for (int64_t t = 0; t < us && !w->over; t += SECOND) {
        for (uint32_t i = 0; i < ACTORS; i++)
            lone_ping(w, i, 0, 0);
        lone_run(w, SECOND);
    }
}

static void test_pools(void **state)
{
    (void)state;
    static const uint8_t orders[][2] = {{0, 1}, {1, 0}};
    uint64_t seed = 0;
    for (size_t i = 0; i < 2; i++) {
        struct lone *w = begin("peer-0", 3);
        run_for(w, 2 * SECOND);
        assert_false(has_run(w));
        tell(w, orders[i][0], orders[i][0], (uint8_t)('a' + orders[i][0]), true);
        run_for(w, 2 * SECOND);
        assert_false(has_run(w));
        tell(w, orders[i][1], orders[i][1], (uint8_t)('a' + orders[i][1]), false);
        uint32_t n_hello = w->actor[2].n_hello;
        run_for(w, SECOND);
        assert_true(has_run(w) && toy.n_pools == 1);
        assert_string_equal(toy.parts, "peer-0=o peer-1=a peer-2=b ");
        assert_true(
            w->actor[2].n_hello
            > n_hello); /* Peer 2 receives the run description, although it sent no statistics. */
        assert_true(i == 0 || node_run(w->node)->seed == seed);
        seed = node_run(w->node)->seed;
        run_for(w, 2 * SECOND);
        assert_int_equal(toy.n_pools, 1);
        lone_close(w);
    }
}

/* With --min-peers 1 the node creates the run from its own statistics alone, without waiting. */
static void test_alone(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 1);
    assert_true(has_run(w) && toy.n_pools == 1);
    assert_string_equal(toy.parts, "peer-0=o ");
    lone_close(w);
}

/* A node relays statistics once to each member that does not know them. It does not relay them to
 * the member that sent them, or to the member whose data they describe. */
static void test_passed_on(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 9);
    run_for(w, SECOND);
    for (uint32_t i = 0; i < ACTORS; i++)
        assert_true(w->actor[i].n_moments == 1
                    && memcmp(w->actor[i].moments_of.id, w->id, WIRE_ID_BYTES) == 0);
    tell(w, 0, 1, 'b', false);
    tell(w, 2, 1, 'b', false);
    run_for(w, 3 * SECOND);
    /* Simulated peer 0 sent the statistics of peer 1 to the node, so the node does not relay them
     * back. */
    assert_int_equal(w->actor[0].n_moments, 1);
    /* The node does not relay the statistics of simulated peer 1 to peer 1 itself. */
    assert_int_equal(w->actor[1].n_moments, 1);
    /* Simulated peer 2 gets the statistics of peer 1 from the node, because the node had them from
     * peer 0 before peer 2 sent the same statistics. */
    assert_int_equal(w->actor[2].n_moments, 2);
    assert_true(memcmp(w->actor[2].moments_of.id, w->actor[1].id, WIRE_ID_BYTES) == 0);
    /* Over a new session the node sends all statistics again. */
    lone_disconnect(w, w->actor[0].link, true);
    w->actor[0].n_moments = 0;
    lone_hello_of(w, 0, lone_connect(w, 0, false, 0), NULL);
    run_for(w, SECOND);
    assert_int_equal(w->actor[0].n_moments, 2);
    lone_close(w);
}

static void test_hostile(void **state)
{
    (void)state;
    uint8_t out[2048], byte = 'a';
    struct lone *w = begin("peer-0", 2);
    struct wire_moments m = {.record = w->actor[1].record, .payload = {&byte, 1}};
    int link = w->actor[0].link;
    /* The message about statistics has no signature. */
    lone_says(w, 0, out, wire_put_moments(out, sizeof out, &m));
    assert_true(w->link[link].violation);
    assert_int_equal(lone_said(w, "broke the protocol: forged column statistics"), 1);
    link = w->actor[1].link;
    tell(w, 1, 1, BAD, true);
    assert_true(w->link[link].violation);
    assert_int_equal(lone_said(w, "broke the protocol: moments of a toy that are bad"), 1);
    run_for(w, 2 * SECOND);
    assert_false(has_run(w));
    /* Neither of the two invalid messages was relayed: the only message that simulated peer 2
     * received has the node's own statistics. */
    assert_int_equal(w->actor[2].n_moments, 1);
    lone_close(w);
}

/* Statistics from a former process of a restarted member do not count. Of the statistics from its
 * present process only the first count. */
static void test_first_word(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 2);
    struct record now = w->actor[0].record;
    struct record old = now;
    old.boot = 77;
    old.incarnation = 0;
    w->actor[0].record = signed_record(old);
    tell(w, 1, 0, 'z', false);
    run_for(w, SECOND);
    assert_false(has_run(w));
    w->actor[0].record = now;
    tell(w, 0, 0, 'a', false);
    tell(w, 1, 0, 'b', false);
    run_for(w, SECOND);
    assert_true(has_run(w));
    assert_string_equal(toy.parts, "peer-0=o peer-1=a ");
    lone_close(w);
}

/* A restarted member may have other data files, so its former statistics no longer count. */
static void test_begins_again(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 2);
    tell(w, 2, 0, 'a', false);
    struct record again = w->actor[0].record;
    again.boot = 77;
    again.incarnation++;
    lone_tell(w, 2, again);
    run_for(w, SECOND);
    assert_false(has_run(w));
    w->actor[0].record = signed_record(again);
    tell(w, 2, 0, 'c', false);
    run_for(w, SECOND);
    assert_string_equal(toy.parts, "peer-0=o peer-1=c ");
    lone_close(w);
}

/* Simulated peer 0 comes before the node in the order of members and may create the run, so the
 * node waits for peer 0 to do so. */
static void test_not_the_first(void **state)
{
    (void)state;
    struct lone *w = begin("peer-9", 2);
    run_for(w, SECOND);
    tell(w, 0, 0, 'a', true);
    run_for(w, 12 * SECOND);
    assert_true(!has_run(w) && toy.n_pools == 0);
    assert_true(lone_said(w, "waiting for peer-1, which collects the column statistics of all "
                             "members: 2 have arrived, missing: peer-2, peer-3")
                >= 1);
    w->run.seed = 4321;
    lone_hello(w, 0);
    assert_true(has_run(w) && node_run(w->node)->seed == 4321);
    lone_close(w);
}

/* The member that should create the run leaves. The next member in the member table that may create
 * the run must then do so. */
static void test_next_one(void **state)
{
    (void)state;
    struct lone *w = begin("peer-9", 2);
    tell(w, 0, 0, 'a', true);
    tell(w, 1, 1, 'b', false);
    run_for(w, SECOND);
    assert_false(has_run(w));
    struct record left = w->actor[0].record;
    left.state = RECORD_LEFT;
    left.incarnation++;
    lone_tell(w, 0, left);
    run_for(w, SECOND);
    assert_true(has_run(w));
    assert_string_equal(toy.parts, "peer-2=b peer-9=o ");
    lone_close(w);
}

static void test_waits_are_said(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 3);
    assert_int_equal(lone_said(w, "the run starts once the column statistics of 3 members"), 1);
    tell(w, 1, 1, 'b', false);
    run_for(w, 3 * SECOND);
    assert_int_equal(lone_said(w, "waiting for the column statistics of peer-1, peer-3: 2 of 3 "
                                  "(--min-peers) have arrived"),
                     1);
    assert_int_equal(lone_said(w, "no run"), 0);
    lone_close(w);
    w = begin("peer-0", 9);
    for (uint32_t i = 0; i < ACTORS; i++)
        tell(w, i, i, 'a', false);
    run_for(w, 3 * SECOND);
    assert_int_equal(
        lone_said(
            w, "waiting for members: the column statistics of 4 of 9 (--min-peers) have arrived"),
        1);
    lone_close(w);
}

/* The data of simulated peer 1 do not match the data of the node. The node ignores the statistics
 * of peer 1 and does not count that peer towards --min-peers. */
static void test_left_out(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 2);
    tell(w, 1, 1, UNLIKE, true);
    run_for(w, 2 * SECOND);
    assert_false(has_run(w) || w->over);
    assert_int_equal(lone_said(w, "the data of peer-2 do not match this peer's data: column 3: "
                                  "found numbers, expected words"),
                     1);
    tell(w, 2, 2, 'c', false);
    run_for(w, SECOND);
    assert_string_equal(toy.parts, "peer-0=o peer-3=c ");
    lone_close(w);
}

/* If the data of the node do not match the data of the member that creates the run, the node
 * ends. */
static void test_unlike(void **state)
{
    (void)state;
    struct lone *w = begin("peer-9", 2);
    /* Data of a member that does not create the run need not match the data of the node, so the
     * node continues. */
    tell(w, 1, 1, UNLIKE, false);
    run_for(w, SECOND);
    assert_false(w->over);
    tell(w, 0, 0, UNLIKE, true);
    run_for(w, SECOND);
    assert_true(w->over && w->exit_code == 2 && !has_run(w));
    assert_int_equal(
        lone_said(
            w,
            "column 3: found numbers, expected words (according to peer-1, which creates the run)"),
        1);
    lone_close(w);
}

/* The first member has other label names than the other three members. The node must not end, and
 * creates the run without the first member. */
static void test_other_labels(void **state)
{
    static const uint8_t unlike[] = {FEWER, MORE};
    (void)state;
    for (size_t i = 0; i < sizeof unlike; i++) {
        struct lone *w = begin("peer-9", 3);
        tell(w, 0, 0, unlike[i], true);
        run_for(w, 2 * SECOND);
        assert_false(w->over || has_run(w)); /* Two of three members do not show which is wrong. */
        tell(w, 2, 2, 'c', false);
        run_for(w, 2 * SECOND);
        assert_false(w->over || has_run(w));
        tell(w, 1, 1, 'b', false);
        run_for(w, SECOND);
        assert_true(has_run(w));
        assert_string_equal(toy.parts, "peer-2=b peer-3=c peer-9=o ");
        lone_close(w);
    }
}

/* The node is the first member, but its data lack a label name that the others have. The node ends,
 * and not the others. Of two members, the one with fewer names ends. */
static void test_own_labels_are_wrong(void **state)
{
    (void)state;
    for (uint32_t n_others = 1; n_others <= 2; n_others++) {
        struct lone *w = begin("peer-0", n_others + 1);
        tell(w, 0, 0, MORE, true);
        if (n_others == 2)
            tell(w, 1, 1, MORE, true);
        run_for(w, 2 * SECOND);
        assert_true(w->over && w->exit_code == 2 && !has_run(w));
        assert_int_equal(lone_said(w, "(according to peer-1, which creates the run)"), 1);
        lone_close(w);
    }
}

static void test_no_run_comes_of_it(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 2);
    toy.fails = true;
    tell(w, 1, 1, 'b', false);
    run_for(w, SECOND);
    assert_true(w->over && w->exit_code == 2 && !has_run(w));
    assert_int_equal(lone_said(w, "no room for the columns of 2 members"), 1);
    lone_close(w);
}

/* A node with a run neither sends nor reads statistics. */
static void test_with_a_run(void **state)
{
    (void)state;
    struct lone *w = begin("peer-0", 1);
    run_for(w, SECOND);
    for (uint32_t i = 0; i < ACTORS; i++)
        assert_int_equal(w->actor[i].n_moments, 0);
    int link = w->actor[1].link;
    tell(w, 1, 1, BAD, true);
    assert_false(w->link[link].violation);
    assert_int_equal(toy.n_pools, 1);
    lone_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools),          cmocka_unit_test(test_alone),
        cmocka_unit_test(test_passed_on),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_begins_again),   cmocka_unit_test(test_first_word),
        cmocka_unit_test(test_not_the_first),  cmocka_unit_test(test_next_one),
        cmocka_unit_test(test_waits_are_said), cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_unlike),         cmocka_unit_test(test_no_run_comes_of_it),
        cmocka_unit_test(test_other_labels),   cmocka_unit_test(test_own_labels_are_wrong),
        cmocka_unit_test(test_with_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
