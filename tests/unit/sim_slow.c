/* tests/unit/sim_slow.c -- links so slow that the transfer of one message takes longer than the
 * limit for the silence of a peer, or than the limit for a job of its worker.
 *
 * A peer that is sending or receiving a message is neither dead nor stuck. */
#include "tests/unit/sim_rig.h"

enum { PEERS = 4, DIM = 5000, BYTES = 4 * DIM, ROUNDS = 12 };

static void with_limit(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->worker_limit_us = 10 * INT64_C(1000000);
}

/* Runs a cluster in which a delta takes `delta_s` seconds on its link. */
static void slow(double delta_s)
{
    struct rig r;
    rig_init(&r, PEERS, DIM, "ring", "none", 0);
    r.config.bytes_per_s = BYTES / delta_s;
    r.config.run.rounds = ROUNDS;
    r.config.configure = with_limit;
    rig_open(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct node_progress p = rig_progress(&r, i);
        assert_int_equal(p.rounds_skipped, 0);
        /* In every round, a peer must exchange once with each of its two neighbours. The last
         * exchange does not take place if the peer takes the certified model of the others
         * instead. */
        assert_true(p.exchanges >= 2 * (ROUNDS - 1));
    }
    rig_close(&r);
}

static void test_longer_than_a_silence(void **state)
{
    (void)state;
    slow(2);
    slow(5);
}

static void test_longer_than_a_job(void **state)
{
    (void)state;
    slow(45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longer_than_a_silence),
        cmocka_unit_test(test_longer_than_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
