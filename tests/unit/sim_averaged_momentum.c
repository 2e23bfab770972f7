/* tests/unit/sim_averaged_momentum.c -- the momentum kind `averaged` in simulated nodes, with SGD and
 * Adam. Moments and models must follow the textbook in every round, and no codec or lost session may
 * change the mean moments. Also tested: a peer that dies and returns, and hostile moments. */
#include "nn/train/averaged_momentum.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 100, ROUNDS = 60 };

static const double mu = 0.9, beta2 = 0.999;

/* ---- a bowl with that momentum ---- */

static bool adam; /* True: the optimiser is Adam. False: SGD. */
/* First moment of each peer, and square root of the second moment of Adam, as peers exchange
 * them. */
static float momentum[PEERS][DIM], root[PEERS][DIM];
static uint64_t n_steps_of[PEERS]; /* Number of local steps of each peer so far. */
/* Moments and model of each peer before the local steps of each round. */
static float was_m[ROUNDS][PEERS][DIM], was_r[ROUNDS][PEERS][DIM], was_x[ROUNDS][PEERS][DIM];
/* Moments of each peer after the local steps of each round, before they are mixed. */
static float made_m[ROUNDS][PEERS][DIM], made_r[ROUNDS][PEERS][DIM];
static uint32_t n_seen[ROUNDS]; /* Number of peers that trained the round. */
/* Peer that writes hostile values to its moments in each round. UINT32_MAX: none. */
static uint32_t hostile = UINT32_MAX;
/* Longest local step of a coordinate of any other peer. */
static double longest;

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    const struct rig *r = p->rig;
    const float *c = r->c + p->index * r->dim;
    const struct optimiser o = {.kind = adam ? OPTIMISER_ADAM : OPTIMISER_SGD,
                                .momentum = mu,
                                .beta2 = beta2,
                                .use = momentum_averaged.use};
    struct segment all = {.n = DIM, .trained = true};
    float grad[DIM], before[DIM];
    float *m = momentum[p->index], *v = adam ? root[p->index] : NULL;
    struct optimiser_step step = {&all, 1, x, grad, m, v, 0, (double)r->eta, NULL, NULL};
    if (round < ROUNDS) {
        memcpy(was_m[round][p->index], m, sizeof was_m[0][0]);
        memcpy(was_r[round][p->index], root[p->index], sizeof was_r[0][0]);
        memcpy(was_x[round][p->index], x, sizeof was_x[0][0]);
        n_seen[round]++;
    }
    if (adam)
        averaged_momentum_admit(&o, m, v, DIM);
    for (uint32_t s = 0; s < n_steps; s++) {
        memcpy(before, x, sizeof before);
        for (size_t k = 0; k < DIM; k++)
            grad[k] = x[k] - c[k];
        step.t = ++n_steps_of[p->index];
        optimiser_step(&o, &step);
        for (size_t k = 0; k < DIM && p->index != hostile; k++)
            longest = fmax(longest, isfinite(x[k]) ? fabs((double)x[k] - (double)before[k])
                                                   : (double)INFINITY);
    }
    for (size_t k = 0; k < DIM && p->index == hostile; k++) {
        static const float bad[] = {-1, 0, -1e18f, 1e18f, 1e10f, -1e10f, 1e-20f};
        m[k] = bad[(k + round) % 7];
        v[k] = bad[(k + round / 2) % 7];
    }
    if (round < ROUNDS) {
        memcpy(made_m[round][p->index], m, sizeof made_m[0][0]);
        memcpy(made_r[round][p->index], root[p->index], sizeof made_r[0][0]);
    }
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    memset(momentum[peer], 0, sizeof momentum[peer]);
    memset(root[peer], 0, sizeof root[peer]);
    n_steps_of[peer] = 0;
    t->steps = steps;
    t->companion[0] = momentum[peer];
    t->companion[1] = adam ? root[peer] : NULL;
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
    adam = false;
    longest = 0;
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

