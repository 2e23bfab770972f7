/* tests/unit/sim_pace.c -- one peer is five times slower than the others.
 *
 * Stale synchronous rounds must bound the distance of neighbours in rounds. With --local-steps auto
 * the slow peer must not set the pace. */
#include "tests/unit/sim_rig.h"

enum { PEERS = 8, SLOW = PEERS - 1, ROUNDS = 300 };

static void straggling(struct rig *r, enum run_policy policy, uint32_t local_steps)
{
    rig_init(r, PEERS, 64, "ring", "qsgd:4", 0);
    r->config.run.policy = policy;
    r->config.run.local_steps = local_steps;
    r->config.run.rounds = ROUNDS;
    r->config.straggler = 5;
    rig_open(r);
}

/* Simulates to the end of the run. Returns the largest difference between the rounds of two
 * neighbours. */
static uint64_t farthest(struct rig *r)
{
    uint64_t most = 0;
    while (sim_step(r->world))
        for (uint32_t i = 0; i < PEERS; i++) {
            uint64_t a = rig_progress(r, i).round, b = rig_progress(r, (i + 1) % PEERS).round;
            uint64_t d = a > b ? a - b : b - a;
            most = d > most ? d : most;
        }
    return most;
}

static void test_staleness_is_bounded(void **state)
{
    struct rig r;
    (void)state;
    straggling(&r, RUN_ASYNC, 1);
    uint64_t unbound = farthest(&r);
    rig_close(&r);
    assert_true(unbound > ROUNDS / 2);
    for (uint32_t s = 1; s <= 8; s *= 2) {
        straggling(&r, (enum run_policy)(RUN_SSP + s - 1), 1);
        uint64_t most = farthest(&r);
        assert_true(most == s);
        rig_ended_well(&r, 1e-3);
        rig_close(&r);
    }
}

static double seconds(uint32_t local_steps, uint64_t steps[PEERS])
{
    struct rig r;
    straggling(&r, RUN_SYNC, local_steps);
    rig_run(&r, UINT64_MAX);
    for (uint32_t i = 0; i < PEERS; i++)
        steps[i] = rig_progress(&r, i).steps_done;
    double s = 1e-6 * (double)sim_now_us(r.world);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
    return s;
}

/* Each peer makes as many local steps as it can. No peer may wait for the slow one, which makes a
 * fifth of the steps of the others. */
static void test_steps_by_speed(void **state)
{
    uint64_t even[PEERS], own[PEERS];
    (void)state;
    double fixed = seconds(RUN_STEPS_AUTO, even), by_speed = seconds(0, own);
    assert_int_equal(even[SLOW], ROUNDS * RUN_STEPS_AUTO);
    assert_int_equal(even[0], even[SLOW]);
    assert_true(by_speed < fixed / 3);
    assert_true(own[0] > 4 * own[SLOW] && own[0] < 6 * own[SLOW]);
    assert_true((double)own[0] > 0.95 * (double)even[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_staleness_is_bounded),
        cmocka_unit_test(test_steps_by_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
