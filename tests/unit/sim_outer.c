/* tests/unit/sim_outer.c -- the outer optimiser (--outer) in simulated nodes. The mean of the
 * models must follow DiLoCo's recursion with each codec and graph and with lost sessions. Also
 * tested: the other mixers and policies, the step size of --gamma auto, a rollback, and a peer that
 * joins late. */
#include "gossip/exchange/piece.h"
#include "gossip/mixers/mixer.h"
#include "nn/math/vec.h"
#include "peer/node/edge/pace.h"
#include "peer/node/inspect.h"
#include "peer/node/state.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 40, ROUNDS = 60, STEPS = 5, SECOND = 1000 * 1000 };

static const double lr = 0.7, mu = 0.9;

/* ---- what is recorded ---- */

static double mean[ROUNDS][DIM]; /* Mean of the models before the local steps of each round. */
/* Per peer: outer momentum, computed by its definition, and sum of the outer steps. */
static double momentum[PEERS][DIM], moved[PEERS][DIM];
static uint64_t done[PEERS];      /* Number of rounds that each peer has trained so far. */
static uint32_t n_rounds[ROUNDS]; /* Number of peers that have trained each round. */

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    const struct rig *r = p->rig;
    uint32_t i = p->index;
    float before[DIM];
    memcpy(before, x, sizeof before);
    rig_gradient_steps(p, x, round, n_steps);
    double weight = r->config.run.local_steps == 0 ? pace_weight(n_steps, RUN_STEPS_AUTO) : 1;
    for (size_t k = 0; k < DIM; k++) {
        double d = weight * ((double)x[k] - (double)before[k]);
        mean[round][k] += (double)before[k] / r->config.n_peers;
        momentum[i][k] = mu * momentum[i][k] + d;
        moved[i][k] += lr * (d + mu * momentum[i][k]);
    }
    n_rounds[round]++;
    done[i]++;
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = steps;
    return err;
}

static void rig_outer(struct rig *r, uint32_t n, const char *topology, const char *compress)
{
    rig_init(r, n, DIM, topology, compress, 0);
    snprintf(r->config.run.outer, sizeof r->config.run.outer, "nesterov:%g:%g", lr, mu);
    r->config.run.rounds = ROUNDS;
    r->config.run.local_steps = STEPS;
    r->config.run.final_drift = 1e-3;
    r->config.make_trainer = make_trainer;
    r->eta = 0.02f;
    memset(mean, 0, sizeof mean);
    memset(momentum, 0, sizeof momentum);
    memset(moved, 0, sizeof moved);
    memset(done, 0, sizeof done);
    memset(n_rounds, 0, sizeof n_rounds);
}

/* ---- the mean follows the closed recursion ---- */

/* Checks that the mean x of the models follows DiLoCo's recursion. All losses have the same
 * curvature, so the mean local update D depends on x only: D = -share (x - c). Here c is the mean
 * of the optima, and `share` is the part of the way to c that the local steps of a round cover. */
static void follows_diloco(const struct rig *r, const char *what)
{
    double share = 1 - pow(1 - (double)r->eta, STEPS), worst = 0, far = 0;
    for (size_t k = 0; k < DIM; k++) {
        double x = 0, u = 0, c = 0;
        for (uint32_t i = 0; i < r->config.n_peers; i++)
            c += (double)r->c[i * DIM + k] / r->config.n_peers;
        for (uint64_t t = 0; t < ROUNDS; t++) {
            worst = fmax(worst, fabs(mean[t][k] - x));
            worst = isfinite(mean[t][k]) ? worst : (double)INFINITY;
            far = fmax(far, fabs(x));
            double d = -share * (x - c);
            u = mu * u + d;
            x += lr * (d + mu * u);
        }
    }
    for (uint64_t t = 0; t < ROUNDS; t++)
        assert_int_equal(n_rounds[t], r->config.n_peers);
    print_message("%s: the mean is off by %.2g of %.2g\n", what, worst, far);
    if (!(worst <= 1e-5 && far > 0.1))
        fail_msg("%s: the mean is off by %g, and went %g far", what, worst, far);
}