/* Mixes one vector of each peer: v_i = sum over j of W_ij v_j. */
static void textbook_exchange(const struct graph *g, double v[PEERS][DIM])
{
    static double made[PEERS][DIM];
    memcpy(made, v, sizeof made);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
            for (size_t k = 0; k < DIM; k++) {
                uint32_t j = g->neighbour[e];
                v[i][k] += topology_weight(graph_degree(g, i), graph_degree(g, j))
                           * (made[j][k] - made[i][k]);
            }
}

/* Makes step number t of Adam, with the moments m and v in the usual form. */
static void textbook_adam(double *x, double *m, double *v, double g, double lr, double t)
{
    *m = mu * *m + (1 - mu) * g;
    *v = beta2 * *v + (1 - beta2) * g * g;
    *x -= lr * (*m / (1 - pow(mu, t))) / (sqrt(*v / (1 - pow(beta2, t))) + OPTIMISER_ADAM_EPS);
}

/* Compares each peer with a loop in double precision, which mixes m / (1 - beta1^t) and
 * sqrt(v / (1 - beta2^t)). */
static void as_textbook_of_adam(const char *topology, uint32_t n_steps)
{
    static double x[PEERS][DIM], m[PEERS][DIM], v[PEERS][DIM], m_mixed[PEERS][DIM],
        r_mixed[PEERS][DIM];
    struct rig r;
    struct graph g;
    double worst = 0, t = 0;
    rig_averaged(&r, topology, "none", 1, n_steps);
    adam = true;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(graph_build(&g, topology, PEERS, 1), 0);
    memset(x, 0, sizeof x);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    memset(m_mixed, 0, sizeof m_mixed);
    memset(r_mixed, 0, sizeof r_mixed);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        assert_int_equal(n_seen[round], PEERS);
        worst = fmax(worst, apart(was_x[round], x));
        worst = fmax(worst, apart(was_m[round], m_mixed));
        worst = fmax(worst, apart(was_r[round], r_mixed));
        for (uint32_t s = 0; s < n_steps; s++) {
            t++;
            for (uint32_t i = 0; i < PEERS; i++)
                for (size_t k = 0; k < DIM; k++)
                    textbook_adam(&x[i][k], &m[i][k], &v[i][k], x[i][k] - (double)r.c[i * DIM + k],
                                  (double)r.eta, t);
        }
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                m_mixed[i][k] = m[i][k] / (1 - pow(mu, t));
                r_mixed[i][k] = sqrt(v[i][k] / (1 - pow(beta2, t)));
            }
        textbook_exchange(&g, x);
        textbook_exchange(&g, m_mixed);
        textbook_exchange(&g, r_mixed);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                m[i][k] = m_mixed[i][k] * (1 - pow(mu, t));
                v[i][k] = r_mixed[i][k] * r_mixed[i][k] * (1 - pow(beta2, t));
            }
    }
    print_message("Adam, %s, %u steps: off by %.2g\n", topology, n_steps, worst);
    if (!(worst <= 1e-6))
        fail_msg("Adam, %s, %u steps: off by %g", topology, n_steps, worst);
    graph_close(&g);
    rig_close(&r);
}

