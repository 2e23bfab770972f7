/* tests/unit/sim_gossip.c -- --mixer gossip (pairs that take their mean) in simulated nodes: the
 * textbook's models in every round, the mean under faults, and exact agreement after log2(n)
 * rounds. */
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"
#include "topology/round_schedule.h"

enum { PEERS_MOST = 16, DIM = 60 };

static uint32_t mixer_at(const char *name)
{
    uint32_t i = 0;
    while (mixer_all[i] != NULL && strcmp(mixer_all[i]->name, name) != 0)
        i++;
    assert_non_null(mixer_all[i]);
    return i;
}

static void rig_gossip(struct rig *r, const char *topology, uint32_t n, uint64_t rounds)
{
    rig_init(r, n, DIM, topology, "none", 0);
    r->config.run.mixer = mixer_at("gossip");
    r->config.run.rounds = rounds;
    r->config.run.final_drift = 1e-4;
}

/* ---- against the textbook ---- */

/* Returns the partner of peer i in a round: in the exponential graph from its definition, in other
 * graphs from the schedule. */
static uint32_t partner(const char *topology, const struct round_schedule *rota, uint32_t i,
                        uint64_t round)
{
    uint32_t turn = (uint32_t)(round % rota->n_rounds), found = i;
    if (strcmp(topology, "one-peer-exponential") == 0)
        return (i ^ 1u << turn) < rota->n ? i ^ 1u << turn : i;
    for (size_t k = rota->first[turn]; k < rota->first[turn + 1]; k++)
        found = rota->edge[k].a == i   ? rota->edge[k].b
                : rota->edge[k].b == i ? rota->edge[k].a
                                       : found;
    return found;
}

/* Makes local steps towards each peer's own optimum. Then each pair takes its mean: x_i = (x_i +
 * x_partner) / 2, in double precision. */
static void naive_round(const struct rig *r, const char *topology,
                        const struct round_schedule *rota, uint64_t round,
                        double x[PEERS_MOST][DIM])
{
    static double made[PEERS_MOST][DIM];
    for (uint32_t i = 0; i < rota->n; i++)
        for (size_t k = 0; k < DIM; k++)
            x[i][k] -= (double)r->eta * (x[i][k] - (double)r->c[i * DIM + k]);
    memcpy(made, x, sizeof made);
    for (uint32_t i = 0; i < rota->n; i++)
        for (size_t k = 0; k < DIM; k++)
            x[i][k] = (made[i][k] + made[partner(topology, rota, i, round)][k]) / 2;
}

static double naive_error2(double x[PEERS_MOST][DIM], uint32_t n)
{
    static float y[PEERS_MOST * DIM];
    for (size_t k = 0; k < n * DIM; k++)
        y[k] = (float)x[k / DIM][k % DIM];
    return rig_error2(y, n, DIM);
}

static void as_naive(const char *topology, uint32_t n)
{
    enum { ROUNDS = 40 };
    static double x[PEERS_MOST][DIM];
    struct rig r;
    struct round_schedule rota;
    memset(x, 0, sizeof x);
    rig_gossip(&r, topology, n, ROUNDS);
    r.eta = 0.1f;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-4);
    assert_int_equal(r.n_errors, ROUNDS);
    assert_int_equal(round_schedule_build(&rota, topology, n, r.config.run.seed), 0);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        double want = naive_error2(x, n);
        if (!(fabs(r.error2[t] - want) <= 1e-4 * (want + 1e-6)))
            fail_msg("%s of %u, round %d: squared error %g, expected %g", topology, n, (int)t,
                     r.error2[t], want);
        naive_round(&r, topology, &rota, t, x);
    }
    /* The models stay apart during training, because the peers have different optima. */
    assert_true(r.error2[ROUNDS - 1] > 1e-3);
    round_schedule_close(&rota);
    rig_close(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    as_naive("one-peer-exponential", 8);
    as_naive("one-peer-exponential", 11);
    as_naive("rotation:3", 8);
    as_naive("rotation:2", 13);
    as_naive("matching:5", 9);
    as_naive("matching", 16);
}

/* ---- GossipGraD's claim ---- */

/* In round 0 each model jumps to its own optimum, and no model is trained. After log2(n) rounds,
 * all models must be equal up to rounding errors, whatever the order of the peers in the
 * schedule. */
static void test_all_hear_all(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits <= 4; bits++) {
        struct rig r;
        rig_gossip(&r, "rotation:2", 1u << bits, bits + 3);
        rig_recording(&r);
        rig_run(&r, UINT64_MAX);
        double first = rig_error2(r.c, 1u << bits, DIM);
        assert_true(r.error2[bits] <= 1e-12 * first);
        assert_true(bits == 1 || r.error2[bits - 1] > 1e-2 * first);
        assert_true(rig_mean_error(&r) < 1e-6);
        rig_close(&r);
    }
}

/* ---- faults ---- */

/* Sessions break all the time. An exchange at only one of two ends would change the mean
 * permanently. */
static void test_cuts_keep_the_mean(void **state)
{
    static const char *const topology[] = {"rotation:3", "matching:4", "one-peer-exponential"};
    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        struct rig r;
        rig_gossip(&r, topology[k], 9 + k, 150);
        r.config.cut_rate = 0.01;
        r.config.jitter_us = 2000;
        r.config.seed = k + 1;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-4);
        double error = rig_mean_error(&r);
        if (!(error <= 1e-5))
            fail_msg("%s: the mean is off by %g", topology[k], error);
        rig_close(&r);
    }
}

/* If a peer dies, the others must exchange in pairs of live members. */
static void test_a_member_dies(void **state)
{
    (void)state;
    struct rig r;
    rig_gossip(&r, "rotation:3", 8, 500);
    r.eta = 0.05f;
    r.noise = 0.3f;
    r.config.step_us = 50 * 1000;
    r.config.run.quorum = 0.5;
    rig_open(&r);
    while (sim_now_us(r.world) < 5 * 1000 * 1000 && sim_step(r.world))
        ;
    sim_kill(r.world, 3);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook),
        cmocka_unit_test(test_all_hear_all),
        cmocka_unit_test(test_cuts_keep_the_mean),
        cmocka_unit_test(test_a_member_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
