/* tests/unit/sim_sma.c -- mixer sma in simulated nodes: comparison with the update of synchronous
 * model averaging (gossip/collectives/sma.h), deaths, restarts, and lost sessions. */
#include "gossip/collectives/sma.h"
#include "sim_rig.h"

enum {
    DIM = 97,
    PEERS = 5,
    ROUNDS = 30,
    MOST = 1000 * 1000 /* Largest number of simulated events. No run of this file reaches it. */
};

static uint32_t sma(void)
{
    for (uint32_t i = 0; mixer_all[i] != NULL; i++)
        if (mixer_all[i] == &mixer_sma)
            return i;
    fail_msg("no sma");
    return 0;
}

static void rig_sma(struct rig *r, uint32_t n, double momentum)
{
    rig_init(r, n, DIM, "complete", "none", 0);
    memcpy(r->config.run.final_compress, r->config.run.compress, sizeof r->config.run.compress);
    r->config.run.mixer = sma();
    r->config.run.centre_momentum = momentum;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.jitter_us = 2000;
    r->eta = 0.1f;
}

/* Computes the update of the CROSSBOW paper on quadratics, one number at a time. Returns coordinate
 * k of the centre, which is the final model. */
static double naive(const struct rig *r, size_t k, double momentum)
{
    uint32_t n = r->config.n_peers;
    double x[PEERS] = {0}, z = 0, before = 0;
    for (uint64_t t = 0; t < ROUNDS; t++) {
        double sum = 0, last = z;
        for (uint32_t i = 0; i < n; i++) {
            x[i] -= (double)r->eta * (x[i] - (double)r->c[i * r->dim + k]);
            double c = (x[i] - z) / n;
            x[i] -= c;
            sum += c;
        }
        z += sum + momentum * (z - before);
        before = last;
    }
    return z;
}

static void test_the_papers_update(void **state)
{
    static const double momentum[] = {0, 0.5, 0.9};
    (void)state;
    for (uint32_t n = 1; n <= PEERS; n++)
        for (size_t m = 0; m < sizeof momentum / sizeof *momentum; m++) {
            struct rig r;
            rig_sma(&r, n, momentum[m]);
            rig_run(&r, MOST);
            rig_ended_well(&r, 0);
            rig_all_equal(&r);
            for (size_t k = 0; k < DIM; k++) {
                double x = naive(&r, k, momentum[m]);
                if (!(fabs((double)rig_model(&r, 0)[k] - x) <= 1e-5))
                    fail_msg("%u peers, momentum %g: float %zu is %g, expected %g", n, momentum[m],
                             k, (double)rig_model(&r, 0)[k], x);
            }
            rig_close(&r);
        }
}

/* A peer dies at various times. If it does not return, the others must end with equal models. If it
 * returns, all models must end within the target of the consensus distance. */
static void test_deaths_and_restarts(void **state)
{
    (void)state;
    for (int back = 0; back < 3; back++)
        for (uint64_t at = 2; at < 20; at += 3) {
            struct rig r;
            rig_sma(&r, PEERS, 0.9);
            r.config.seed = 1 + at;
            r.config.run.quorum = 0.5;
            rig_open(&r);
            while (rig_progress(&r, 2).round < at)
                assert_true(sim_step(r.world));
            rig_run(&r, sim_events(r.world) + 5 * at);
            sim_kill(r.world, 2);
            rig_run(&r, sim_events(r.world) + 40 * at);
            if (back > 0)
                assert_int_equal(
                    back == 1 ? sim_restart(r.world, 2) : sim_restart_as_new(r.world, 2), 0);
            rig_run(&r, MOST);
            rig_ended_well(&r, back > 0 ? r.config.run.final_drift : 0);
            if (back == 0)
                rig_all_equal(&r);
            rig_close(&r);
        }
}

/* Even if sessions are lost, the final model must equal the model of the textbook computation. */
static void test_lost_sessions(void **state)
{
    struct rig r;
    (void)state;
    rig_sma(&r, 4, 0.9);
    r.config.cut_rate = 0.02;
    rig_run(&r, MOST);
    rig_ended_well(&r, 0);
    rig_all_equal(&r);
    for (size_t k = 0; k < DIM; k++)
        assert_true(fabs((double)rig_model(&r, 0)[k] - naive(&r, k, 0.9)) <= 1e-5);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_papers_update),
        cmocka_unit_test(test_deaths_and_restarts),
        cmocka_unit_test(test_lost_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
