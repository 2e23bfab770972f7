/* tests/unit/sim_weights.c -- compressed exchange while mixing weights change.
 *
 * The mean of the remaining peers must stay the same when a peer dies, although all weights may
 * change. This holds because each edge has replicas of its own: no peer stores a sum over
 * neighbours, which would contain old weights. */
#include "sim_rig.h"

enum { PEERS = 8, DEAD = 5, DIM = 300, ROUNDS = 400, SECOND = 1000 * 1000 };

/* Sum over the live peers of their models at the start of each round. */
static double sum[ROUNDS][DIM];
static uint32_t count[ROUNDS]; /* Number of live peers that have begun each round so far. */

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    assert_true(round < ROUNDS);
    for (size_t k = 0; k < DIM && p->index != DEAD; k++)
        sum[round][k] += (double)x[k];
    count[round] += p->index != DEAD;
    rig_gradient_steps(p, x, round, n_steps);
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = steps;
    return err;
}

/* Returns how far the mean of the models moved from round a to round b, relative to its length in
 * round a. */
static double moved(uint64_t a, uint64_t b)
{
    double e2 = 0, m2 = 0;
    for (size_t k = 0; k < DIM; k++) {
        e2 += (sum[b][k] - sum[a][k]) * (sum[b][k] - sum[a][k]);
        m2 += sum[a][k] * sum[a][k];
    }
    return sqrt(e2 / m2);
}

/* A peer dies while models are far apart. In the star the hub loses a neighbour, so that all
 * weights change. In the ring two peers that were not neighbours get an edge. From the first round
 * that the others do without the dead peer, their mean must stay the same up to rounding. */
static void mean_stays(const char *topology, const char *compress)
{
    struct rig r;
    struct consensus c;
    rig_init(&r, PEERS, DIM, topology, compress, 0);
    r.config.make_trainer = make_trainer;
    r.config.step_us = 50 * 1000;
    r.config.run.rounds = ROUNDS;
    r.config.run.final_drift = 1e-3;
    memset(sum, 0, sizeof sum);
    memset(count, 0, sizeof count);
    rig_open(&r);
    while (sim_now_us(r.world) < SECOND && sim_step(r.world))
        ;
    sim_drift(r.world, &c);
    assert_true(c.trained.relative > 0.1);
    sim_kill(r.world, DEAD);
    uint64_t from = rig_progress(&r, 0).round + 10;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    assert_int_equal(rig_progress(&r, 0).n_live, PEERS - 1);
    for (uint64_t t = from; t < ROUNDS; t++) {
        assert_int_equal(count[t], PEERS - 1);
        double error = moved(from, t);
        if (!(error <= 1e-5))
            fail_msg("%s, %s: from round %d to %d the mean has moved by %g", topology, compress,
                     (int)from, (int)t, error);
    }
    rig_close(&r);
}

static void test_mean_stays(void **state)
{
    (void)state;
    mean_stays("star", "topk:0.1");
    mean_stays("star", "qsgd:4");
    mean_stays("ring", "topk:0.1");
    mean_stays("ring", "sign");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mean_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