static void one_run(uint32_t n, const char *topology, const char *compress, uint32_t overlap,
                    double cut_rate)
{
    struct rig r;
    char what[80];
    uint64_t exchanges = 0, whole = 0;
    rig_outer(&r, n, topology, compress);
    r.config.run.overlap = overlap;
    r.config.cut_rate = cut_rate;
    r.config.step_us = cut_rate > 0 ? 100 * 1000 : 1000;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint32_t i = 0; i < n; i++) {
        struct node_progress progress = rig_progress(&r, i);
        exchanges += progress.exchanges;
        uint64_t degree = strcmp(topology, "complete") == 0 ? n - 1 : 2;
        whole += degree * (ROUNDS + progress.settle_rounds);
    }
    snprintf(what, sizeof what, "%u peers, %s, %s, --overlap %u, cut rate %.2f", n, topology,
             compress, overlap, cut_rate);
    if (cut_rate > 0)
        print_message("%llu exchanges of %llu\n", (unsigned long long)exchanges,
                      (unsigned long long)whole);
    assert_true(cut_rate == 0 || exchanges < 0.95 * (double)whole);
    follows_diloco(&r, what);
    rig_close(&r);
}

/* A single peer must equal torch.optim.SGD(nesterov=True) on the pseudo-gradient
 * (nn_outer_optimiser.c compares the optimiser with PyTorch). */
static void the_mean_follows_diloco(void **state)
{
    static const char *const codec[] = {"none", "qsgd:4", "topk:0.1", "sign", RUN_AUTO};
    (void)state;
    one_run(1, "ring", "none", 0, 0);
    for (size_t i = 0; i < sizeof codec / sizeof codec[0]; i++)
        for (uint32_t overlap = 0; overlap < 2; overlap++)
            one_run(PEERS, "ring", codec[i], overlap, 0);
    one_run(PEERS, "torus", "topk:0.1", 0, 0);
    one_run(PEERS, "star", "qsgd:4", 0, 0);
    one_run(PEERS, "base:1", "qsgd:4", 0, 0);
}

/* Deltas are lost with their sessions. Neither end then makes the exchange, so the mean of the
 * models must not change. */
static void lost_sessions_keep_the_mean(void **state)
{
    (void)state;
    one_run(PEERS, "ring", "topk:0.1", 0, 1 - sqrt(0.7));
    one_run(PEERS, "ring", "qsgd:4", 1, 1 - sqrt(0.7));
    one_run(PEERS, "complete", "sign", 0, 1 - sqrt(0.7));
}

static uint32_t mixer_at(const char *name)
{
    uint32_t i = 0;
    while (mixer_all[i] != NULL && strcmp(mixer_all[i]->name, name) != 0)
        i++;
    assert_non_null(mixer_all[i]);
    return i;
}

static void mixer_run(const char *mixer, const char *topology, const char *compress)
{
    struct rig r;
    rig_outer(&r, PEERS, topology, compress);
    r.config.run.mixer = mixer_at(mixer);
    if (r.config.run.mixer != 0 && strcmp(mixer, "average") != 0)
        r.config.run.gamma = 1, r.config.run.gamma_auto = false;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    follows_diloco(&r, mixer);
    rig_close(&r);
}

/* With every mixer that keeps the mean of the models, the mean must follow DiLoCo. With allreduce
 * all models are equal after each round, as in DiLoCo itself. */
static void other_mixers_follow_diloco(void **state)
{
    (void)state;
    mixer_run("allreduce", "complete", "none");
    mixer_run("dpsgd", "ring", "none");
    mixer_run("gossip", "rotation:4", "none");
    mixer_run("average", "complete", "none");
    mixer_run("ps", "complete", "none");
}

/* ---- differences between models ---- */

