/* tests/unit/node_delayed_exchange.c -- tests of peer/node/edge/delayed_exchange.h, which detects
 * exchanges whose deltas were made long before they are mixed. */
#include "peer/node/edge/delayed_exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000 * 1000, MADE = 10 /* Step at which this peer's delta was made. */ };

static const double matters2 = 1e-6;

/* Returns an edge with ten exchanges. This peer's last delta on it left little of the model's
 * change unsent. */
static struct edge mixed_ten(struct packet_pool *pool)
{
    struct edge e = {.n_exchanges = 10};
    packet_pool_init(pool, 1);
    e.cur.payload = packet_get(pool);
    e.cur.head.run_round = MADE;
    assert_non_null(e.cur.payload);
    return e;
}

static void done_with(struct edge *e, struct packet_pool *pool)
{
    packet_release(e->cur.payload);
    packet_pool_close(pool);
}

/* An edge that was closed for more than SCHEDULE_BRIEF_US mixes outdated replicas: it counts as
 * delayed. It stops counting as delayed after two exchanges, if the last of them leaves little of
 * the model unsent. */
static void test_away(void **state)
{
    (void)state;
    struct packet_pool pool;
    struct edge e = mixed_ten(&pool);
    struct delayed_exchange s = {.is = false};
    delayed_exchange_opened(&s, &e, 5 * SECOND, 6 * SECOND);
    assert_false(delayed_exchange_look(&s, &e, matters2));
    delayed_exchange_opened(&s, &e, 5 * SECOND, 7 * SECOND);
    assert_true(delayed_exchange_look(&s, &e, matters2));
    e.n_exchanges++;
    assert_true(delayed_exchange_look(&s, &e, matters2));
    e.n_exchanges++;
    e.cur.head.e2 = 1.0f;
    assert_true(delayed_exchange_look(&s, &e, matters2));
    e.cur.head.e2 = 0;
    assert_false(delayed_exchange_look(&s, &e, matters2));
    done_with(&e, &pool);
}

/* The replicas of an edge are up to date if this peer made its last delta for the edge at most two
 * rounds ago. The time for which the edge was closed does not matter, for example if both peers
 * were restored from checkpoints. */
static void test_rested(void **state)
{
    (void)state;
    struct packet_pool pool;
    struct edge e = mixed_ten(&pool);
    assert_true(delayed_exchange_rested(&e, MADE));
    assert_true(delayed_exchange_rested(&e, MADE + 2));
    assert_false(delayed_exchange_rested(&e, MADE + 3));
    e.prev = e.cur;
    e.cur.payload = NULL;
    assert_true(delayed_exchange_rested(&e, MADE + 1));
    assert_false(delayed_exchange_rested(&e, 100));
    e.cur = e.prev;
    e.prev.payload = NULL;
    struct edge none = {.n_exchanges = 10};
    assert_false(delayed_exchange_rested(&none, MADE));
    done_with(&e, &pool);
}

/* An edge that was away counts as delayed (mixes outdated replicas) until a delta leaves little of
 * the model unsent. With a coarse codec no delta does, so the edge counts as delayed for 64
 * exchanges. */
static void test_away_and_coarse(void **state)
{
    (void)state;
    struct packet_pool pool;
    struct edge e = mixed_ten(&pool);
    struct delayed_exchange s = {.is = false};
    e.cur.head.e2 = 1.0f;
    delayed_exchange_opened(&s, &e, 0, 2 * SECOND);
    e.n_exchanges += 63;
    assert_true(delayed_exchange_look(&s, &e, matters2));
    e.n_exchanges++;
    assert_false(delayed_exchange_look(&s, &e, matters2));
    done_with(&e, &pool);
}

/* When an edge opens, it has no outdated exchange if it was reset, or if this peer has not made a
 * delta for it yet. If this peer has made the first delta of the edge, and the edge opens much
 * later, the exchange of this delta is outdated. */
static void test_anew(void **state)
{
    (void)state;
    struct packet_pool pool;
    struct edge e = mixed_ten(&pool);
    struct delayed_exchange s = {.is = false};
    e.reset = true;
    delayed_exchange_opened(&s, &e, 0, 20 * SECOND);
    assert_false(delayed_exchange_look(&s, &e, matters2));
    e.reset = false;
    e.n_exchanges = 0;
    struct edge first = e;
    first.cur.payload = NULL;
    delayed_exchange_opened(&s, &first, 0, 20 * SECOND);
    assert_false(delayed_exchange_look(&s, &first, matters2));
    delayed_exchange_opened(&s, &e, 0, 20 * SECOND);
    assert_true(delayed_exchange_look(&s, &e, matters2));
    done_with(&e, &pool);
}

/* A neighbour's delta on an open edge is late if two conditions hold: it comes more than
 * SCHEDULE_BRIEF_US after the delta before it, and this peer has done more than two rounds since
 * its own delta. A late delta matters only if the replicas of the two ends are far apart. */
static void test_late(void **state)
{
    static const struct
    {
        int64_t after_us;
        uint64_t beat;
        double d2;
        bool stale;
    } row[] = {
        {2 * SECOND, MADE + 3, 1, true},
        /* Not counted as delayed: the delta came 1 s after the previous one. */
        {SECOND, MADE + 3, 1, false},
        /* Not counted as delayed: this peer's own delta is only 2 steps old. */
        {2 * SECOND, MADE + 2, 1, false},
        /* Not counted as delayed: the exchange is late, but the replicas are close. */
        {2 * SECOND, MADE + 3, 1e-7, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct packet_pool pool;
        struct edge e = mixed_ten(&pool);
        struct delayed_exchange s = {.came_us = 0};
        delayed_exchange_delta(&s, &e, row[i].beat, row[i].after_us);
        e.gamma.d2 = row[i].d2;
        /* The exchange with the new delta has not been mixed yet, so the edge does not count as
         * delayed. */
        assert_false(delayed_exchange_look(&s, &e, matters2));
        e.n_exchanges++;
        assert_int_equal(delayed_exchange_look(&s, &e, matters2), row[i].stale);
        e.n_exchanges += 2;
        assert_false(delayed_exchange_look(&s, &e, matters2));
        done_with(&e, &pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_rested),
        cmocka_unit_test(test_away_and_coarse),
        cmocka_unit_test(test_anew),
        cmocka_unit_test(test_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
