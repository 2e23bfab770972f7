/* tests/unit/sim_round_momentum.c -- quasi-global and DecentLaM momentum in simulated nodes. With
 * different mixers, the distance of the models equals that of a textbook computation in every
 * round. Also tested: lossy codecs, lost sessions, and a peer that dies and returns. */
#include "gossip/mixers/mixer.h"
#include "nn/train/decentlam.h"
#include "nn/train/quasi_global.h"
#include "nn/train/round_momentum.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 100, ROUNDS = 60 };

static const double mu = 0.9;

/* ---- a bowl with that momentum ---- */

static const struct momentum_kind *kind;
static struct round_momentum change[PEERS];
static float momentum[PEERS][DIM];

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    const struct rig *r = p->rig;
    float *m = momentum[p->index];
    const float *c = r->c + p->index * r->dim;
    const struct optimiser o = {.momentum = mu, .use = kind->use};
    struct segment all = {.n = DIM, .trained = true};
    float grad[DIM];
    struct optimiser_step step = {&all, 1, x, grad, m, NULL, 0, (double)r->eta, NULL, NULL};
    (void)round_momentum_begin(&change[p->index], &o, &step, round, n_steps);
    rig_record(p->rig, p->index, x, round);
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
    round_momentum_close(&change[peer]);
    memset(momentum[peer], 0, sizeof momentum[peer]);
    t->steps = steps;
    return err != 0 ? err : round_momentum_init(&change[peer], kind, DIM);
}

static uint32_t mixer_at(const char *name)
{
    uint32_t i = 0;
    while (mixer_all[i] != NULL && strcmp(mixer_all[i]->name, name) != 0)
        i++;
    assert_non_null(mixer_all[i]);
    return i;
}

static void rig_open_kind(struct rig *r, const char *mixer, const char *topology, const char *codec,
                          double gamma, uint32_t n_steps)
{
    rig_init(r, PEERS, DIM, topology, codec, gamma);
    r->config.run.mixer = mixer_at(mixer);
    r->config.run.rounds = ROUNDS;
    r->config.run.local_steps = n_steps;
    r->config.run.final_drift = 1e-3;
    r->config.make_trainer = make_trainer;
    r->eta = 0.02f;
}

static void rig_close_kind(struct rig *r)
{
    rig_close(r);
    for (uint32_t i = 0; i < PEERS; i++)
        round_momentum_close(&change[i]);
}

/* ---- against the textbook ---- */

struct naive
{
    double w[PEERS][PEERS], x[PEERS][DIM], m[PEERS][DIM];
};

static void naive_begin(struct naive *v, const char *topology)
{
    struct graph g;
    memset(v, 0, sizeof *v);
    assert_int_equal(graph_build(&g, topology, PEERS, 1), 0);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t k = g.first[i]; k < g.first[i + 1]; k++)
            v->w[i][g.neighbour[k]] =
                topology_weight(graph_degree(&g, i), graph_degree(&g, g.neighbour[k]));
    graph_close(&g);
}

/* Makes one round: local steps, then the exchange, then an update of the momentum buffer. The
 * update uses the change of the model by local steps and exchange together. qg: Lin et al. 2021.
 * decentlam: the momentum is then added to the model (decentlam.h). */
static void naive_round(struct naive *v, const struct rig *r, uint32_t n_steps)
{
    static double begin[PEERS][DIM], made[PEERS][DIM];
    double eta = (double)r->eta;
    memcpy(begin, v->x, sizeof begin);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t s = 0; s < n_steps; s++)
            for (size_t k = 0; k < DIM; k++)
                v->x[i][k] -= eta
                              * (v->x[i][k] - (double)r->c[i * DIM + k]
                                 + (kind == &momentum_qg ? mu * v->m[i][k] : 0));
    memcpy(made, v->x, sizeof made);
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++) {
            for (uint32_t j = 0; j < PEERS; j++)
                v->x[i][k] += v->w[i][j] * (made[j][k] - made[i][k]);
            double share = kind == &momentum_qg ? (1 - mu) / (eta * n_steps) : 1;
            v->m[i][k] = mu * v->m[i][k] + share * (begin[i][k] - v->x[i][k]);
            if (kind == &momentum_decentlam)
                v->x[i][k] = begin[i][k] - v->m[i][k];
        }
}

