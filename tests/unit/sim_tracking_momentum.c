/* tests/unit/sim_tracking_momentum.c -- Momentum Tracking in simulated nodes. Models and
 * corrections must follow the textbook in every round. The sum of the corrections must stay 0 with
 * any codec, lost sessions, a rollback, a restart, and a peer that dies and returns. Peers with
 * different data must reach the minimum of their mean loss at a constant learning rate. */
#include "nn/math/state.h"
#include "nn/train/tracking_momentum.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 100, ROUNDS = 60, LONG = 900, SECOND = 1000 * 1000 };

static const double mu = 0.9;

/* ---- quadratic losses and a trainer with that momentum ---- */

static float momentum[PEERS][DIM];
static struct tracking_momentum tracking[PEERS];
/* Correction and model of each peer in each round, before the local steps. */
static float was_c[LONG][PEERS][DIM], was_x[LONG][PEERS][DIM];
static float last_x[PEERS][DIM]; /* Model of each peer before the latest local steps. */
static bool seen[LONG][PEERS];   /* True: the peer trained the round. */
static double curvature[PEERS];
/* corrects: momentum tracking is used. false: local momentum is used. */
static bool nesterov, corrects;
static uint64_t bad_round; /* Round in which training of peer 3 diverges. UINT64_MAX: none. */
static uint32_t n_back;    /* Number of rollbacks. */

static void local_steps(const struct rig_peer *p, const struct optimiser_step *step, float *grad,
                        uint32_t n_steps)
{
    const float *c = p->rig->c + p->index * p->rig->dim;
    const struct optimiser o = {.momentum = mu, .nesterov = nesterov, .use = momentum_tracking.use};
    for (uint32_t s = 0; s < n_steps; s++) {
        for (size_t k = 0; k < DIM; k++)
            grad[k] = (float)curvature[p->index] * (step->x[k] - c[k]);
        optimiser_step(&o, step);
    }
}

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    struct tracking_momentum *t = &tracking[p->index];
    struct segment all = {.n = DIM, .trained = true};
    float grad[DIM];
    struct optimiser_step step = {.segments = &all,
                                  .n_segments = 1,
                                  .x = x,
                                  .grad = grad,
                                  .m = momentum[p->index],
                                  .lr = (double)p->rig->eta};
    if (corrects)
        tracking_momentum_begin(t, &step);
    if (round < LONG) {
        memcpy(was_c[round][p->index], t->correction, sizeof was_c[0][0]);
        memcpy(was_x[round][p->index], x, sizeof was_x[0][0]);
        seen[round][p->index] = true;
    }
    memcpy(last_x[p->index], x, sizeof last_x[0]);
    local_steps(p, &step, grad, n_steps);
    *report = (struct trainer_report){.n_samples = 1};
    if (round == bad_round && p->index == 3)
        for (size_t k = 0; k < DIM; k++)
            x[k] = momentum[3][k] = t->direction[k] = (float)NAN;
    if (corrects)
        tracking_momentum_end(t, n_steps);
}

static void trainer_state(void *self, struct state *s)
{
    const struct rig_peer *p = self;
    state_floats(s, momentum[p->index], DIM, "optimizer.momentum");
    tracking_momentum_state(&tracking[p->index], s);
}

static void rolled_back(void *self)
{
    const struct rig_peer *p = self;
    tracking_momentum_rolled_back(&tracking[p->index]);
    n_back++;
}

/* A trainer of a new process begins with vectors of zeros, and uses the memory that the former
 * process allocated. */
static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    struct tracking_momentum *own = &tracking[peer];
    if (own->n == 0)
        assert_int_equal(tracking_momentum_init(own, DIM), 0);
    memset(momentum[peer], 0, sizeof momentum[peer]);
    memset(own->companion, 0, sizeof momentum[peer]);
    memset(own->direction, 0, sizeof momentum[peer]);
    memset(own->correction, 0, sizeof momentum[peer]);
    t->steps = steps;
    t->state = trainer_state;
    if (corrects) {
        t->companion[0] = own->companion;
        t->conserved = true;
        t->rolled_back = rolled_back;
    }
    return err;
}

static void rig_tracking(struct rig *r, const char *topology, const char *codec, double gamma,
                         uint32_t n_steps)
{
    rig_init(r, PEERS, DIM, topology, codec, gamma);
    r->config.run.rounds = ROUNDS;
    r->config.run.local_steps = n_steps;
    r->config.run.final_drift = 1e-3;
    r->config.make_trainer = make_trainer;
    r->eta = 0.02f;
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < PEERS; i++)
        curvature[i] = 1;
    nesterov = false;
    corrects = true;
    bad_round = UINT64_MAX;
    n_back = 0;
}

