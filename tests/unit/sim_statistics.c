/* tests/unit/sim_statistics.c -- running statistics of a model, such as the means and variances of
 * batch norm, in simulated nodes. Their mean must be kept under faults, they must agree at the end,
 * and the drift must not include them. */
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"

/* The test reads pending changes of statistics from the mixer's state, because a node does not
 * report them. */
#include "peer/node/state.h"

static double size(const double *v, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += v[k] * v[k];
    return sqrt(sum);
}

/* Returns the relative error of floats [from, to) of the models. Their sum over the peers, minus
 * pending changes (`owed`), should be the sum of the initial values and of all local updates. The
 * error is the norm of the difference, divided by the norm of the updates. */
static double moved_off(const struct rig *r, size_t from, size_t to)
{
    uint32_t n = r->config.n_peers;
    double *off = calloc(to - from, sizeof *off), relative;
    assert_non_null(off);
    for (size_t k = from; k < to; k++) {
        bool variance = k >= r->dim + r->n_means;
        /* The initial variances are 1, all other floats 0. */
        off[k - from] = -r->moved[k] - (variance ? n : 0);
        for (uint32_t i = 0; i < n; i++) {
            const struct node *node = sim_node(r->world, i);
            off[k - from] += (double)rig_model(r, i)[k];
            if (k >= r->dim)
                off[k - from] -= (double)node->workshop.mixing.statistics.owed[k - r->dim];
        }
    }
    relative = size(off, to - from) / size(r->moved + from, to - from);
    free(off);
    return relative;
}

/* Runs a cluster in which nearly a third of the deltas are lost with their sessions. After each
 * simulated event, counts the statistics (of all peers) for which a change is pending, that is, not
 * yet applied. Returns the sum of these counts. */
static uint64_t cut(const char *topology, const char *compress, enum run_policy policy,
                    uint64_t seed)
{
    struct rig r;
    struct consensus c;
    uint64_t exchanges = 0, n_owed = 0;
    rig_init(&r, 6, 300, topology, compress, 0);
    rig_with_statistics(&r, 7, 9, 10);
    r.eta = 0.05f;
    r.noise = 1;
    r.config.seed = seed;
    r.config.cut_rate = 0.3;
    r.config.jitter_us = 20 * 1000;
    r.config.step_us = 50 * 1000;
    r.config.step_spread = policy == RUN_ASYNC ? 2 : 0;
    r.config.run.rounds = 600;
    r.config.run.policy = policy;
    r.config.run.final_drift = 1e-4;
    rig_open(&r);
    while (sim_step(r.world))
        for (uint32_t i = 0; i < 6; i++)
            for (size_t k = 0; k < 16; k++)
                n_owed += sim_node(r.world, i)->workshop.ready
                          && sim_node(r.world, i)->workshop.mixing.statistics.owed[k] > 0;
    for (uint32_t i = 0; i < 6; i++) {
        struct node_progress p;
        int code;
        node_progress(sim_node(r.world, i), &p);
        if (!sim_ended(r.world, i, &code) || code != 0)
            fail_msg("peer-%u did not end well", i);
        assert_int_equal(p.violations, 0);
        assert_true(isfinite(p.statistics_apart));
        exchanges += p.exchanges;
    }
    sim_drift(r.world, &c);
    double trained = moved_off(&r, 0, r.dim), beside = moved_off(&r, r.dim, rig_floats(&r));
    print_message("%-9s %-8s %s: %llu exchanges, means moved by %.2g and %.2g, relative "
                  "drift %.2g and %.2g, least variance %.2g, seen owed %llu times\n",
                  topology, compress, policy == RUN_SYNC ? "sync " : "async",
                  (unsigned long long)exchanges / 2, trained, beside, c.trained.relative,
                  c.statistics.relative, (double)r.lowest, (unsigned long long)n_owed);
    /* The sums may differ from the expected ones by a little, because the last exchange may be done
     * at one end only. Its effect is small, because the models are close to each other at that
     * time. */
    if (!(trained <= 3e-5 && beside <= 3e-5))
        fail_msg("the means have moved by %g and %g", trained, beside);
    if (!(c.trained.relative <= 2e-4 && c.statistics.relative <= 5e-3))
        fail_msg("relative drift %g and %g", c.trained.relative, c.statistics.relative);
    assert_true(r.lowest > 0);
    rig_close(&r);
    return n_owed;
}

static void test_cut_sessions(void **state)
{
    (void)state;
    uint64_t n_owed = cut("ring", "topk:0.1", RUN_SYNC, 1) + cut("regular:3", "qsgd:4", RUN_SYNC, 2)
                      + cut("ring", "topk:0.1", RUN_ASYNC, 3)
                      + cut("complete", "sign:64", RUN_ASYNC, 7);
    /* Fails if no change of a statistic was pending, because pending changes were then not
     * tested. */
    assert_true(n_owed > 0);
}

/* ---- the drift is of the weights ---- */

enum { ROUNDS = 400, FLOATS = 3000 };

