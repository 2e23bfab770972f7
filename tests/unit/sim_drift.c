/* tests/unit/sim_drift.c -- compares the estimated consensus distance with the exact one, and tests
 * the consensus phase. */
#include "sim_rig.h"

/* With sanitizers, tests take five times as long, and sanitizers do not detect wrong figures. The
 * largest model and most of the short runs are therefore left out. */
#ifdef HEARSAY_SANITIZED
enum { LARGE = 0, SHORT_RUNS_STEP = 6 };
#else
enum { LARGE = 1, SHORT_RUNS_STEP = 1 };
#endif

/* Simulates a run with noisy local steps, and compares at least ten estimates of the drift with
 * exact ones. */
static void drift_is_right(const char *topology, uint32_t n, const char *compress, size_t dim)
{
    struct rig r;
    double worst = 0;
    rig_init(&r, n, dim, topology, compress, 0);
    r.eta = 0.05f;
    r.noise = 2.0f;
    r.config.run.rounds = 600;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    assert_true(r.n_errors == 600);
    int moments = 0;
    for (uint64_t t = 30; t < 580; t++) {
        if (r.estimate[t] == 0)
            /* No measurement of the drift began in this round, so there is no estimate. */
            continue;
        moments++;
        double exact = sqrt(r.error2[t] / n);
        double ratio = r.estimate[t] / exact;
        if (!(fabs(ratio - 1) <= worst))
            worst = fabs(ratio - 1);
    }
    print_message("%-11s n=%-3u %-22s %2d estimates, worst off by %.1f %%\n", topology, n, compress,
                  moments, 100 * worst);
    assert_true(moments >= 10);
    if (!(worst <= 0.15))
        fail_msg("%s %s: off by %.1f %%", topology, compress, 100 * worst);
    rig_close(&r);
}

static void test_estimate(void **state)
{
    (void)state;
    drift_is_right("ring", 8, "qsgd:4", 4000);
    drift_is_right("ring", 8, "topk:0.05", 4000);
    if (LARGE)
        drift_is_right("ring", 8, "topk:0.01+qsgd:4", 40000);
    drift_is_right("torus", 16, "none", 4000);
    drift_is_right("exponential", 16, "sign:64", 4000);
    drift_is_right("edges:0-1,0-2,0-3,0-4,0-5,0-6,0-7,0-8", 9, "none", 4000);
}

/* A peer dies, and its part of the running averages of sketches is lost. The estimate of the drift
 * must recover. */
static void test_estimate_after_death(void **state)
{
    struct rig r;
    int moments = 0;
    (void)state;
    rig_init(&r, 8, 2000, "ring", "qsgd:4", 0);
    r.eta = 0.05f;
    r.noise = 2.0f;
    r.config.run.rounds = 400;
    r.config.step_us = 100 * 1000;
    rig_recording(&r);
    rig_open(&r);
    while (sim_now_us(r.world) < 10 * 1000 * 1000 && sim_step(r.world))
        ;
    sim_kill(r.world, 7);
    r.lost = true;
    r.dead = 7;
    memset(r.count, 0, sizeof r.count);
    rig_run(&r, UINT64_MAX);
    for (uint64_t t = 250; t < 390; t++) {
        if (r.estimate[t] == 0 || r.error2[t] == 0)
            continue;
        double exact = sqrt(r.error2[t] / 7);
        if (!(fabs(r.estimate[t] / exact - 1) <= 0.15))
            fail_msg("round %d: estimated %g, exact %g", (int)t, r.estimate[t], exact);
        moments++;
    }
    print_message("%d estimates after a death\n", moments);
    assert_true(moments >= 3);
    rig_close(&r);
}

static void settles(const char *topology, uint32_t n, const char *compress, double target)
{
    struct rig r;
    struct consensus c;
    uint64_t most = 0;
    rig_init(&r, n, 3000, topology, compress, 0);
    r.eta = 0.1f;
    r.noise = 1.0f;
    r.config.run.rounds = 150;
    r.config.run.final_drift = target;
    rig_run(&r, UINT64_MAX);
    sim_drift(r.world, &c);
    for (uint32_t i = 0; i < n; i++) {
        int code;
        struct node_progress p;
        node_progress(sim_node(r.world, i), &p);
        most = p.settle_rounds > most ? p.settle_rounds : most;
        assert_true(sim_ended(r.world, i, &code) && code == 0);
    }
    print_message("%-11s n=%-3u %-18s consensus phase %3llu rounds, drift %.2g, "
                  "target %.2g\n",
                  topology, n, compress, (unsigned long long)most, c.trained.relative, target);
    /* The consensus phase must end because its target was reached, not because of its limit of
     * rounds. */
    assert_true(most <= 200);
    if (!(c.trained.relative <= target))
        fail_msg("drift %g, target %g", c.trained.relative, target);
    rig_close(&r);
}

static void test_last_phase(void **state)
{
    (void)state;
    settles("ring", 8, "topk:0.01+qsgd:4", 1e-3);
    settles("ring", 8, "sign", 1e-3);
    settles("ring", 8, "none", 1e-4);
    settles("torus", 36, "qsgd:4", 1e-3);
    settles("complete", 5, "randk:0.05", 1e-3);
    settles("ring", 2, "topk:0.1", 1e-3);
    settles("ring", 1, "topk:0.1", 1e-3);
}

/* Tests runs of 1 to 40 rounds. Only a window of drift measurement that began in the consensus
 * phase may end the phase. The first window began at round 0, where all models were equal, so its
 * result must not count. */
static void test_short_runs(void **state)
{
    (void)state;
    for (uint64_t rounds = 1; rounds <= 40; rounds += SHORT_RUNS_STEP) {
        struct rig r;
        struct consensus c;
        rig_init(&r, 4, 300, "ring", "none", 0.1);
        r.eta = 0.1f;
        r.config.run.rounds = rounds;
        r.config.run.final_drift = 1e-3;
        rig_run(&r, UINT64_MAX);
        sim_drift(r.world, &c);
        if (!(c.trained.relative <= 1e-3))
            fail_msg("%d rounds: drift %g", (int)rounds, c.trained.relative);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_estimate_after_death),
        cmocka_unit_test(test_last_phase),
        cmocka_unit_test(test_short_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
