/* tests/unit/sim_mixer.c -- --mixer average (averaging of compressed updates) in simulated nodes:
 * the benefit of error feedback, different graphs, and faults. */
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"
#include "test_share.h"

enum { SECOND = 1000 * 1000 };

static void rig_average(struct rig *r, uint32_t n, const char *topology, const char *compress,
                        bool memory)
{
    rig_init(r, n, 500, topology, compress, 0);
    r->config.run.mixer = 1;
    assert_string_equal(mixer_all[1]->name, "average");
    r->config.run.error_feedback = memory;
    r->config.run.rounds = 1500;
    r->config.run.final_drift = 1e-3;
    /* The step size eta is small, because error feedback delays updates. If the codec sends the
     * share s of all entries, an entry is delayed by about 1 / s rounds. */
    r->eta = 0.01f;
}

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

/* c_i is the optimum of peer i. error: |mean of the models - mean of the c_i| / |mean of the c_i|.
 * drift: largest relative drift in training, measured after mixing. */
struct mixed
{
    double error, drift;
};

static struct mixed train(const char *topology, const char *compress, bool memory)
{
    struct rig r;
    rig_average(&r, 8, topology, compress, memory);
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    struct mixed o = {.error = rig_mean_error(&r)};
    double m2 = 0;
    for (size_t k = 0; k < r.dim; k++)
        m2 += (double)rig_model(&r, 0)[k] * (double)rig_model(&r, 0)[k];
    for (uint64_t t = 0; t < r.n_errors; t++)
        o.drift = fmax(o.drift, sqrt(r.error2[t] / 8 / m2));
    assert_true(r.n_errors == r.config.run.rounds);
    print_message("%-9s %-10s memory %d: error %.3g, drift while training %.3g\n", topology,
                  compress, memory, o.error, o.drift);
    rig_close(&r);
    return o;
}

/* In a complete graph every update reaches all peers, so the models are equal up to rounding. With
 * error feedback, they also converge to the mean of the optima. */
static void test_complete(void **state)
{
    (void)state;
    struct mixed dense = train("complete", "none", true);
    struct mixed with = train("complete", "topk:0.02", true);
    struct mixed without = train("complete", "topk:0.02", false);
    struct mixed rand = train("complete", "randk:0.02", false);
    assert_true(dense.error <= 1e-4 && with.error <= 0.2);
    assert_true(without.error >= 0.7 && rand.error >= 0.5);
    assert_true(dense.drift <= 1e-5 && with.drift <= 1e-5 && without.drift <= 1e-5);
}

static void test_other_graphs(void **state)
{
    (void)state;
    struct mixed ring = train("ring", "topk:0.1", true);
    struct mixed torus = train("torus", "qsgd:4", true);
    assert_true(ring.error <= 0.05 && torus.error <= 1e-3);
}

/* Returns how many peers have moved their model towards other models. Only such a peer reports a
 * consensus step size gamma. */
static uint32_t n_corrected(const struct rig *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        struct node_progress p;
        node_progress(sim_node(r->world, i), &p);
        count += isnan(p.gamma) ? 0 : 1;
    }
    return count;
}

/* If the models are equal already, the consensus phase only has to measure that. If they certainly
 * differ, the phase moves the models together without waiting for an estimate of their distance.
 * The last row has a target that is smaller than rounding errors, so even equal models do not reach
 * it. */
static void test_last_phase(void **state)
{
    static const struct
    {
        const char *topology;
        double final_drift;
        uint32_t corrected;
        /* Largest allowed number of rounds of the consensus phase. UINT64_MAX: any number. */
        uint64_t most;
    } table[] = {
        {"complete", 1e-3, 0, 12}, {"ring", 1e-3, 8, 54}, {"complete", 1e-9, 8, UINT64_MAX}};
    (void)state;
    for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
        struct rig r;
        rig_average(&r, 8, table[k].topology, "topk:0.1", true);
        r.config.run.rounds = 200;
        r.config.run.final_drift = table[k].final_drift;
        rig_run(&r, UINT64_MAX);
        assert_int_equal(n_corrected(&r), table[k].corrected);
        struct node_progress p;
        node_progress(sim_node(r.world, 0), &p);
        assert_true(p.settle_rounds <= table[k].most);
        if (table[k].final_drift >= 1e-3)
            rig_ended_well(&r, 1e-3);
        rig_close(&r);
    }
}

