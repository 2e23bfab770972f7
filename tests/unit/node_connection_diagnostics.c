/* tests/unit/node_connection_diagnostics.c -- tests of the messages about addresses at which no
 * session is established. */
#include "tests/unit/node_lone_world.h"

#include "peer/node/result/verdict.h"
#include "peer/node/session/sessions_state.h"
#include "peer/node/state.h"

enum { LOW_ID = 0x10, ROUNDS = 1000000 };

static const char *const names[] = {"one:7100", "two:7100", "three:7100"};

/* Makes a node without neighbours. The names in its bootstrap list resolve to different
 * addresses. */
static struct lone *alone(uint32_t n_names)
{
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.bootstrap = names;
    w->config.n_bootstrap = n_names;
    w->config.n_known = 0;
    w->deaf = true; /* Dials get no answer; only the test reports failures. */
    lone_open(w);
    return w;
}

static void resolve(struct lone *w, uint32_t seed)
{
    char text[32];
    const char *address = text;
    snprintf(text, sizeof text, "10.7.7.%u:7100", (unsigned)seed);
    struct node_event ev = {.type = NODE_RESOLVED, .resolved = {seed, &address, 1}};
    lone_step(w, &ev);
}

/* The node resolves the bootstrap name `seed` and dials its address. The dial fails for the reason
 * `why`. */
static void fails(struct lone *w, uint32_t seed, enum node_why why)
{
    resolve(w, seed);
    struct node_event ev = {.type = NODE_DIAL_FAILED,
                            .dial = {w->node->sessions->seeds[seed].at[0].tag, why,
                                     WIRE_VERSION + 1, WIRE_VERSION + 2}};
    assert_true(w->node->sessions->seeds[seed].at[0].busy);
    lone_step(w, &ev);
    lone_run(w, SECOND / 5);
}

/* Each reason for a failed dial must have its own message, which names the addresses. Addresses
 * that fail for the same reason must share one line. */
static void test_each_reason_is_told(void **state)
{
    (void)state;
    static const struct
    {
        enum node_why why;
        const char *said;
    } row[] = {{NODE_WHY_REFUSED, "connection refused"},
               {NODE_WHY_TIMEOUT, "timed out"},
               {NODE_WHY_UNREACHABLE, "no route to the host"},
               {NODE_WHY_CLOSED, "does not have the same cluster key, or is not a hearsay"},
               {NODE_WHY_MUTE, "sends nothing"},
               {NODE_WHY_SLOW, "did not finish in time"},
               {NODE_WHY_JUNK, "not encrypted with this cluster key"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct lone *w = alone(3);
        for (int k = 0; k < 2; k++) {
            fails(w, 0, row[i].why);
            fails(w, 1, row[i].why);
            fails(w, 2, NODE_WHY_UNKNOWN);
        }
        lone_run(w, 4 * SECOND);
        /* A peer that does not answer or is slow may be starting, so the node reports these two
         * reasons later. */
        if (row[i].why == NODE_WHY_MUTE || row[i].why == NODE_WHY_SLOW) {
            assert_int_equal(lone_said(w, row[i].said), 0);
            lone_run(w, 7 * SECOND);
        }
        assert_int_equal(lone_said(w, row[i].said), 1);
        assert_int_equal(lone_said(w, "one:7100, two:7100: "), 1);
        lone_close(w);
    }
}

/* The interval between two reports of the same problem doubles from 10 s, up to 10 minutes. */
static void test_told_ever_more_seldom(void **state)
{
    (void)state;
    struct lone *w = alone(1);
    for (int k = 0; k < 3600; k++) {
        fails(w, 0, NODE_WHY_CLOSED);
        lone_run(w, SECOND * 4 / 5);
    }
    assert_in_range(lone_said(w, "same cluster key"), 8, 13);
    lone_close(w);
}

/* A name has two addresses. No program listens at the first one, and the peer at the second one has
 * another cluster key. The node must report the key, although the reasons alternate. */
static void test_two_addresses(void **state)
{
    static const char *const addresses[] = {"10.7.7.1:7100", "10.7.7.2:7100"};
    (void)state;
    struct lone *w = alone(1);
    for (int k = 0; k < 4; k++) {
        struct node_event ev = {.type = NODE_RESOLVED, .resolved = {0, addresses, 2}};
        lone_step(w, &ev);
        for (int i = 0; i < 2; i++) {
            ev = (struct node_event){.type = NODE_DIAL_FAILED,
                                     .dial = {w->node->sessions->seeds[0].at[i].tag,
                                              i == 0 ? NODE_WHY_REFUSED : NODE_WHY_CLOSED,
                                              WIRE_VERSION, WIRE_VERSION}};
            lone_step(w, &ev);
        }
        lone_run(w, SECOND);
    }
    assert_int_equal(lone_said(w, "same cluster key"), 1);
    lone_close(w);
}

/* A dial that fails once may mean that the other peer is ending, so it is not reported as a wrong
 * cluster key. */
static void test_once_is_no_sign(void **state)
{
    (void)state;
    struct lone *w = alone(1);
    fails(w, 0, NODE_WHY_CLOSED);
    lone_run(w, SECOND);
    assert_int_equal(lone_said(w, "same cluster key"), 0);
    fails(w, 0, NODE_WHY_CLOSED);
    assert_int_equal(lone_said(w, "same cluster key"), 1);
    lone_close(w);
}

static void test_both_ranges_are_told(void **state)
{
    (void)state;
    char said[128];
    struct lone *w = alone(1);
    fails(w, 0, NODE_WHY_VERSION);
    snprintf(said, sizeof said,
             "one:7100: the peer supports protocol versions %d to %d, this program %d",
             WIRE_VERSION + 1, WIRE_VERSION + 2, WIRE_VERSION_LEAST);
    assert_int_equal(lone_said(w, said), 1);
    lone_close(w);
}

/* A peer that has sessions reports only problems of dials that a person must fix. It does not
 * report peers that are absent. */
static void test_in_company(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.bootstrap = names;
    w->config.n_bootstrap = 2;
    lone_open(w);
    lone_run(w, 5 * SECOND);
    assert_true(w->actor[0].link != NO_LINK);
    w->deaf = true;
    for (int k = 0; k < 4; k++) {
        fails(w, 0, NODE_WHY_REFUSED);
        fails(w, 1, NODE_WHY_CLOSED);
        lone_run(w, 3 * SECOND);
    }
    assert_int_equal(lone_said(w, "refused"), 0);
    assert_true(lone_said(w, "two:7100: the other end closes the connection") > 0);
    lone_close(w);
}

/* While a node waits for members, it reports how many are present and where it looks for others,
 * soon after the start and again later. */
static void test_members_are_waited_for_aloud(void **state)
{
    (void)state;
    struct lone *w = alone(3);
    /* In the first 3 s the peers of the bootstrap list may still answer. */
    lone_run(w, 5 * SECOND);
    assert_int_equal(lone_said(w, "waiting for members: 1 of 2 (--min-peers) are here; looking for "
                                  "more at one:7100, two:7100 and 1 more"),
                     1);
    lone_run(w, 60 * SECOND);
    assert_in_range(lone_said(w, "waiting for members: 1 of 2"), 2, 4);
    lone_close(w);
}

/* If a node with a bootstrap list never met another peer, its verdict says that it was alone. If it
 * had a session, or has no bootstrap list, the verdict does not say so. */
static void test_alone_to_the_end(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct verdict_facts f;
        struct verdict o;
        struct lone *w = alone((uint32_t)named);
        lone_run(w, 10 * SECOND);
        node_facts(w->node, &f);
        verdict_judge(&o, &f);
        assert_int_equal(f.lonely, named == 1);
        assert_int_equal(strstr(o.text, "alone during the whole run: no peer was reached at "
                                        "one:7100 (--bootstrap): check address, port and cluster "
                                        "key by hearsay probe")
                             != NULL,
                         named == 1);
        assert_int_equal(o.kind == VERDICT_ALONE, named == 1);
        lone_close(w);
    }
    struct verdict_facts f;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.bootstrap = names;
    w->config.n_bootstrap = 1;
    lone_open(w);
    lone_run(w, 5 * SECOND);
    node_facts(w->node, &f);
    assert_false(f.lonely);
    lone_close(w);
}