/* Returns the larger of two numbers, or infinity if `b` is not finite. */
static double most(double a, double b)
{
    return !isfinite(b) ? (double)INFINITY : b > a ? b : a;
}

/* Returns the largest difference between a[i][k] and b[i][k]. */
static double apart(float a[PEERS][DIM], double b[PEERS][DIM])
{
    double worst = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            worst = most(worst, fabs((double)a[i][k] - b[i][k]));
    return worst;
}

static uint32_t count(uint64_t round)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        n += seen[round][i];
    return n;
}

/* c is the correction vector of a peer. Returns the largest absolute value of a float in the mean
 * of c over the peers that trained the round. Sets *length to the largest absolute value in c of
 * any of these peers. */
static double mean_correction(uint64_t round, double *length)
{
    double worst = 0;
    *length = 0;
    for (size_t k = 0; k < DIM; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            if (seen[round][i]) {
                mean += (double)was_c[round][i][k] / count(round);
                *length = most(*length, fabs((double)was_c[round][i][k]));
            }
        worst = most(worst, fabs(mean));
    }
    return worst;
}

/* ---- each peer against the textbook, with exact exchanges ---- */

static double x[PEERS][DIM], u[PEERS][DIM], c[PEERS][DIM], mean_d[PEERS][DIM];

/* Makes the local steps of one round in double precision, by the formulas of momentum tracking. */
static void textbook_steps(const struct rig *r, uint32_t n_steps)
{
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++) {
            mean_d[i][k] = 0;
            for (uint32_t s = 0; s < n_steps; s++) {
                double g = curvature[i] * (x[i][k] - (double)r->c[i * DIM + k]);
                u[i][k] = mu * u[i][k] + g;
                double d = nesterov ? g + mu * u[i][k] : u[i][k];
                x[i][k] -= (double)r->eta * (d - c[i][k]);
                mean_d[i][k] += d / n_steps;
            }
        }
}

/* Mixes models and corrections: x_i = sum over j of W_ij x_j, and c_i = sum over j of W_ij (c_j -
 * mean_d_j) + mean_d_i, where mean_d is the mean update direction of a round. */
static void textbook_exchange(const struct graph *g)
{
    static double x_made[PEERS][DIM], c_made[PEERS][DIM];
    memcpy(x_made, x, sizeof x);
    memcpy(c_made, c, sizeof c);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
            for (size_t k = 0; k < DIM; k++) {
                uint32_t j = g->neighbour[e];
                double w = topology_weight(graph_degree(g, i), graph_degree(g, j));
                x[i][k] += w * (x_made[j][k] - x_made[i][k]);
                c[i][k] += w * ((c_made[j][k] - mean_d[j][k]) - (c_made[i][k] - mean_d[i][k]));
            }
}

static void as_textbook(const char *topology, uint32_t n_steps, bool with_nesterov)
{
    struct rig r;
    struct graph g;
    double length = 0;
    rig_tracking(&r, topology, "none", 1, n_steps);
    nesterov = with_nesterov;
    for (uint32_t i = 0; i < PEERS; i++)
        curvature[i] = 0.5 + 0.25 * i;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(graph_build(&g, topology, PEERS, 1), 0);
    memset(x, 0, sizeof x);
    memset(u, 0, sizeof u);
    memset(c, 0, sizeof c);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        assert_int_equal(count(t), PEERS);
        double off = most(apart(was_x[t], x), apart(was_c[t], c));
        if (!(off <= 5e-5))
            fail_msg("%s, %u steps, round %d: off by %g", topology, n_steps, (int)t, off);
        textbook_steps(&r, n_steps);
        textbook_exchange(&g);
        for (size_t k = 0; k < DIM; k++)
            length = most(length, fabs(c[0][k]));
    }
    assert_true(length > 1);
    graph_close(&g);
    rig_close(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    as_textbook("complete", 1, false);
    as_textbook("ring", 1, false);
    as_textbook("ring", 5, false);
    as_textbook("ring", 2, true);
    as_textbook("torus", 3, false);
}

/* ---- the mean, with any codec and with lost sessions ---- */

/* Checks that the mean of the corrections is 0, and that the mean of the models equals the model of
 * a single peer with plain momentum. The optimum of that peer is the mean of all optima. The two
 * are equal because all losses have the same curvature. */
