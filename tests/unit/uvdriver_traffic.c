/* tests/unit/uvdriver_traffic.c -- tests the byte counts per peer, also with more peers than the
 * table has rows. */
#include "peer/uv/traffic.h"

#include "nn/math/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void id_of(uint8_t id[WIRE_ID_BYTES], uint32_t peer)
{
    memset(id, 0, WIRE_ID_BYTES);
    memcpy(id + WIRE_ID_BYTES - sizeof peer, &peer, sizeof peer);
}

static void expect(const struct traffic *t, uint32_t peer, uint64_t sent, uint64_t received)
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t s, r;
    id_of(id, peer);
    traffic_of(t, id, &s, &r);
    assert_int_equal(s, sent);
    assert_int_equal(r, received);
}

static void add(struct traffic *t, uint32_t peer, uint64_t sent, uint64_t received)
{
    uint8_t id[WIRE_ID_BYTES];
    id_of(id, peer);
    traffic_add(t, id, sent, received);
}

/* As long as the table has a row for each peer, no count is lost, in whatever order peers are
 * counted. */
static void test_sums(void **state)
{
    (void)state;
    static struct traffic t;
    static uint64_t sent[TRAFFIC_PEERS], received[TRAFFIC_PEERS];
    uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : 7;
    struct rng r = rng_stream(seed);
    printf("SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < 20000; i++) {
        uint32_t peer = (uint32_t)rng_below(&r, TRAFFIC_PEERS);
        uint64_t s = rng_below(&r, 1000000), b = rng_below(&r, 1000000);
        add(&t, peer, s, b);
        sent[peer] += s;
        received[peer] += b;
    }
    for (uint32_t i = 0; i < TRAFFIC_PEERS; i++)
        expect(&t, i, sent[i], received[i]);
    expect(&t, TRAFFIC_PEERS, 0, 0);
}

/* Each observer with a new identity takes the row of the peer that was counted least recently, and
 * no other row. */
static void test_full(void **state)
{
    (void)state;
    static struct traffic t;
    for (uint32_t i = 0; i < TRAFFIC_PEERS; i++)
        add(&t, i, i + 1, 2 * i + 1);
    add(&t, 0, 10, 20); /* Peer 0 is counted again. Peer 1 is now the least recently counted one. */
    add(&t, 100000, 5, 6);
    expect(&t, 0, 11, 21);
    expect(&t, 1, 0, 0); /* Peer 1 was counted least recently, so its row was replaced. */
    expect(&t, 2, 3, 5);
    expect(&t, 100000, 5, 6);
    add(&t, 1, 7, 8); /* Peer 1 gets a new row of the traffic table, with counts from 0. */
    expect(&t, 1, 7, 8);
    expect(&t, 2, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