/* Sometimes a session is cut and one edge misses a delta, so that the models of its two ends
 * differ. The last measurement of the drift may not show this. In the consensus phase a single peer
 * cannot move the models together, so either all peers must begin to do this, or none. */
static void test_last_phase_with_cuts(void **state)
{
    uint32_t n_equal = 0, n_apart = 0;
    uint64_t n_seeds = test_share_of(40);
    (void)state;
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        struct rig r;
        struct consensus c;
        struct node_progress p;
        rig_average(&r, 6, "complete", "topk:0.1", true);
        r.config.seed = seed;
        r.config.cut_rate = 0.0006;
        r.config.step_us = 50 * 1000;
        r.config.run.rounds = 40;
        r.config.run.final_drift = 1e-4;
        rig_run(&r, UINT64_MAX);
        sim_drift(r.world, &c);
        node_progress(sim_node(r.world, 0), &p);
        if (!(c.trained.relative <= 1e-4) || p.settle_rounds > 40)
            fail_msg("seed %d: drift %g after %d rounds", (int)seed, c.trained.relative,
                     (int)p.settle_rounds);
        n_equal += n_corrected(&r) == 0;
        n_apart += n_corrected(&r) == 6;
        rig_close(&r);
    }
    assert_true(n_equal >= n_seeds / 4 && n_apart >= n_seeds / 8 && n_equal + n_apart == n_seeds);
}

/* Deltas are lost with their sessions during the whole run. */
static void test_cut_sessions(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct rig r;
        rig_average(&r, 6, k % 2 ? "ring" : "complete", k < 2 ? "topk:0.1" : "sign:64", true);
        r.config.seed = (uint64_t)k + 1;
        r.config.cut_rate = 0.05;
        r.config.jitter_us = 20 * 1000;
        r.config.step_us = 50 * 1000;
        r.config.run.rounds = 1000;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        double error = rig_mean_error(&r);
        if (!(error <= 0.15))
            fail_msg("%d: the mean is off by %g", k, error);
        rig_close(&r);
    }
}

/* A peer dies and returns without its error feedback, the stored parts of updates that were not
 * sent. Its replicas start again from the initial model. */
static void test_death_and_return(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig r;
        rig_average(&r, 5, "complete", k == 0 ? "topk:0.05" : "none", true);
        r.config.step_us = 50 * 1000;
        r.config.run.rounds = 1000;
        rig_open(&r);
        run_until(&r, 10 * SECOND);
        sim_kill(r.world, 2);
        /* Peer 2 is away for 1 s in the first case (k = 0), and for 15 s in the second. Only in the
         * second case do the other peers declare it dead. */
        run_until(&r, (k == 0 ? 11 : 25) * SECOND);
        assert_int_equal(sim_restart(r.world, 2), 0);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        double error = rig_mean_error(&r);
        if (!(error <= 0.05))
            fail_msg("the mean is off by %g", error);
        rig_close(&r);
    }
}

/* A single peer must do plain SGD with the mixers choco and average. Both mixers must therefore
 * give it the same model, bit for bit. */
static void test_one_peer(void **state)
{
    struct rig r[2];
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        rig_average(&r[k], 1, "complete", "topk:0.02", true);
        r[k].config.run.mixer = k;
        rig_run(&r[k], UINT64_MAX);
        rig_ended_well(&r[k], 1e-3);
    }
    assert_memory_equal(rig_model(&r[0], 0), rig_model(&r[1], 0), r[0].dim * sizeof(float));
    rig_close(&r[0]);
    rig_close(&r[1]);
}

static void test_same_seed_same_run(void **state)
{
    uint64_t trace[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig r;
        rig_average(&r, 6, "complete", "randk:0.1", true);
        r.config.jitter_us = 500;
        r.config.cut_rate = 0.02;
        rig_run(&r, UINT64_MAX);
        trace[k] = sim_trace(r.world);
        rig_close(&r);
    }
    assert_int_equal(trace[0], trace[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),     cmocka_unit_test(test_other_graphs),
        cmocka_unit_test(test_last_phase),   cmocka_unit_test(test_last_phase_with_cuts),
        cmocka_unit_test(test_cut_sessions), cmocka_unit_test(test_death_and_return),
        cmocka_unit_test(test_one_peer),     cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
