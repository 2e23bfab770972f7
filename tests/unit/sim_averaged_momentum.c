/* tests/unit/sim_averaged_momentum.c -- the momentum kind `averaged` in simulated nodes. Momentum
 * and models must follow the textbook in every round, and no codec or lost session may change the
 * mean momentum. Also tested: a peer that dies and returns. */
#include "nn/train/averaged_momentum.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 100, ROUNDS = 60 };

static const double mu = 0.9;

/* ---- a bowl with that momentum ---- */

static float momentum[PEERS][DIM]; /* Momentum vector of each peer. */
/* Momentum and model of each peer before the local steps of each round. */
static float was_m[ROUNDS][PEERS][DIM], was_x[ROUNDS][PEERS][DIM];
static uint32_t n_seen[ROUNDS]; /* Number of peers that trained the round. */

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    const struct rig *r = p->rig;
    const float *c = r->c + p->index * r->dim;
    const struct optimiser o = {.momentum = mu, .use = momentum_averaged.use};
    struct segment all = {.n = DIM, .trained = true};
    float grad[DIM];
    struct optimiser_step step = {&all,           1,    x,   grad, momentum[p->index], NULL, 0,
                                  (double)r->eta, NULL, NULL};
    if (round < ROUNDS) {
        memcpy(was_m[round][p->index], momentum[p->index], sizeof was_m[0][0]);
        memcpy(was_x[round][p->index], x, sizeof was_x[0][0]);
        n_seen[round]++;
    }
    for (uint32_t s = 0; s < n_steps; s++) {
        for (size_t k = 0; k < DIM; k++)
            grad[k] = x[k] - c[k];
        optimiser_step(&o, &step);
    }
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    memset(momentum[peer], 0, sizeof momentum[peer]);
    t->steps = steps;
    t->companion[0] = momentum[peer];
    return err;
}

static void rig_averaged(struct rig *r, const char *topology, const char *codec, double gamma,
                         uint32_t n_steps)
{
    rig_init(r, PEERS, DIM, topology, codec, gamma);
    r->config.run.rounds = ROUNDS;
    r->config.run.local_steps = n_steps;
    r->config.run.final_drift = 1e-3;
    r->config.make_trainer = make_trainer;
    r->eta = 0.02f;
    memset(n_seen, 0, sizeof n_seen);
}

/* Returns the largest difference between a[i][k] and b[i][k], or infinity if a value is not
 * finite. */
static double apart(float a[PEERS][DIM], double b[PEERS][DIM])
{
    double worst = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++) {
            double d = fabs((double)a[i][k] - b[i][k]);
            worst = d <= worst ? worst : isfinite(d) ? d : (double)INFINITY;
        }
    return worst;
}

/* ---- each peer against the textbook, with exact exchanges ---- */

static void as_textbook(const char *topology, uint32_t n_steps)
{
    static double x[PEERS][DIM], m[PEERS][DIM], x_made[PEERS][DIM], m_made[PEERS][DIM];
    struct rig r;
    struct graph g;
    rig_averaged(&r, topology, "none", 1, n_steps);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(graph_build(&g, topology, PEERS, 1), 0);
    memset(x, 0, sizeof x);
    memset(m, 0, sizeof m);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        assert_int_equal(n_seen[t], PEERS);
        double off = fmax(apart(was_x[t], x), apart(was_m[t], m));
        if (!(off <= 2e-5))
            fail_msg("%s, %u steps, round %d: off by %g", topology, n_steps, (int)t, off);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++)
                for (uint32_t s = 0; s < n_steps; s++) {
                    m[i][k] = mu * m[i][k] + x[i][k] - (double)r.c[i * DIM + k];
                    x[i][k] -= (double)r.eta * m[i][k];
                }
        memcpy(x_made, x, sizeof x);
        memcpy(m_made, m, sizeof m);
        for (uint32_t i = 0; i < PEERS; i++)
            for (uint32_t e = g.first[i]; e < g.first[i + 1]; e++)
                for (size_t k = 0; k < DIM; k++) {
                    uint32_t j = g.neighbour[e];
                    double w = topology_weight(graph_degree(&g, i), graph_degree(&g, j));
                    x[i][k] += w * (x_made[j][k] - x_made[i][k]);
                    m[i][k] += w * (m_made[j][k] - m_made[i][k]);
                }
    }
    graph_close(&g);
    rig_close(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    as_textbook("ring", 1);
    as_textbook("ring", 5);
    as_textbook("torus", 3);
    as_textbook("complete", 1);
}

