/* tests/unit/sim_long_delta.c -- deltas that take a minute on their link.
 *
 * Messages that are sent meanwhile wait behind the delta, in a queue of limited length
 * (peer/uv/session.h). The other end must wait for the delta. */
#include "sim_rig.h"

#include "peer/run/exit.h"

enum { PEERS = 3, DIM = 60000, ROUNDS = 6, MOST_WORDS = 16 };

/* n_words: number of step announcements from one peer to another since the last delta between them.
 * most_words: the largest such number of the run. */
static uint32_t n_words[PEERS][PEERS], most_words;
static uint64_t n_deltas;

static void count(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct wire_batch batch;
    struct wire_message m;
    (void)self;
    if (ev->type != NODE_RECV || !wire_read(ev->recv.bytes, ev->recv.len, &batch, &m))
        return;
    if (m.type == WIRE_DELTA) {
        n_deltas++;
        n_words[other][peer] = 0;
    } else if (m.type == WIRE_BEAT && ++n_words[other][peer] > most_words) {
        most_words = n_words[other][peer];
    }
}

static void the_queue_stays_short(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, PEERS, DIM, "ring", "none", 0);
    r.eta = 0.05f;
    r.config.sessions = true;
    r.config.watch = count;
    r.config.step_us = 100 * 1000;
    r.config.latency_us = 1000;
    /* The two edges of a peer share the bandwidth of its link. */
    r.config.bytes_per_s = 2.0 * DIM * sizeof(float) / 60;
    r.config.run.rounds = ROUNDS;
    r.config.run.quorum = 0.5;
    rig_run(&r, UINT64_MAX);
    print_message("%.0f s, %llu deltas, at most %u words behind one\n",
                  (double)sim_now_us(r.world) * 1e-6, (unsigned long long)n_deltas, most_words);
    /* Checks that a delta took about a minute on its link. */
    assert_true((double)sim_now_us(r.world) * 1e-6 > 30.0 * ROUNDS);
    assert_true(n_deltas >= 2 * PEERS * (ROUNDS - 1));
    assert_true(most_words <= MOST_WORDS);
    for (uint32_t i = 0; i < PEERS; i++) {
        assert_int_equal(rig_progress(&r, i).rounds_skipped, 0);
        assert_int_equal(rig_progress(&r, i).resets, 0);
        assert_int_equal(rig_progress(&r, i).n_live, PEERS);
    }
    rig_close(&r);
}

/* In the consensus phase a delta also takes a minute or two, longer than SCHEDULE_STALL_US. The peers must
 * not take this time for a lack of progress. */
static void a_slow_exchange_is_progress(void **state)
{
    enum { LONG = 5 * DIM, MANY = 6 };
    struct rig r;
    int code = -1;
    (void)state;
    rig_init(&r, MANY, LONG, "ring", "none", 0);
    r.eta = 0.05f;
    r.config.sessions = true;
    r.config.step_us = 100 * 1000;
    r.config.latency_us = 1000;
    r.config.bytes_per_s = 2.0 * LONG * sizeof(float) / 120;
    r.config.run.rounds = 2;
    r.config.run.quorum = 0.5;
    r.config.run.final_drift = 1e-3;
    rig_run(&r, UINT64_MAX);
    print_message("%.0f s\n", (double)sim_now_us(r.world) * 1e-6);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_true(rig_progress(&r, i).settle_rounds > 0);
        assert_true(sim_ended(r.world, i, &code));
        assert_int_equal(code, CMD_OK);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_queue_stays_short),
                                       cmocka_unit_test(a_slow_exchange_is_progress)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