/* Runs the optimiser nesterov:0.7:0.9 on a torus of 8 peers, whose smallest eigenvalue is -1/2. The
 * local steps of a round cover 83 % of the way to a peer's optimum. gamma 0: --gamma auto. Returns
 * the root mean square of the distances of the models from their mean after the last round. *step: step size of peer 0 in the last round of training. */
static double last_distance(const char *mixer, double gamma, double *step)
{
    struct rig r;
    rig_outer(&r, PEERS, "torus", "none");
    r.config.run.mixer = mixer_at(mixer);
    r.config.run.gamma = gamma;
    r.config.run.gamma_auto = gamma == 0;
    r.config.run.final_drift = 0;
    r.eta = 0.3f;
    rig_run(&r, UINT64_MAX);
    static float model[PEERS * DIM];
    for (uint32_t i = 0; i < PEERS; i++)
        memcpy(model + i * DIM, rig_model(&r, i), DIM * sizeof *model);
    double d = sqrt(rig_error2(model, PEERS, DIM) / PEERS);
    *step = rig_progress(&r, 0).gamma;
    print_message("%s, gamma %g: the models are %.3g from their mean, step size %.4f\n", mixer,
                  gamma, d, *step);
    rig_close(&r);
    return d;
}

/* The consensus phase has no local steps, so its exchanges use a step size of 1. */
static void the_consensus_phase_has_no_limit(void **state)
{
    struct rig r;
    (void)state;
    rig_outer(&r, PEERS, "torus", "none");
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_true(rig_progress(&r, 0).settle_rounds > 2);
    assert_true(rig_progress(&r, 0).gamma == 1);
    rig_close(&r);
}

/* With a step size of 1, an outer momentum of 0.9 amplifies the differences between models on a
 * torus in each round. --gamma auto avoids this with its limit of 2/3 for edges between peers with
 * three neighbours. */
static void auto_gamma_keeps_models_together(void **state)
{
    static const char *const mixer[] = {"choco", "dpsgd"};
    (void)state;
    for (size_t i = 0; i < sizeof mixer / sizeof mixer[0]; i++) {
        double step, apart = last_distance(mixer[i], 1, &step);
        assert_true(step == 1);
        double together = last_distance(mixer[i], 0, &step);
        assert_true(fabs(step - 2.0 / 3) <= 1e-12);
        assert_true(apart > 1e3 && together < 10);
    }
}

/* ---- rounds that are not in lock step ---- */

/* Peers have different speeds. In the cases, peers do not wait for each other, wait if a neighbour
 * is too many rounds behind, or do different numbers of local steps. In each case the sum of the
 * models must equal the sum of all outer steps. */
static void the_sum_is_that_of_the_outer_steps(void **state)
{
    static const struct
    {
        enum run_policy policy;
        uint32_t local_steps, overlap;
    } rows[] = {{RUN_ASYNC, STEPS, 0}, {RUN_ASYNC, STEPS, 1}, {RUN_SSP + 2, STEPS, 0},
                {RUN_SYNC, 0, 0},      {RUN_SYNC, 0, 1},      {RUN_SSP + 2, 0, 0}};
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        struct rig r;
        double worst = 0;
        rig_outer(&r, PEERS, "ring", "qsgd:4");
        r.config.run.policy = rows[row].policy;
        r.config.run.local_steps = rows[row].local_steps;
        r.config.run.overlap = rows[row].overlap;
        r.config.step_spread = 2;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        for (size_t k = 0; k < DIM; k++) {
            double sum = 0, want = 0;
            for (uint32_t i = 0; i < PEERS; i++) {
                sum += (double)rig_model(&r, i)[k];
                want += moved[i][k];
            }
            worst = fmax(worst, fabs(sum - want));
        }
        for (uint32_t i = 0; i < PEERS; i++)
            assert_int_equal(done[i], ROUNDS);
        print_message("row %zu: the sum is off by %.2g\n", row, worst);
        if (!(worst <= 1e-4))
            fail_msg("row %zu: the sum of the models is off by %g", row, worst);
        rig_close(&r);
    }
}