static void begin(struct rig *r, const char *compress, size_t n_statistics)
{
    rig_init(r, 8, FLOATS, "ring", compress, 0);
    if (n_statistics > 0)
        rig_with_statistics(r, n_statistics / 2, n_statistics - n_statistics / 2, 1e4f);
    r->eta = 0.05f;
    r->noise = 2;
    r->config.run.rounds = ROUNDS;
    rig_recording(r);
}

static void train(struct rig *r, const char *compress, size_t n_statistics)
{
    begin(r, compress, n_statistics);
    rig_run(r, UINT64_MAX);
    assert_true(r->n_errors == ROUNDS);
}

/* The running statistics are 10,000 times as large as the weights, and so are their differences
 * between peers. Weights and estimated drift must nevertheless equal those of a run without
 * statistics, bit for bit. */
static void test_estimate(void **state)
{
    static const char *const specs[] = {"topk:0.05", "qsgd:4"};
    (void)state;
    for (size_t s = 0; s < 2; s++) {
        struct rig with, without;
        struct consensus c;
        double worst = 0;
        int moments = 0;
        train(&with, specs[s], 40);
        train(&without, specs[s], 0);
        assert_memory_equal(with.estimate, without.estimate, ROUNDS * sizeof *with.estimate);
        assert_memory_equal(with.error2, without.error2, ROUNDS * sizeof *with.error2);
        for (uint32_t i = 0; i < 8; i++) {
            struct node_progress p, q;
            assert_memory_equal(rig_model(&with, i), rig_model(&without, i),
                                FLOATS * sizeof(float));
            node_progress(sim_node(with.world, i), &p);
            node_progress(sim_node(without.world, i), &q);
            assert_true(isnan(q.statistics_apart) && p.statistics_apart > 0.01);
            /* Without --compress auto there is no codec level. */
            assert_true(p.rung == NULL && isnan(p.drift_target));
        }
        for (uint64_t t = 30; t < ROUNDS - 20; t++) {
            if (with.estimate[t] == 0)
                continue; /* No measurement of the consensus distance began at round t. */
            double ratio = with.estimate[t] / sqrt(with.error2[t] / 8);
            if (!(fabs(ratio - 1) <= worst))
                worst = fabs(ratio - 1);
            moments++;
        }
        sim_drift(with.world, &c);
        print_message("%-10s %d estimates, worst off by %.1f %%; statistics %.2g, weights %.2g "
                      "apart\n",
                      specs[s], moments, 100 * worst, c.statistics.xi, c.trained.xi);
        assert_true(c.statistics.xi > 1000 * c.trained.xi);
        assert_true(moments >= 6);
        if (!(worst <= 0.15))
            fail_msg("%s: off by %.1f %%", specs[s], 100 * worst);
        rig_close(&with);
        rig_close(&without);
    }
}

static uint64_t n_with, n_checked;

/* Checks that the last delta of peer 0 carries statistics if and only if the mixer sends them in
 * this round. */
static void note_with(void *self, uint32_t peer)
{
    const struct node *n = sim_node(((struct rig *)self)->world, peer);
    if (peer != 0 || phases_phase(n->phases) != NODE_TRAINING || edges_count(n->edges) == 0)
        return;
    const struct edge_sent *s = &edges_at(n->edges, 0)->edge.cur;
    assert_non_null(s->payload);
    assert_int_equal(s->head.run_round, phases_round(n->phases));
    assert_int_equal(s->payload->bytes[0],
                     (phases_round(n->phases) - 1) % n->workshop.mixing.statistics_every == 0);
    n_with += s->payload->bytes[0];
    n_checked++;
}

/* If statistics are large relative to a sparse message, only every k-th delta may carry them, so
 * that they are at most a twentieth of the bytes. */
static void test_every(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++) {
        struct rig r;
        begin(&r, "topk:0.05", many ? 400 : 2);
        r.config.measured = note_with;
        n_with = n_checked = 0;
        rig_run(&r, UINT64_MAX);
        const struct node *n = sim_node(r.world, 0);
        double share = 0.05 * (double)compress_nominal(n->workshop.mixing.codec[DELTA_RUN]);
        assert_true((double)n->workshop.mixing.statistics_every
                    == ceil((1 + 4. * (many ? 400 : 2)) / share));
        assert_int_equal(n->workshop.mixing.statistics_every > 1, many);
        assert_true(n_checked >= ROUNDS - 1
                    && n_with >= (ROUNDS - 1) / n->workshop.mixing.statistics_every);
        rig_close(&r);
    }
}

/* ---- computed again in the consensus phase ---- */

enum { LATE_PEERS = 6, LATE_STATISTICS = 8 };

/* Statistic k of a model: a nonlinear function of its parameters, as in batch norm. */
static float statistic(const float *x, size_t k)
{
    return 1 + x[k] * x[k];
}

static uint64_t n_renewed; /* Number of calls of renew(). */

/* Each peer computes other statistics, because its samples differ. Their mean over all peers is the
 * statistic of the model. */
