/* tests/unit/sim_post_local.c -- local SGD in simulated nodes, also with rounds of one step at the
 * beginning (post-local SGD) or at the end, on logistic regression. Models must equal the
 * textbook's in every round, with every mixer. */
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"

enum { PEERS = 5, DIM = 12, ROWS = 20, ROUNDS = 24, BEGINS = 9, ENDS = 6, STEPS = 4 };

static const double rate = 0.3;

/* ---- logistic regression, each peer with rows of its own ---- */

static double entry(uint32_t i, size_t row, size_t k)
{
    return 2 * (double)rng_unit_at(rng_key(i, RNG_TEST, 41, row), k) - 1;
}

/* Peers with odd numbers have the opposite labels, so that models are pulled apart. */
static double label(uint32_t i, size_t row)
{
    return (entry(i, row, 0) + 0.5 * entry(i, row, 1) > 0) == (i % 2 == 0) ? 1 : -1;
}

/* Makes one SGD step of logistic regression: x -= rate * gradient of log(1 + exp(-y a.x)). Step
 * number `step` uses data row `step` mod ROWS, with features a and label y. */
static void logistic_step(uint32_t i, uint64_t step, double x[DIM])
{
    size_t row = (size_t)(step % ROWS);
    double z = 0, y = label(i, row);
    for (size_t k = 0; k < DIM; k++)
        z += x[k] * entry(i, row, k);
    for (size_t k = 0; k < DIM; k++)
        x[k] += rate * y / (1 + exp(y * z)) * entry(i, row, k);
}

static float seen[ROUNDS][PEERS][DIM]; /* Models before the local steps of each round. */
static uint32_t asked[ROUNDS][PEERS];  /* Number of local steps requested in each round. */
static uint64_t done[PEERS];           /* Number of local steps that each peer has done. */

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    double wide[DIM];
    assert_true(round < ROUNDS);
    memcpy(seen[round][p->index], x, sizeof seen[0][0]);
    asked[round][p->index] = n_steps;
    for (size_t k = 0; k < DIM; k++)
        wide[k] = (double)x[k];
    for (uint32_t s = 0; s < n_steps; s++)
        logistic_step(p->index, done[p->index]++, wide);
    for (size_t k = 0; k < DIM; k++)
        x[k] = (float)wide[k];
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = steps;
    done[peer] = 0;
    return err;
}

/* ---- against the textbook ---- */

/* Computes the mixing weights w_ij: Metropolis-Hastings weights or, with allreduce, 1/n for all n
 * peers. */
static void weights(const char *mixer, const char *topology, double w[PEERS][PEERS])
{
    struct graph g;
    bool all = strcmp(mixer, "allreduce") == 0;
    assert_int_equal(graph_build(&g, topology, PEERS, 1), 0);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t j = 0; j < PEERS; j++)
            w[i][j] = all ? 1.0 / PEERS : 0;
    for (uint32_t i = 0; i < PEERS && !all; i++)
        for (uint32_t k = g.first[i]; k < g.first[i + 1]; k++)
            w[i][g.neighbour[k]] =
                topology_weight(graph_degree(&g, i), graph_degree(&g, g.neighbour[k]));
    graph_close(&g);
}

/* Compares a run with local SGD (Stich 2019). Two groups of rounds have only one local step each:
 * the first `begins` rounds (post-local SGD: Lin, Stich, Patel, Jaggi 2020) and the last `ends`
 * rounds. */
static void as_naive(const char *mixer, const char *topology, uint32_t n_steps, uint64_t begins,
                     uint64_t ends)
{
    struct rig r;
    double x[PEERS][DIM] = {{0}}, made[PEERS][DIM], w[PEERS][PEERS], apart = 0;
    uint64_t n = 0;
    rig_init(&r, PEERS, DIM, topology, "none", 1);
    while (mixer_all[r.config.run.mixer] != NULL
           && strcmp(mixer_all[r.config.run.mixer]->name, mixer) != 0)
        r.config.run.mixer++;
    assert_non_null(mixer_all[r.config.run.mixer]);
    r.config.run.rounds = ROUNDS;
    r.config.run.local_steps = n_steps;
    r.config.run.post_local = begins;
    r.config.run.one_step_last = ends;
    r.config.run.final_drift = 1e-3;
    r.config.make_trainer = make_trainer;
    memset(asked, 0, sizeof asked);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    weights(mixer, topology, w);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t now = round < begins || round >= ROUNDS - ends ? 1 : n_steps;
        for (uint32_t i = 0; i < PEERS; i++) {
            assert_int_equal(asked[round][i], now);
            for (size_t k = 0; k < DIM; k++) {
                if (!(fabs((double)seen[round][i][k] - x[i][k]) <= 1e-5))
                    fail_msg(
                        "%s, %s, %u steps from round %d, but not in the last %d, round %d, peer "
                        "%u: %g, expected %g",
                        mixer, topology, n_steps, (int)begins, (int)ends, (int)round, i,
                        (double)seen[round][i][k], x[i][k]);
                apart = fmax(apart, fabs(x[i][k] - x[0][k]));
            }
        }
        for (uint32_t i = 0; i < PEERS; i++)
            for (uint32_t s = 0; s < now; s++)
                logistic_step(i, n + s, x[i]);
        n += now;
        memcpy(made, x, sizeof made);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++)
                for (uint32_t j = 0; j < PEERS; j++)
                    x[i][k] += w[i][j] * (made[j][k] - made[i][k]);
    }
    /* During training the models differ, except with allreduce. */
    assert_true((apart > 0.05) == (strcmp(mixer, "allreduce") != 0));
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(rig_progress(&r, i).steps_done, n);
    rig_close(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    as_naive("allreduce", "complete", STEPS, 0, 0);
    as_naive("allreduce", "complete", STEPS, BEGINS, 0);
    as_naive("allreduce", "complete", STEPS, BEGINS, ENDS);
    as_naive("dpsgd", "ring", STEPS, BEGINS, 0);
    as_naive("dpsgd", "ring", STEPS, 0, ENDS);
    as_naive("choco", "ring", STEPS, BEGINS, ENDS);
    as_naive("choco", "star", 2 * STEPS, 1, 1);
    /* Every round is among the last rounds, which have one local step each. */
    as_naive("choco", "ring", STEPS, 0, ROUNDS);
}

/* With --overlap 1 each round must have as many local steps as without overlap. */
static void test_overlap(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, PEERS, DIM, "ring", "none", 1);
    r.config.run.rounds = ROUNDS;
    r.config.run.local_steps = STEPS;
    r.config.run.post_local = BEGINS;
    r.config.run.one_step_last = ENDS;
    r.config.run.overlap = RUN_OVERLAP_ROUND;
    r.config.run.final_drift = 1e-3;
    r.config.make_trainer = make_trainer;
    memset(asked, 0, sizeof asked);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < PEERS; i++)
            assert_int_equal(asked[round][i], round < BEGINS || round >= ROUNDS - ENDS ? 1 : STEPS);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_textbook),
                                       cmocka_unit_test(test_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