/* ---- rollback ---- */

enum { BAD = 3, BAD_ROUND = 30 };

/* Squared norm |u|^2 of the outer momentum of peer BAD before the round that diverges, and after
 * it. */
static double u2_before, u2_after;

static double u_norm2(const struct rig *r, uint32_t peer)
{
    const struct outer_optimiser *o = &sim_node(r->world, peer)->workshop.outer;
    return vec_norm2(o->u, o->n);
}

static void bad_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                      struct trainer_report *report)
{
    const struct rig_peer *p = self;
    rig_gradient_steps(p, x, round, n_steps);
    if (p->index == BAD && round == BAD_ROUND) {
        u2_before = u_norm2(p->rig, BAD);
        x[0] = (float)NAN;
    }
    if (p->index == BAD && round == BAD_ROUND + 1)
        u2_after = u_norm2(p->rig, BAD);
    *report = (struct trainer_report){.loss = 1, .n_samples = 1};
}

static int make_bad(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                    char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = bad_steps;
    return err;
}

/* A rollback must set the outer momentum to 0, because otherwise the momentum would contain the
 * update that diverged. */
static void a_rollback_resets_the_momentum(void **state)
{
    struct rig r;
    (void)state;
    rig_outer(&r, PEERS, "ring", "qsgd:4");
    r.config.make_trainer = make_bad;
    r.quiet = true;
    u2_before = u2_after = -1;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_true(u2_before > 0);
    assert_true(u2_after == 0);
    rig_close(&r);
}

/* ---- a late joiner ---- */

enum { JOINER = PEERS, JOIN_DIM = 40 * 1000, ALL = PEERS + 1 };

static const struct rig *joined;
static uint64_t first_round; /* Round of the joiner's first local steps. */
/* Squared norm |u|^2 of the outer momentum u, at the time of the joiner's first local steps.
 * joiner_u2: of the joiner. donors_u2: mean over the other peers. */
static double joiner_u2, donors_u2;
/* Squared distance of a peer's outer momentum u from the mean u of all peers but the joiner.
 * joiner_dist2: of the joiner. donors_dist2: mean over the other peers. */
static double joiner_dist2, donors_dist2;
/* Factor by which the test multiplies the pieces of the outer momentum u that are sent to the
 * joiner. 1: the pieces arrive unchanged. */
static float lie;
static uint64_t n_outer_pieces;

static void joining_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                          struct trainer_report *report)
{
    const struct rig_peer *p = self;
    rig_gradient_steps(p, x, round, n_steps);
    *report = (struct trainer_report){.n_samples = 1};
    if (p->index != JOINER || first_round != 0)
        return;
    first_round = round;
    const float *u[ALL];
    for (uint32_t i = 0; i < ALL; i++)
        u[i] = sim_node(joined->world, i)->workshop.outer.u;
    for (size_t k = 0; k < JOIN_DIM; k++) {
        double m = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            m += (double)u[i][k] / PEERS;
        for (uint32_t i = 0; i < PEERS; i++) {
            donors_u2 += (double)u[i][k] * (double)u[i][k] / PEERS;
            donors_dist2 += ((double)u[i][k] - m) * ((double)u[i][k] - m) / PEERS;
        }
        joiner_u2 += (double)u[JOINER][k] * (double)u[JOINER][k];
        joiner_dist2 += ((double)u[JOINER][k] - m) * ((double)u[JOINER][k] - m);
    }
}

static int make_joining(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = joining_steps;
    return err;
}

/* Counts the pieces of the outer momentum u that reach the joining peer, and multiplies their
 * values by `lie`. */