static double naive_error2(const struct naive *v)
{
    static float y[PEERS * DIM];
    for (size_t k = 0; k < PEERS * DIM; k++)
        y[k] = (float)v->x[k / DIM][k % DIM];
    return rig_error2(y, PEERS, DIM);
}

static void as_naive(const char *mixer, const char *topology, uint32_t n_steps)
{
    static struct naive v;
    struct rig r;
    rig_open_kind(&r, mixer, topology, "none", 1, n_steps);
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(r.n_errors, ROUNDS);
    naive_begin(&v, topology);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        double want = naive_error2(&v);
        if (!(fabs(r.error2[t] - want) <= 1e-3 * (want + 1e-6)))
            fail_msg("%s, %s, %s, %u steps, round %d: squared error %g, expected %g", kind->name,
                     mixer, topology, n_steps, (int)t, r.error2[t], want);
        naive_round(&v, &r, n_steps);
    }
    /* The models stay apart during training, because the peers have different optima. */
    assert_true(r.error2[ROUNDS - 1] > 1e-4);
    rig_close_kind(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    for (size_t i = 0; momentum_kind_all[i] != NULL; i++) {
        kind = momentum_kind_all[i];
        if (kind->learn == NULL)
            continue;
        as_naive("dpsgd", "ring", 1);
        as_naive("dpsgd", "ring", 5);
        as_naive("dpsgd", "torus", 3);
        as_naive("choco", "ring", 4);
    }
}

/* ---- lossy codecs, with the adaptive consensus step size ---- */

/* Returns the mean of the squared distance between the models in the last 50 rounds of training. */
static double distance2(const char *topology, const char *codec, uint32_t n_steps)
{
    struct rig r;
    double sum = 0;
    rig_open_kind(&r, "choco", topology, codec, 0, n_steps);
    r.config.run.rounds = 400;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    double error = rig_mean_error(&r);
    if (!(error <= 0.05))
        fail_msg("%s, %s: the mean is off by %g", kind->name, codec, error);
    for (uint64_t t = 350; t < 400; t++)
        sum += r.error2[t] / 50;
    rig_close_kind(&r);
    return sum;
}

/* For each kind of momentum, the codecs that a run description allows must not increase the
 * distance between models. Some kinds need a constant mixing matrix, and with these kinds a coarser
 * codec would make the models diverge. */
static void test_codecs(void **state)
{
    (void)state;
    static const char *const topology[] = {"ring", "exponential"}, *const codec[] = {"qsgd:4",
                                                                                     "int8"};
    for (size_t i = 0; momentum_kind_all[i] != NULL; i++)
        for (size_t k = 0; k < 2 * 2 && momentum_kind_all[i]->learn != NULL; k++) {
            kind = momentum_kind_all[i];
            uint32_t n_steps = k < 2 ? 1 : 5;
            double exact = distance2(topology[k % 2], "none", n_steps);
            for (size_t c = 0; c < 2; c++) {
                double d2 = distance2(topology[k % 2], codec[c], n_steps);
                if (!(d2 <= 1.1 * exact))
                    fail_msg("%s, %s, %u steps, %s: squared distance %g, with none %g", kind->name,
                             topology[k % 2], n_steps, codec[c], d2, exact);
            }
        }
}

/* ---- faults ---- */

/* Deltas are lost, and a peer dies and returns without its momentum. All must agree in the end,
 * near the minimum of the mean of the losses. */
static void die_and_return(void)
{
    struct rig r;
    rig_open_kind(&r, "dpsgd", "ring", "none", 1, 1);
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
        fail_msg("%s: the mean is off by %g", kind->name, error);
    rig_close_kind(&r);
}

static void test_death_and_return(void **state)
{
    (void)state;
    for (size_t i = 0; momentum_kind_all[i] != NULL; i++) {
        kind = momentum_kind_all[i];
        if (kind->learn != NULL)
            die_and_return();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_textbook),
                                       cmocka_unit_test(test_codecs),
                                       cmocka_unit_test(test_death_and_return)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