static void as_textbook(const char *topology, uint32_t n_steps)
{
    static double x[PEERS][DIM], m[PEERS][DIM];
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
        textbook_exchange(&g, x);
        textbook_exchange(&g, m);
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

static void test_textbook_of_adam(void **state)
{
    (void)state;
    as_textbook_of_adam("ring", 1);
    as_textbook_of_adam("ring", 5);
    as_textbook_of_adam("torus", 3);
    as_textbook_of_adam("complete", 1);
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

/* Returns the sum over the peers of coordinate k. */
static double sum_of(float v[PEERS][DIM], size_t k)
{
    double sum = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        sum += (double)v[i][k];
    return sum;
}

/* An exchange keeps the mean of both moments of Adam, also where the codec makes the square root of
 * the second moment negative. */
static void mean_of_adam(const char *topology, const char *codec, double cut_rate)
{
    struct rig r;
    double worst = 0;
    size_t n_negative = 0;
    rig_averaged(&r, topology, codec, 0, 1);
    adam = true;
    r.config.cut_rate = cut_rate;
    r.config.step_us = cut_rate > 0 ? 100 * 1000 : 1000;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint64_t t = 0; t + 1 < ROUNDS; t++) {
        assert_int_equal(n_seen[t], PEERS);
        for (size_t k = 0; k < DIM; k++) {
            double off = fmax(fabs(sum_of(was_m[t + 1], k) - sum_of(made_m[t], k)),
                              fabs(sum_of(was_r[t + 1], k) - sum_of(made_r[t], k)));
            worst = off <= worst ? worst : isfinite(off) ? off : (double)INFINITY;
            for (uint32_t i = 0; i < PEERS; i++)
                n_negative += was_r[t + 1][i][k] < 0;
        }
    }
    print_message("Adam, %s, %s, cut rate %.2f: a mean is off by %.2g, %zu of %d values negative\n",
                  topology, codec, cut_rate, worst / PEERS, n_negative, ROUNDS * PEERS * DIM);
    double most = averaged_momentum_bound(
        &(struct optimiser){.momentum = mu, .beta2 = beta2, .use = MOMENTUM_MIXED});
    if (!(worst <= 1e-5 && longest <= 1.001 * most * (double)r.eta))
        fail_msg("Adam, %s, %s, cut rate %g: sums are off by %g, longest step %g", topology, codec,
                 cut_rate, worst, longest);
    rig_close(&r);
}

static void test_mean_of_adam(void **state)
{
    static const char *const codec[] = {"none", "fp16",      "qsgd:4", "topk:0.1",
                                        "sign", "lowrank:2", RUN_AUTO};
    (void)state;
    for (size_t i = 0; i < sizeof codec / sizeof codec[0]; i++)
        mean_of_adam("ring", codec[i], 0);
    mean_of_adam("star", "qsgd:4", 0);
    mean_of_adam("base:1", "qsgd:4", 0);
    mean_of_adam("ring", "topk:0.1", 1 - sqrt(0.7));
    mean_of_adam("complete", "sign", 1 - sqrt(0.7));
    mean_of_adam("base:1", "qsgd:4", 1 - sqrt(0.7));
}

/* ---- faults ---- */

/* One peer sends negative, huge and tiny moments in each round. The steps of all other peers stay
 * finite and as short as steps of Adam, and their models agree in the end. */
static void test_hostile_moments(void **state)
{
    static const char *const codec[] = {"none", "topk:0.1"};
    const struct optimiser o = {.momentum = mu, .beta2 = beta2, .use = MOMENTUM_MIXED};
    (void)state;
    for (size_t i = 0; i < sizeof codec / sizeof *codec; i++) {
        struct rig r;
        rig_averaged(&r, "ring", codec[i], 0, 2);
        adam = true;
        hostile = 3;
        rig_run(&r, UINT64_MAX);
        hostile = UINT32_MAX;
        rig_ended_well(&r, 1e-3);
        print_message("%s: longest step %.3g, bound %.3g\n", codec[i], longest,
                      averaged_momentum_bound(&o) * (double)r.eta);
        assert_true(longest > 0 && longest <= 1.001 * averaged_momentum_bound(&o) * (double)r.eta);
        rig_close(&r);
    }
}

/* Deltas are lost, and a peer dies and returns without its moments. All must agree in the end, near
 * the minimum of the mean of the losses. */
static void death_and_return(bool with_adam)
{
    struct rig r;
    rig_averaged(&r, "ring", "qsgd:4", 0, 1);
    adam = with_adam;
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
    print_message("%s: the mean is off by %.2g\n", with_adam ? "Adam" : "SGD", error);
    /* The minimum of the mean loss is not a fixed point of Adam: peers scale their gradients. */
    if (!(error <= (with_adam ? 0.2 : 0.05)))
        fail_msg("%s: the mean is off by %g", with_adam ? "Adam" : "SGD", error);
    rig_close(&r);
}

static void test_death_and_return(void **state)
{
    (void)state;
    death_and_return(false);
    death_and_return(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_textbook),
                                       cmocka_unit_test(test_textbook_of_adam),
                                       cmocka_unit_test(equal_on_the_complete_graph),
                                       cmocka_unit_test(test_mean),
                                       cmocka_unit_test(test_mean_of_adam),
                                       cmocka_unit_test(test_hostile_moments),
                                       cmocka_unit_test(test_death_and_return)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
