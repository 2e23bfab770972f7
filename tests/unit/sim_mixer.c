/* tests/unit/sim_mixer.c -- averaging of compressed updates through the node:
 * what error feedback is worth, other graphs, faults. */
#include "gossip/mixer.h"
#include "sim_rig.h"

enum { SECOND = 1000 * 1000 };

static void rig_average(struct rig *r, uint32_t n, const char *topology,
                        const char *compress, bool memory)
{
    rig_init(r, n, 500, topology, compress, 0);
    r->config.run.mixer = 1;
    assert_string_equal(mixer_all[1]->name, "average");
    r->config.run.error_feedback = memory;
    r->config.run.rounds = 1500;
    r->config.run.final_drift = 1e-3;
    r->eta = 0.01f; /* Memory delays by 1 / share of rounds: eta is well under it. */
}

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

static void all_ended_well(const struct rig *r)
{
    struct consensus c;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        struct node_progress p;
        int code;
        if (sim_node(r->world, i) == NULL)
            continue;
        node_progress(sim_node(r->world, i), &p);
        if (!sim_ended(r->world, i, &code) || code != 0)
            fail_msg("peer-%u did not end well", i);
        assert_int_equal(p.round, r->config.run.rounds);
        assert_int_equal(p.violations, 0);
    }
    sim_drift(r->world, &c);
    if (!(c.trained.relative <= 1e-3))
        fail_msg("relative drift %g", c.trained.relative);
}

/* |mean of the models - mean of the c_i| / |mean of the c_i|, and the largest
 * relative drift while training, as measured after mixing. */
struct outcome
{
    double error, drift;
};

static struct outcome train(const char *topology, const char *compress, bool memory)
{
    struct rig r;
    rig_average(&r, 8, topology, compress, memory);
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    all_ended_well(&r);
    struct outcome o = {.error = rig_mean_error(&r)};
    double m2 = 0;
    for (size_t k = 0; k < r.dim; k++)
        m2 += (double)rig_model(&r, 0)[k] * (double)rig_model(&r, 0)[k];
    for (uint64_t t = 0; t < r.n_errors; t++)
        o.drift = fmax(o.drift, sqrt(r.error2[t] / 8 / m2));
    assert_true(r.n_errors == r.config.run.rounds);
    print_message("%-9s %-10s memory %d: error %.3g, drift while training %.3g\n",
                  topology, compress, memory, o.error, o.drift);
    rig_close(&r);
    return o;
}

/* Every update reaches everybody: models are equal to rounding, and error
 * feedback is what brings them home. */
static void test_complete(void **state)
{
    (void)state;
    struct outcome dense = train("complete", "none", true);
    struct outcome with = train("complete", "topk:0.02", true);
    struct outcome without = train("complete", "topk:0.02", false);
    struct outcome rand = train("complete", "randk:0.02", false);
    assert_true(dense.error <= 1e-4 && with.error <= 0.2);
    assert_true(without.error >= 0.7 && rand.error >= 0.5);
    assert_true(dense.drift <= 1e-5 && with.drift <= 1e-5 && without.drift <= 1e-5);
}

static void test_other_graphs(void **state)
{
    (void)state;
    struct outcome ring = train("ring", "topk:0.1", true);
    struct outcome torus = train("torus", "qsgd:4", true);
    assert_true(ring.error <= 0.05 && torus.error <= 1e-3);
}

/* Deltas are lost with their sessions all the time. */
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
        all_ended_well(&r);
        double error = rig_mean_error(&r);
        if (!(error <= 0.15))
            fail_msg("%d: the mean is off by %g", k, error);
        rig_close(&r);
    }
}

/* One dies, and comes back with its memory lost and its replicas at x0. */
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
        run_until(&r, (k == 0 ? 11 : 25) * SECOND); /* Taken for dead, or not. */
        assert_int_equal(sim_restart(r.world, 2), 0);
        rig_run(&r, UINT64_MAX);
        all_ended_well(&r);
        double error = rig_mean_error(&r);
        if (!(error <= 0.05))
            fail_msg("the mean is off by %g", error);
        rig_close(&r);
    }
}

/* Nobody to exchange with: plain SGD, to the bit what CHOCO does alone. */
static void test_one_peer(void **state)
{
    struct rig r[2];
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        rig_average(&r[k], 1, "complete", "topk:0.02", true);
        r[k].config.run.mixer = k;
        rig_run(&r[k], UINT64_MAX);
        all_ended_well(&r[k]);
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
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_other_graphs),
        cmocka_unit_test(test_cut_sessions),
        cmocka_unit_test(test_death_and_return),
        cmocka_unit_test(test_one_peer),
        cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