static void tamper(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    static struct wire_batch batch;
    struct wire_message m;
    (void)self, (void)other;
    if (peer != JOINER || ev->type != NODE_RECV
        || !wire_read(ev->recv.bytes, ev->recv.len, &batch, &m) || m.type != WIRE_MODEL
        || m.model.key != 0 || m.model.round == WIRE_ROUND_INITIAL
        || m.model.piece < piece_count(JOIN_DIM))
        return;
    n_outer_pieces++;
    for (size_t i = 0; i < m.model.payload.n / 4; i++) {
        float v;
        memcpy(&v, m.model.payload.p + 4 * i, 4);
        v *= lie;
        memcpy((uint8_t *)ev->recv.bytes + (m.model.payload.p - ev->recv.bytes) + 4 * i, &v, 4);
    }
}

/* Starts a cluster, and one more peer 60 s later. Runs until that peer has taken local steps. */
static void join_late(float factor, uint32_t byzantine)
{
    struct rig r;
    rig_init(&r, ALL, JOIN_DIM, "complete", "qsgd:4", 0);
    snprintf(r.config.run.outer, sizeof r.config.run.outer, "nesterov:0.7:0.9");
    for (size_t i = 1; i < ALL; i++)
        for (size_t k = 0; k < JOIN_DIM; k++)
            r.c[i * JOIN_DIM + k] = r.c[k] + 0.05f * r.c[i * JOIN_DIM + k];
    /* A small step size keeps the models far from the optimum during the whole test, so the outer
     * momentum u does not become small. */
    r.eta = 0.001f;
    r.config.step_us = SECOND;
    r.config.make_trainer = make_joining;
    r.config.watch = tamper;
    r.config.sessions = true;
    r.config.run.rounds = 1000;
    r.config.run.min_peers = 1;
    r.config.run.tolerate = byzantine;
    joined = &r;
    lie = factor;
    first_round = n_outer_pieces = 0;
    joiner_u2 = donors_u2 = joiner_dist2 = donors_dist2 = 0;
    rig_open(&r);
    sim_kill(r.world, JOINER);
    (void)sim_run_to(r.world, 60 * SECOND);
    assert_int_equal(sim_restart_as_new(r.world, JOINER), 0);
    while (first_round == 0 && sim_now_us(r.world) < 120 * SECOND && sim_step(r.world))
        ;
    print_message("joined before round %llu: |u|^2 %.4g, of the others %.4g; distance^2 from their "
                  "mean %.3g, of the others %.3g; %llu pieces\n",
                  (unsigned long long)first_round, joiner_u2, donors_u2, joiner_dist2, donors_dist2,
                  (unsigned long long)n_outer_pieces);
    assert_true(first_round > 10 && donors_u2 > 0);
    rig_close(&r);
}

/* A peer that joins late must continue with the outer momentum of its donors. It must begin with 0
 * if their momentum is implausible, or if the run tolerates Byzantine members. */
static void a_joiner_takes_the_momentum(void **state)
{
    (void)state;
    join_late(1, 0);
    assert_true(n_outer_pieces >= piece_count(JOIN_DIM));
    assert_true(joiner_u2 > 0.9 * donors_u2 && joiner_u2 < 1.1 * donors_u2);
    assert_true(joiner_dist2 < 0.05 * donors_u2);
    join_late(1e3f, 0);
    assert_true(n_outer_pieces >= piece_count(JOIN_DIM));
    assert_true(joiner_u2 == 0);
    join_late(1, 1);
    assert_int_equal(n_outer_pieces, 0);
    assert_true(joiner_u2 == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_mean_follows_diloco),
                                       cmocka_unit_test(lost_sessions_keep_the_mean),
                                       cmocka_unit_test(other_mixers_follow_diloco),
                                       cmocka_unit_test(auto_gamma_keeps_models_together),
                                       cmocka_unit_test(the_consensus_phase_has_no_limit),
                                       cmocka_unit_test(the_sum_is_that_of_the_outer_steps),
                                       cmocka_unit_test(a_rollback_resets_the_momentum),
                                       cmocka_unit_test(a_joiner_takes_the_momentum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
