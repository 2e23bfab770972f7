/* tests/unit/sim_exact.c -- the mixer D-PSGD in simulated nodes: its mixing matrix, its order of
 * steps and mixing, its step size, and faults. */
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 100, ROUNDS = 60 };

static uint32_t mixer_at(const char *name)
{
    uint32_t i = 0;
    while (mixer_all[i] != NULL && strcmp(mixer_all[i]->name, name) != 0)
        i++;
    assert_non_null(mixer_all[i]);
    return i;
}

static void rig_exact(struct rig *r, const char *topology, const char *compress, double gamma)
{
    rig_init(r, PEERS, DIM, topology, compress, gamma);
    r->config.run.mixer = mixer_at("dpsgd");
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->eta = 0.05f;
}

/* ---- against the textbook ---- */

struct naive
{
    double w[PEERS * PEERS]; /* Metropolis-Hastings weights, with a zero diagonal. */
    double x[PEERS * DIM], mixed[PEERS * DIM];
};

static void naive_begin(struct naive *v, const char *topology)
{
    struct graph g;
    memset(v, 0, sizeof *v);
    assert_int_equal(graph_build(&g, topology, PEERS, 1), 0);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t k = g.first[i]; k < g.first[i + 1]; k++)
            v->w[i * PEERS + g.neighbour[k]] =
                topology_weight(graph_degree(&g, i), graph_degree(&g, g.neighbour[k]));
    graph_close(&g);
}

/* Computes `mixed = x + step (W - I) x`, where x has the models of all peers and W is the mixing
 * matrix. */
static void naive_mix(struct naive *v, double step)
{
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++) {
            double sum = 0;
            for (size_t j = 0; j < PEERS; j++)
                sum += v->w[i * PEERS + j] * (v->x[j * DIM + k] - v->x[i * DIM + k]);
            v->mixed[i * DIM + k] = v->x[i * DIM + k] + step * sum;
        }
}

/* Makes one gradient step: `x = mixed - eta (at - c)`. mixed: models after mixing. at: models at
 * which the gradients are taken. c: optima. */
static void naive_step(struct naive *v, const struct rig *r, const double *at)
{
    for (size_t k = 0; k < PEERS * DIM; k++)
        v->x[k] = v->mixed[k] - (double)r->eta * (at[k] - (double)r->c[k]);
}

static double naive_error2(const double *x)
{
    static float y[PEERS * DIM];
    for (size_t k = 0; k < PEERS * DIM; k++)
        y[k] = (float)x[k];
    return rig_error2(y, PEERS, DIM);
}

/* Checks that the spread of the models before local steps equals the spread of the textbook
 * computation in every round. With --overlap 0 models are averaged after the local steps, with
 * --overlap 1 before them (Lian et al. 2017, algorithm 1). */
static void as_naive(const char *topology, const char *compress, double gamma, double step,
                     enum run_overlap overlap, double tolerance)
{
    static struct naive v;
    struct rig r;
    rig_exact(&r, topology, compress, gamma);
    r.config.run.overlap = overlap;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(r.n_errors, ROUNDS);
    naive_begin(&v, topology);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        /* With overlap, the local steps of a round begin before the exchange of the round is mixed
         * into the model. */
        const double *at = overlap == RUN_OVERLAP_ROUND ? v.x : v.mixed;
        double want = naive_error2(at);
        if (!(fabs(r.error2[t] - want) <= tolerance * (want + 1e-6)))
            fail_msg("%s, %s, step %g, overlap %d, round %d: squared error %g, expected %g",
                     topology, compress, step, (int)overlap, (int)t, r.error2[t], want);
        if (overlap == RUN_OVERLAP_ROUND) {
            naive_mix(&v, step);
            naive_step(&v, &r, v.x);
        } else {
            naive_step(&v, &r, v.mixed);
            naive_mix(&v, step);
        }
    }
    /* The models stay apart during training, because the peers have different optima. */
    assert_true(r.error2[ROUNDS - 1] > 1e-3);
    rig_close(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    as_naive("ring", "none", 1, 1, RUN_OVERLAP_NONE, 1e-4);
    as_naive("ring", "none", 0, 1, RUN_OVERLAP_NONE, 1e-4);
    as_naive("ring", "none", 1.3079, 1.3079, RUN_OVERLAP_NONE, 1e-3);
    as_naive("star", "none", 1, 1, RUN_OVERLAP_NONE, 1e-4);
    as_naive("torus", "none", 0.5, 0.5, RUN_OVERLAP_NONE, 1e-4);
    as_naive("ring", "fp16", 1, 1, RUN_OVERLAP_NONE, 1e-2);
    as_naive("ring", "none", 1, 1, RUN_OVERLAP_ROUND, 1e-4);
    as_naive("ring", "none", 1.3079, 1.3079, RUN_OVERLAP_ROUND, 1e-3);
}

/* ---- the step size ---- */

static void test_step(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig r;
        rig_exact(&r, "ring", "none", 0);
        r.config.run.policy = k == 0 ? RUN_SYNC : RUN_ASYNC;
        r.config.run.final_drift = 0;
        rig_run(&r, UINT64_MAX);
        if (rig_progress(&r, 0).gamma != 1)
            fail_msg("policy %d: gamma %g, expected 1", k, rig_progress(&r, 0).gamma);
        rig_close(&r);
    }
}

/* ---- faults ---- */

/* Models differ from round 0 on and are not trained, while 30 % of the deltas are lost with their
 * sessions. The mean of the models must stay the same. If an exchange were done at only one of its
 * two ends, the mean would change permanently. */
static void test_cuts_keep_the_mean(void **state)
{
    static const char *const topology[] = {"ring", "torus", "complete"};
    (void)state;
    for (uint64_t k = 0; k < 3; k++) {
        struct rig r;
        rig_exact(&r, topology[k], k == 1 ? "fp16" : "none", 0);
        r.eta = 0;
        r.config.seed = k + 1;
        r.config.cut_rate = 0.3;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        double error = rig_mean_error(&r);
        if (!(error <= 1e-5))
            fail_msg("%s: the mean is off by %g", topology[k], error);
        rig_close(&r);
    }
}

/* A peer dies in training and returns. The others must continue, and all must agree in the end. */
static void test_death_and_return(void **state)
{
    (void)state;
    struct rig r;
    rig_exact(&r, "ring", "none", 0);
    r.config.step_us = 50 * 1000;
    r.config.run.rounds = 600;
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
        cmocka_unit_test(test_textbook),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_cuts_keep_the_mean),
        cmocka_unit_test(test_death_and_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