static void renew(void *self, float *x, uint64_t round, uint32_t n_batches)
{
    const struct rig_peer *p = self;
    float factor = 1 + 0.02f * ((float)p->index - (LATE_PEERS - 1) / 2.0f);
    assert_true(n_batches > 0);
    assert_int_equal(round, p->rig->config.run.rounds);
    for (size_t k = 0; k < LATE_STATISTICS; k++)
        x[p->rig->dim + k] = factor * statistic(x, k);
    n_renewed++;
}

/* Local steps that give the model its own statistics. */
static void own_statistics(void *self, float *x, uint64_t round, uint32_t n_steps,
                           struct trainer_report *report)
{
    const struct rig_peer *p = self;
    rig_steps(self, x, round, n_steps, report);
    for (size_t k = 0; k < LATE_STATISTICS; k++)
        x[p->rig->dim + k] = statistic(x, k);
    assert_int_equal(n_renewed, 0);
}

static bool renews; /* Whether the trainer can compute the running statistics. */

static int late_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = own_statistics;
    t->statistics = renews ? renew : NULL;
    return err;
}

static void late_init(struct rig *r, const char *topology, const char *compress)
{
    rig_init(r, LATE_PEERS, 200, topology, compress, 0);
    rig_with_statistics(r, LATE_STATISTICS / 2, LATE_STATISTICS / 2, 1);
    r->eta = 0.5f;
    r->config.make_trainer = late_trainer;
    r->config.run.rounds = 3;
    r->config.run.final_drift = 1e-3;
}

/* Runs the cluster, and closes it. Returns the largest relative error of a statistic of any final
 * model. */
static double late_run(struct rig *r)
{
    struct consensus drift;
    double worst = 0;
    n_renewed = 0;
    rig_run(r, UINT64_MAX);
    rig_ended_well(r, 1e-3);
    sim_drift(r->world, &drift);
    for (uint32_t i = 0; i < LATE_PEERS; i++)
        for (size_t k = 0; k < LATE_STATISTICS; k++) {
            const float *x = rig_model(r, i);
            double want = (double)statistic(x, k);
            worst = fmax(worst, fabs((double)x[r->dim + k] - want) / want);
        }
    double apart = drift.statistics.relative;
    print_message("final topology %s: %llu times computed again, statistics off by %.2g, relative "
                  "drift of the statistics %.2g\n",
                  r->config.run.final_topology, (unsigned long long)n_renewed, worst, apart);
    assert_true(apart <= 1e-3);
    rig_close(r);
    return worst;
}

/* Runs a ring with this --final-topology. Returns the result of late_run(). */
static double late_error(const char *final_topology, enum run_policy policy)
{
    struct rig r;
    late_init(&r, "ring", "qsgd:4");
    r.config.run.policy = policy;
    snprintf(r.config.run.final_topology, sizeof r.config.run.final_topology, "%s", final_topology);
    if (strcmp(final_topology, RUN_SAME) != 0)
        snprintf(r.config.run.final_compress, sizeof r.config.run.final_compress, "none");
    return late_run(&r);
}

/* After few rounds the models differ, and the mean of their statistics is not the statistics of the
 * mean model. The consensus phase computes the statistics again. If it does not, they are wrong. */
static void test_late_merge(void **state)
{
    static const char *const final_topologies[] = {"same", "base:1"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        renews = true;
        assert_true(late_error(final_topologies[i], RUN_SYNC) <= 0.02);
        assert_true(n_renewed >= LATE_PEERS);
        renews = false;
        assert_true(late_error(final_topologies[i], RUN_SYNC) >= 0.1);
        assert_int_equal(n_renewed, 0);
    }
    renews = true;
    assert_true(late_error("same", RUN_ASYNC) <= 0.02);
    assert_true(n_renewed >= LATE_PEERS);
}

/* If the models do not move in the consensus phase, their statistics are not computed again. */
static void test_equal_models(void **state)
{
    struct rig r;
    (void)state;
    renews = true;
    late_init(&r, "ring", "qsgd:4");
    for (uint32_t i = 1; i < LATE_PEERS; i++)
        memcpy(r.c + i * r.dim, r.c, r.dim * sizeof *r.c);
    (void)late_run(&r);
    assert_int_equal(n_renewed, 0);
}

/* With a round protocol no exchange would average new statistics, so the statistics stay the mean
 * of those of the last round, and the models stay equal. */
static void test_round_protocols(void **state)
{
    static const char *const mixers[] = {"allreduce", "sma", "ps"};
    (void)state;
    renews = true;
    for (size_t i = 0; i < 3; i++) {
        struct rig r;
        late_init(&r, "complete", "none");
        memcpy(r.config.run.final_compress, r.config.run.compress,
               sizeof r.config.run.final_compress);
        while (strcmp(mixer_all[r.config.run.mixer]->name, mixers[i]) != 0)
            r.config.run.mixer++;
        (void)late_run(&r);
        assert_int_equal(n_renewed, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_sessions), cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_every),        cmocka_unit_test(test_late_merge),
        cmocka_unit_test(test_equal_models), cmocka_unit_test(test_round_protocols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