/* With exact averages over all peers, all peers have the same momentum after each round. */
static void equal_on_the_complete_graph(void **state)
{
    struct rig r;
    double worst = 0, length = 0;
    (void)state;
    rig_averaged(&r, "complete", "none", 1, 1);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint64_t t = 1; t < ROUNDS; t++)
        for (uint32_t i = 1; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                double d = fabs((double)was_m[t][i][k] - (double)was_m[t][0][k]);
                worst = d <= worst ? worst : d;
                length = fmax(length, fabs((double)was_m[t][0][k]));
            }
    print_message("momenta are apart by %.2g of %.2g\n", worst, length);
    assert_true(worst <= 1e-6 * length && length > 1);
    rig_close(&r);
}

/* ---- the mean, with any codec and with lost sessions ---- */

/* All peers have the same curvature, so the mean gradient depends on the mean of the models only.
 * The mean model and the mean momentum must then equal those of a single peer whose optimum is the
 * mean of the optima. */
static void mean_follows(const char *topology, const char *codec, double cut_rate)
{
    struct rig r;
    double worst = 0, far = 0;
    rig_averaged(&r, topology, codec, 0, 1);
    r.config.cut_rate = cut_rate;
    r.config.step_us = cut_rate > 0 ? 100 * 1000 : 1000;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (size_t k = 0; k < DIM; k++) {
        double x = 0, m = 0, c = 0, x_end = 0, m_end = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            c += (double)r.c[i * DIM + k] / PEERS;
        for (uint64_t t = 0; t < ROUNDS; t++) {
            double mean_x = 0, mean_m = 0;
            assert_int_equal(n_seen[t], PEERS);
            for (uint32_t i = 0; i < PEERS; i++) {
                mean_x += (double)was_x[t][i][k] / PEERS;
                mean_m += (double)was_m[t][i][k] / PEERS;
            }
            double off = fmax(fabs(mean_x - x), fabs(mean_m - m));
            worst = off <= worst ? worst : isfinite(off) ? off : (double)INFINITY;
            m = mu * m + x - c;
            x -= (double)r.eta * m;
            far = fmax(far, fabs(m));
        }
        /* The consensus phase must change neither the mean of the models nor the mean of the
         * momenta. */
        for (uint32_t i = 0; i < PEERS; i++) {
            x_end += (double)rig_model(&r, i)[k] / PEERS;
            m_end += (double)momentum[i][k] / PEERS;
        }
        double off = fmax(fabs(x_end - x), fabs(m_end - m));
        worst = off <= worst ? worst : isfinite(off) ? off : (double)INFINITY;
    }
    print_message("%s, %s, cut rate %.2f: the means are off by %.2g of %.2g\n", topology, codec,
                  cut_rate, worst, far);
    if (!(worst <= 3e-5 && far > 1))
        fail_msg("%s, %s, cut rate %g: the means are off by %g of %g", topology, codec, cut_rate,
                 worst, far);
    rig_close(&r);
}

static void test_mean(void **state)
{
    static const char *const codec[] = {"none", "fp16",      "qsgd:4", "topk:0.1",
                                        "sign", "lowrank:2", RUN_AUTO};
    (void)state;
    for (size_t i = 0; i < sizeof codec / sizeof codec[0]; i++)
        mean_follows("ring", codec[i], 0);
    mean_follows("star", "qsgd:4", 0);
    mean_follows("base:1", "qsgd:4", 0);
    mean_follows("ring", "topk:0.1", 1 - sqrt(0.7));
    mean_follows("complete", "sign", 1 - sqrt(0.7));
    mean_follows("base:1", "qsgd:4", 1 - sqrt(0.7));
}

/* ---- faults ---- */

/* Deltas are lost, and a peer dies and returns without its momentum. All must agree in the end,
 * near the minimum of the mean of the losses. */
static void test_death_and_return(void **state)
{
    struct rig r;
    (void)state;
    rig_averaged(&r, "ring", "qsgd:4", 0, 1);
    r.config.step_us = 50 * 1000;
    r.config.run.rounds = 900;
    r.config.cut_rate = 0.02;
    rig_open(&r);
    while (sim_now_us(r.world) < 8 * 1000 * 1000 && sim_step(r.world))
        ;
    sim_kill(r.world, 2);
    while (sim_now_us(r.world) < 20 * 1000 * 1000 && sim_step(r.world))
        ;
    assert_int_equal(sim_restart(r.world, 2), 0);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    double error = rig_mean_error(&r);
    if (!(error <= 0.05))
        fail_msg("the mean is off by %g", error);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook), cmocka_unit_test(equal_on_the_complete_graph),
        cmocka_unit_test(test_mean), cmocka_unit_test(test_death_and_return)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
