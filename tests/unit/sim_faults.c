/* tests/unit/sim_faults.c -- peers die, return, stop and lose sessions while the others
 * continue. */
#include "sim_rig.h"

enum { SECOND = 1000 * 1000 };

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

static uint64_t events_of(struct rig *r, int64_t us)
{
    uint64_t before = sim_events(r->world);
    run_until(r, sim_now_us(r->world) + us);
    return sim_events(r->world) - before;
}

static void rig_training(struct rig *r, uint32_t n, const char *topology, const char *compress,
                         enum run_policy policy)
{
    rig_init(r, n, 500, topology, compress, 0);
    r->eta = 0.05f;
    r->noise = 1.0f;
    r->config.step_us = 50 * 1000;
    r->config.run.rounds = 1000; /* Training takes 50 s. */
    r->config.run.policy = policy;
    r->config.run.final_drift = 1e-3;
}

static void death(const char *compress, enum run_policy policy)
{
    struct rig r;
    rig_training(&r, 8, "ring", compress, policy);
    rig_open(&r);
    run_until(&r, 10 * SECOND);
    uint64_t before = rig_progress(&r, 0).round;
    sim_kill(r.world, 3);
    run_until(&r, 11 * SECOND);
    /* The neighbours of the dead peer notice at once that their sessions have ended, and do not
     * wait for it. */
    if (policy == RUN_SYNC)
        assert_true(rig_progress(&r, 0).round >= before + 15);
    run_until(&r, 30 * SECOND);
    assert_int_equal(rig_progress(&r, 0).n_live, 7);
    /* The remaining peers form a ring without the dead peer. */
    for (uint32_t i = 0; i < 8; i++)
        if (i != 3)
            assert_int_equal(rig_progress(&r, i).n_edges, 2);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

static void test_death(void **state)
{
    (void)state;
    death("topk:0.1", RUN_SYNC);
    death("qsgd:4", RUN_ASYNC);
}

/* A peer dies and is restarted with the same command. The restarted peer must get the current model
 * instead of beginning at round 0. At the end the consensus distance of all peers must be within
 * the target. */
static void rejoin(int64_t away_us, enum run_policy policy)
{
    struct rig r;
    rig_training(&r, 5, "ring", "topk:0.1", policy);
    rig_open(&r);
    run_until(&r, 10 * SECOND);
    sim_kill(r.world, 2);
    run_until(&r, 10 * SECOND + away_us);
    uint64_t others = rig_progress(&r, 0).round;
    assert_int_equal(sim_restart(r.world, 2), 0);
    run_until(&r, sim_now_us(r.world) + 5 * SECOND);
    assert_true(rig_progress(&r, 2).round + 20 >= others);
    run_until(&r, 45 * SECOND);
    assert_int_equal(rig_progress(&r, 2).n_live, 5);
    assert_int_equal(rig_progress(&r, 2).n_edges, 2);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

static void test_rejoin(void **state)
{
    (void)state;
    rejoin(SECOND, RUN_SYNC);      /* The peer returns before it was taken for dead. */
    rejoin(20 * SECOND, RUN_SYNC); /* The peer returns after it was taken for dead. */
    rejoin(20 * SECOND, RUN_ASYNC);
}

/* The network is slow, and both neighbours of peer 4 stop. The edges between peer 4 and these
 * neighbours are paused until the neighbours count as dead. Peer 4 must not train at full speed
 * meanwhile: otherwise, it could do the rest of the run in a second, and the others would skip
 * these rounds. Afterwards the number of events must be normal, which shows that the timer that
 * slowed peer 4 down has stopped. */
static void test_nobody_runs_away_alone(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 8, "ring", "qsgd:4", RUN_SYNC);
    r.config.step_us = 500;
    r.config.latency_us = 50 * 1000;
    rig_open(&r);
    /* In the first second, the peers learn from a few rounds how long a round takes. */
    run_until(&r, SECOND);
    uint64_t whole = 20 * events_of(&r, SECOND / 4);
    sim_stop(r.world, 3, true);
    sim_stop(r.world, 5, true);
    /* The edges to the stopped peers 3 and 5 have been paused for about a second now. */
    run_until(&r, 21 * SECOND / 4);
    uint64_t here = rig_progress(&r, 4).round, there = rig_progress(&r, 0).round;
    assert_true(here < there + 30 && there < here + 30);
    run_until(&r, 25 * SECOND);
    assert_true(rig_progress(&r, 0).round < there + 400);
    sim_stop(r.world, 3, false);
    sim_stop(r.world, 5, false);
    run_until(&r, 40 * SECOND);
    assert_true(events_of(&r, 5 * SECOND) < 2 * whole);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

/* All peers but one die. The survivor trains alone. Then all others return. */
static void test_last_one_standing(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 4, "ring", "qsgd:4", RUN_SYNC);
    rig_open(&r);
    run_until(&r, 8 * SECOND);
    for (uint32_t i = 1; i < 4; i++)
        sim_kill(r.world, i);
    /* Peers 0 and 2 are not neighbours at first. Peer 0 notices the death of peer 2 only after the
     * ring has been rebuilt without peers 1 and 3. */
    run_until(&r, 32 * SECOND);
    assert_int_equal(rig_progress(&r, 0).n_live, 1);
    assert_true(rig_progress(&r, 0).round > 400);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(sim_restart(r.world, i), 0);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

/* Sessions break at random during the whole run, in lock step and without, on different graphs. */
static void test_cut_sessions(void **state)
{
    static const char *const topology[] = {"ring", "complete", "regular:3"};
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct rig r;
        rig_training(&r, 6, topology[k % 3], k % 2 ? "sign:64" : "topk:0.1",
                     k < 3 ? RUN_SYNC : RUN_ASYNC);
        r.config.seed = (uint64_t)k + 1;
        r.config.cut_rate = 0.05;
        r.config.jitter_us = 20 * 1000;
        r.config.step_spread = k < 3 ? 0 : 2;
        rig_open(&r);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 2e-3);
        rig_close(&r);
    }
}