/* A node whose bootstrap list contains only its own address reports that once. A node whose list
 * contains another address, too, reports nothing. */
static void test_own_address_only(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        struct lone *w = alone(n);
        resolve(w, 0);
        w->node->sessions->seeds[0].at[0].self = true;
        lone_run(w, 2 * SECOND);
        assert_int_equal(lone_said(w, "names only this peer"), 0);
        lone_run(w, 60 * SECOND);
        assert_int_equal(lone_said(w, "names only this peer (one:7100)"), n == 1);
        lone_close(w);
    }
}

/* A node is at localhost, which also resolves to ::1, at which the node does not listen. A failed
 * dial of ::1 gives no warning, and the name is not listed as a place to look for other peers. If
 * the other address is of another machine, or no address is the node's own, a warning is given. */
static void test_own_name_with_two_addresses(void **state)
{
    (void)state;
    static const struct
    {
        const char *other; /* The first address of the name. The second one is 127.0.0.1. */
        bool self;         /* The second address is the node's own. */
        int n_warnings;
    } row[] = {{"[::1]:7100", true, 0}, {"[::1]:7100", false, 1}, {"10.7.7.9:7100", true, 1}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct lone *w = alone(2);
        const char *address[] = {row[i].other, "127.0.0.1:7100"};
        struct node_event found = {.type = NODE_RESOLVED, .resolved = {0, address, 2}};
        fails(w, 1, NODE_WHY_REFUSED);
        lone_step(w, &found);
        struct seed *d = &w->node->sessions->seeds[0];
        d->at[1].self = row[i].self;
        struct node_event failed = {.type = NODE_DIAL_FAILED,
                                    .dial = {d->at[0].tag, NODE_WHY_REFUSED, 0, 0}};
        lone_step(w, &failed);
        lone_run(w, 5 * SECOND);
        assert_int_equal(lone_said(w, "no session with one:7100, two:7100: nothing listens"),
                         row[i].n_warnings);
        assert_int_equal(lone_said(w, "no session with two:7100: nothing listens"),
                         1 - row[i].n_warnings);
        assert_int_equal(lone_said(w, "looking for more at two:7100"), 1 - row[i].n_warnings);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_reason_is_told),
        cmocka_unit_test(test_told_ever_more_seldom),
        cmocka_unit_test(test_two_addresses),
        cmocka_unit_test(test_once_is_no_sign),
        cmocka_unit_test(test_both_ranges_are_told),
        cmocka_unit_test(test_in_company),
        cmocka_unit_test(test_members_are_waited_for_aloud),
        cmocka_unit_test(test_alone_to_the_end),
        cmocka_unit_test(test_own_address_only),
        cmocka_unit_test(test_own_name_with_two_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