static void mean_follows(const char *topology, const char *codec, double cut_rate)
{
    struct rig r;
    double worst_c = 0, worst_x = 0, far = 0, length;
    rig_tracking(&r, topology, codec, 0, 1);
    r.config.cut_rate = cut_rate;
    r.config.step_us = cut_rate > 0 ? 100 * 1000 : 1000;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        assert_int_equal(count(t), PEERS);
        worst_c = most(worst_c, mean_correction(t, &length));
        far = most(far, length);
    }
    for (size_t k = 0; k < DIM; k++) {
        double one_x = 0, one_u = 0, optimum = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            optimum += (double)r.c[i * DIM + k] / PEERS;
        for (uint64_t t = 0; t < ROUNDS; t++) {
            double mean = 0;
            for (uint32_t i = 0; i < PEERS; i++)
                mean += (double)was_x[t][i][k] / PEERS;
            worst_x = most(worst_x, fabs(mean - one_x));
            one_u = mu * one_u + one_x - optimum;
            one_x -= (double)r.eta * one_u;
        }
    }
    print_message("%s, %s, cut rate %.2f: the mean of c is %.2g of %.2g, of x off by %.2g\n",
                  topology, codec, cut_rate, worst_c, far, worst_x);
    if (!(worst_c <= 1e-5 && worst_x <= 3e-5 && far > 1))
        fail_msg("%s, %s, cut rate %g: the mean of c is %g of %g, of x off by %g", topology, codec,
                 cut_rate, worst_c, far, worst_x);
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

/* ---- different data at each peer, constant learning rate ---- */

/* Returns the largest distance of a float of any peer's model from the minimum of the mean loss,
 * before the local steps of the last round. */
static double distance_of_minimum(const char *topology, const char *codec, uint64_t rounds,
                                  bool tracked)
{
    struct rig r;
    double worst = 0;
    rig_tracking(&r, topology, codec, 0, 1);
    corrects = tracked;
    r.config.run.rounds = rounds;
    for (uint32_t i = 0; i < PEERS; i++)
        curvature[i] = 0.5 + 0.25 * i;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (size_t k = 0; k < DIM; k++) {
        double sum = 0, weight = 0;
        for (uint32_t i = 0; i < PEERS; i++) {
            sum += curvature[i] * (double)r.c[i * DIM + k];
            weight += curvature[i];
        }
        for (uint32_t i = 0; i < PEERS; i++)
            worst = most(worst, fabs((double)last_x[i][k] - sum / weight));
    }
    print_message("%s, %s: the worst model is off by %.2g with %s momentum\n", topology, codec,
                  worst, tracked ? "tracking" : "local");
    rig_close(&r);
    return worst;
}

static void test_minimum(void **state)
{
    static const struct
    {
        const char *topology, *codec;
        uint64_t rounds;
    } row[] = {{"ring", "none", 600},
               {"ring", "qsgd:4", 2000},
               {"ring", "topk:0.6", 600},
               {"base:1", "qsgd:4", 600}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double local = distance_of_minimum(row[i].topology, row[i].codec, row[i].rounds, false);
        double own = distance_of_minimum(row[i].topology, row[i].codec, row[i].rounds, true);
        if (!(own <= 1e-3 && local >= 0.1))
            fail_msg("%s, %s: off by %g with tracking, %g with local momentum", row[i].topology,
                     row[i].codec, own, local);
    }
}

/* ---- faults ---- */

/* Asserts that the mean of c over the peers of a round is 0 except for rounding errors, and that n
 * peers trained it. */
static void is_conserved(const char *what, uint64_t round, uint32_t n)
{
    double length, mean = mean_correction(round, &length);
    print_message("%s: the mean of c over %u peers is %.2g of %.2g\n", what, count(round), mean,
                  length);
    if (!(count(round) == n && mean <= 1e-6 * length && length > 1))
        fail_msg("%s, round %d: the mean of c over %u of %u peers is %g of %g", what, (int)round,
                 count(round), n, mean, length);
}

/* The training of one peer diverges once. The last good model, to which the peer returns, is many
 * rounds old. */
static void test_rollback(void **state)
{
    struct rig r;
    (void)state;
    rig_tracking(&r, "ring", "qsgd:4", 0, 1);
    bad_round = 30;
    r.quiet = true;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(n_back, 1);
    for (uint64_t t = 29; t < ROUNDS; t++)
        is_conserved("rollback", t, PEERS);
    rig_close(&r);
}

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

static void patient(void *self, uint32_t peer, struct node_config *config)
{
    (void)self, (void)peer;
    config->patience_us = 60 * (int64_t)SECOND;
}