enum { LINKS_MAX = 1 << 16 };

/* For each link, the set of ends that were notified of its end. Bit 0: the peer with the lower
 * number. */
static uint8_t ended[LINKS_MAX];

static void watch_ends(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    uint8_t bit = peer < other ? 1 : 2;
    (void)self;
    if (ev->type == NODE_LINK_DOWN) {
        assert_true(ev->link < LINKS_MAX);
        ended[ev->link] |= bit;
    } else if (ev->type == NODE_RECV && (ended[ev->link] & bit) != 0) {
        fail_msg("link %u has ended at peer %u", ev->link, peer);
    }
}

/* After the end of a session, no message may arrive on it. Messages that are on the way at this
 * time are lost, as with a real socket. */
static void test_nothing_after_the_end(void **state)
{
    (void)state;
    struct rig r;
    rig_training(&r, 4, "ring", "topk:0.1", RUN_SYNC);
    r.config.cut_rate = 0.05;
    r.config.jitter_us = 20 * 1000;
    r.config.watch = watch_ends;
    rig_open(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 2e-3);
    rig_close(&r);
}

/* A slow peer must not delay the others in an asynchronous run. */
static void test_straggler(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 8, "ring", "topk:0.1", RUN_ASYNC);
    r.config.step_spread = 9;
    rig_open(&r);
    run_until(&r, 20 * SECOND);
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t round = rig_progress(&r, i).round;
        least = round < least ? round : least;
        most = round > most ? round : most;
    }
    assert_true(most > 3 * least);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 2e-3);
    rig_close(&r);
}

/* last_us: time of the last event at each node, by the node's own clock, in microseconds. */
struct clocks
{
    struct rig *rig;
    int64_t last_us[3];
    double worst; /* Largest distance of a clock from its expected time, in microseconds. */
};

static const double clock_ppm[] = {-200, 0, 50000};
static struct clocks clocks;

static void watch_clock(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    (void)self, (void)other;
    double expected = (double)sim_now_us(clocks.rig->world) * (1 + 1e-6 * clock_ppm[peer]);
    clocks.worst = fmax(clocks.worst, fabs((double)ev->now_us - expected));
    assert_true(ev->now_us >= clocks.last_us[peer]);
    clocks.last_us[peer] = ev->now_us;
}

/* Clocks that run at different rates change neither the exchanges nor the end of a run. */
static void test_clock_rates(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 3, "ring", "qsgd:4", RUN_SYNC);
    clocks = (struct clocks){.rig = &r};
    r.config.watch = watch_clock;
    rig_open(&r);
    for (uint32_t i = 0; i < 3; i++)
        sim_set_clock(r.world, i, clock_ppm[i]);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_true(clocks.worst <= 1);
    /* After 50 s of simulated time the fast clock is 2.5 s ahead. */
    assert_true(clocks.last_us[2] - clocks.last_us[1] > 2 * SECOND);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_rejoin),
        cmocka_unit_test(test_nobody_runs_away_alone),
        cmocka_unit_test(test_last_one_standing),
        cmocka_unit_test(test_cut_sessions),
        cmocka_unit_test(test_nothing_after_the_end),
        cmocka_unit_test(test_straggler),
        cmocka_unit_test(test_clock_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
