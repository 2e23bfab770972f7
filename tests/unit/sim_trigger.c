/* tests/unit/sim_trigger.c -- the event trigger (--trigger) in simulated nodes. A small threshold
 * must change no bit. With a large threshold, peers send no values in training, and must keep the
 * mean of the models. A medium threshold must save bytes. */
#include "peer/sim/faults.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 4000, ROUNDS = 60, EDGES = 2 };

static double moved[DIM]; /* Sum over all peers of the local updates of each parameter. */

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    static float before[DIM];
    memcpy(before, x, sizeof before);
    rig_gradient_steps(p, x, round, n_steps);
    for (size_t k = 0; k < DIM; k++)
        moved[k] += (double)x[k] - (double)before[k];
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = steps;
    return err;
}

/* Number of empty deltas, number of bytes, and final models of a simulated run. */
struct result
{
    uint64_t n_empty, n_bytes;
    float model[PEERS * DIM]; /* Final models of all peers. */
};

static struct result off, on;

/* Simulates a run that must end in consensus. Checks that the sum of the models is the sum of all
 * local updates, so that no exchange has changed it. */
static void run_with(double trigger, uint32_t overlap, enum run_policy policy, struct result *out)
{
    struct rig r;
    double worst = 0;
    rig_init(&r, PEERS, DIM, "ring", "qsgd:4", 0);
    r.config.run.trigger = trigger;
    r.config.run.overlap = overlap;
    r.config.run.policy = policy;
    r.config.run.rounds = ROUNDS;
    r.config.run.final_drift = 1e-3;
    r.config.make_trainer = make_trainer;
    r.eta = 0.05f;
    r.noise = 0.3f;
    memset(moved, 0, sizeof moved);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    *out = (struct result){0};
    for (uint32_t i = 0; i < PEERS; i++) {
        struct node_progress p = rig_progress(&r, i);
        out->n_empty += p.empty_deltas;
        out->n_bytes += p.bytes_sent;
        memcpy(out->model + i * DIM, rig_model(&r, i), DIM * sizeof(float));
    }
    for (size_t k = 0; k < DIM; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            sum += (double)out->model[i * DIM + k];
        worst = isfinite(sum) ? fmax(worst, fabs(sum - moved[k])) : (double)INFINITY;
    }
    print_message(
        "--trigger %g --overlap %u: %llu empty deltas, %llu bytes, the sum is off by %.2g\n",
        trigger, overlap, (unsigned long long)out->n_empty, (unsigned long long)out->n_bytes,
        worst);
    if (!(worst <= 2e-4))
        fail_msg("the sum of the models is off by %g", worst);
    rig_close(&r);
}

/* A threshold so small that no delta is left empty must give the same bits as a run without a
 * trigger. */
static void a_tiny_threshold_changes_no_bit(void **state)
{
    (void)state;
    run_with(0, 0, RUN_SYNC, &off);
    run_with(1e-6, 0, RUN_SYNC, &on);
    assert_int_equal(off.n_empty, 0);
    assert_int_equal(on.n_empty, 0);
    assert_memory_equal(off.model, on.model, sizeof off.model);
}

/* With a huge threshold of the event trigger, each peer must send values only in the first delta of
 * each edge. The consensus phase ignores the trigger, and must bring the models together. */
static void a_huge_threshold_leaves_all_training_deltas_empty(void **state)
{
    (void)state;
    run_with(0, 0, RUN_SYNC, &off);
    run_with(1000, 0, RUN_SYNC, &on);
    assert_int_equal(on.n_empty, PEERS * EDGES * (ROUNDS - 1));
    assert_true(on.n_bytes < off.n_bytes / 2);
}

static void a_medium_threshold_saves_bytes(void **state)
{
    static const enum run_policy policy[] = {RUN_SYNC, RUN_ASYNC};
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (uint32_t overlap = 0; overlap < 2; overlap++) {
            run_with(0, overlap, policy[i], &off);
            run_with(2, overlap, policy[i], &on);
            assert_true(on.n_empty > PEERS * EDGES * ROUNDS / 5);
            assert_true(on.n_empty < PEERS * EDGES * (ROUNDS - 5));
            assert_true(on.n_bytes < 0.9 * (double)off.n_bytes);
        }
}

/* Two of the peers are slow and the run is asynchronous, so they enter the consensus phase last. The
 * distance of their replicas jumps then, because all their deltas in training were empty. No peer
 * may distrust them for that reason. */
static void slow_peers_with_empty_deltas_are_trusted(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 16, 48, "torus", "qsgd:4", 0);
    r.config.run.trigger = 1000;
    r.config.run.overlap = 1;
    r.config.run.local_steps = 5;
    r.config.run.policy = RUN_ASYNC;
    r.config.run.rounds = 200;
    r.config.run.final_drift = 1e-3;
    r.config.step_us = 50 * 1000;
    r.eta = 0.05f;
    rig_open(&r);
    sim_slow(r.world, 2, 6);
    sim_slow(r.world, 5, 6);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint32_t i = 0; i < 16; i++)
        assert_int_equal(rig_progress(&r, i).distrusted, 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiny_threshold_changes_no_bit),
        cmocka_unit_test(a_huge_threshold_leaves_all_training_deltas_empty),
        cmocka_unit_test(a_medium_threshold_saves_bytes),
        cmocka_unit_test(slow_peers_with_empty_deltas_are_trusted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
