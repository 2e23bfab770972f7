/* tests/unit/sim_idle.c -- an idle cluster must send and wake up only a few times per second,
 * whatever it waits for. */
#include "sim_rig.h"

/* MOST: largest number of events per second that an idle node may handle. */
enum { PEERS = 3, SECOND = 1000 * 1000, WAIT = 60, MOST = 40 };

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

static void is_calm(struct rig *r, uint32_t n, const char *what)
{
    uint64_t before = sim_events(r->world);
    run_until(r, sim_now_us(r->world) + (int64_t)WAIT * SECOND);
    double rate = (double)(sim_events(r->world) - before) / WAIT / n;
    print_message("%s: %.1f events a second and peer\n", what, rate);
    if (!(rate <= MOST))
        fail_msg("%s: %.1f events a second and peer, expected at most %d", what, rate, MOST);
}

static void rig_idle(struct rig *r)
{
    rig_init(r, PEERS, 100, "ring", "qsgd:4", 0);
    r->quiet = true;
    r->eta = 0.05f;
    r->config.step_us = 50 * 1000;
    r->config.run.rounds = 100000;
    r->config.run.quorum = 0.5;
    r->config.run.final_drift = 1e-3;
    rig_open(r);
}

static void test_members_that_do_not_come(void **state)
{
    (void)state;
    struct rig r;
    rig_idle(&r);
    sim_kill(r.world, 2);
    run_until(&r, 10 * SECOND);
    assert_int_equal(rig_progress(&r, 0).round, 0);
    is_calm(&r, 2, "before the run");
    rig_close(&r);
}

/* Two of three peers die. The last one is below the quorum, and must have few events per second. */
static void test_a_quorum_that_is_gone(void **state)
{
    (void)state;
    struct rig r;
    rig_idle(&r);
    run_until(&r, 10 * SECOND);
    assert_true(rig_progress(&r, 0).round > 0);
    sim_kill(r.world, 1);
    sim_kill(r.world, 2);
    run_until(&r, 20 * SECOND);
    is_calm(&r, 1, "below the quorum");
    rig_close(&r);
}

/* The workers of all peers hang in a job. The peers must have few events per second meanwhile. */
static void test_a_job_that_does_not_end(void **state)
{
    (void)state;
    struct rig r;
    rig_idle(&r);
    run_until(&r, 10 * SECOND);
    for (uint32_t i = 0; i < PEERS; i++)
        sim_hang(r.world, i, true);
    run_until(&r, 11 * SECOND);
    uint64_t round = rig_progress(&r, 0).round;
    is_calm(&r, PEERS, "while all jobs hang");
    assert_int_equal(rig_progress(&r, 0).round, round);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_that_do_not_come),
        cmocka_unit_test(test_a_quorum_that_is_gone),
        cmocka_unit_test(test_a_job_that_does_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