static void rig_faulty(struct rig *r)
{
    rig_tracking(r, "ring", "qsgd:4", 0, 1);
    r->config.step_us = 50 * 1000;
    r->config.run.rounds = LONG;
    r->config.run.quorum = 0.5;
    r->config.configure = patient;
    rig_open(r);
}

/* A peer dies. Each edge stores its flow, the sum of the changes that its exchanges made to the
 * correction. The neighbours of the dead peer subtract the flows of their edges to it, so that the
 * sum of the corrections is 0 again. */
static void test_death(void **state)
{
    struct rig r;
    (void)state;
    rig_faulty(&r);
    run_until(&r, 8 * SECOND);
    sim_kill(r.world, 2);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    is_conserved("death", LONG - 1, PEERS - 1);
    rig_close(&r);
}

/* Deltas are lost, and a peer dies and returns without its momentum and correction vectors. */
static void test_death_and_return(void **state)
{
    struct rig r;
    (void)state;
    rig_faulty(&r);
    r.config.cut_rate = 0.02;
    run_until(&r, 8 * SECOND);
    sim_kill(r.world, 2);
    run_until(&r, 20 * SECOND);
    assert_int_equal(sim_restart(r.world, 2), 0);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    is_conserved("return", LONG - 1, PEERS);
    double error = rig_mean_error(&r);
    if (!(error <= 0.01))
        fail_msg("the mean is off by %g", error);
    rig_close(&r);
}

static void rig_stored(struct rig *r)
{
    rig_faulty(r);
    sim_close(r->world);
    r->world = NULL;
    r->config.checkpoint_us = 2 * SECOND;
    r->config.disk_us = SECOND / 10;
    rig_open(r);
}

/* All processes are killed and restarted from their checkpoints: the models get the same bits as
 * without the kill. */
static void test_resume(void **state)
{
    static float whole[PEERS][DIM];
    struct rig r;
    (void)state;
    for (int killed = 0; killed < 2; killed++) {
        rig_stored(&r);
        run_until(&r, 9 * SECOND);
        for (uint32_t i = 0; i < PEERS && killed; i++) {
            sim_kill(r.world, i);
            assert_int_equal(sim_restart(r.world, i), 0);
        }
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        for (uint32_t i = 0; i < PEERS; i++)
            if (!killed)
                memcpy(whole[i], rig_model(&r, i), sizeof whole[i]);
            else
                assert_memory_equal(whole[i], rig_model(&r, i), sizeof whole[i]);
        rig_close(&r);
    }
}

/* All processes are restarted from checkpoints, and later one peer dies. Each edge stores its flow,
 * the sum of the changes that its exchanges made to the correction. The neighbours of the dead peer
 * must subtract the flows of their edges, which their checkpoints contain. */
static void test_death_after_resume(void **state)
{
    struct rig r;
    (void)state;
    rig_stored(&r);
    run_until(&r, 9 * SECOND);
    for (uint32_t i = 0; i < PEERS; i++) {
        sim_kill(r.world, i);
        assert_int_equal(sim_restart(r.world, i), 0);
    }
    run_until(&r, 15 * SECOND);
    sim_kill(r.world, 2);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    is_conserved("death after a restart", LONG - 1, PEERS - 1);
    rig_close(&r);
}

/* One process is restarted from a checkpoint that is older than the state of its neighbours, so its
 * edges are reset. Later the process dies. An edge's flow is the sum of its changes to the
 * correction. The neighbours must subtract only the flow since the reset. */
static void test_one_resumes(void **state)
{
    struct rig r;
    (void)state;
    rig_stored(&r);
    run_until(&r, 9 * SECOND);
    sim_kill(r.world, 2);
    run_until(&r, 9 * SECOND + SECOND / 2);
    assert_int_equal(sim_restart(r.world, 2), 0);
    run_until(&r, 25 * SECOND);
    is_conserved("one resumes", rig_progress(&r, 0).round - 2, PEERS);
    sim_kill(r.world, 2);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    is_conserved("one resumes and dies", LONG - 1, PEERS - 1);
    rig_close(&r);
}

static int free_vectors(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PEERS; i++)
        tracking_momentum_close(&tracking[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook),   cmocka_unit_test(test_mean),
        cmocka_unit_test(test_minimum),    cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_death),      cmocka_unit_test(test_death_and_return),
        cmocka_unit_test(test_resume),     cmocka_unit_test(test_death_after_resume),
        cmocka_unit_test(test_one_resumes)};
    return cmocka_run_group_tests(tests, NULL, free_vectors);
}
