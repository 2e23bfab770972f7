/* tests/unit/sim_ladder.c -- the option --compress auto in simulated nodes: the codec level follows
 * the drift, up and down, and is a function of the seed. */
#include "sim_rig.h"

#include "gossip/exchange/codec_levels.h"
/* The test reads the interval of sketches from the node's internal state, because a node does not
 * report it. */
#include "peer/node/state.h"

enum { PEERS = 4, FLOATS = 10000, ROUNDS = 600, QUIET = 300 };

/* Codec level of the deltas that each peer sent, by round. */
static int rung[PEERS][ROUNDS + 1];
static double drift[ROUNDS + 1]; /* Normalised drift in each round, as peer 0 knew it. */

static int place(const char *spec)
{
    for (int i = 0; i < CODEC_LEVELS_RUNGS; i++)
        if (spec == codec_levels_spec[i])
            return i;
    fail_msg("%s is no rung", spec != NULL ? spec : "nothing");
    return -1;
}

static void note_rung(void *self, uint32_t peer)
{
    struct rig *r = self;
    struct node_progress p;
    node_progress(sim_node(r->world, peer), &p);
    assert_true(p.drift_target == r->config.run.drift_target);
    assert_true(p.round <= ROUNDS);
    if (p.phase == NODE_TRAINING)
        rung[peer][p.round] = place(p.rung);
    if (peer == 0)
        drift[p.round] = isfinite(p.excess) ? p.excess : 0;
}

static void rig_auto(struct rig *r, double target)
{
    rig_init(r, PEERS, FLOATS, "ring", RUN_AUTO, 0);
    r->eta = 0.05f;
    r->noise = 3;
    r->quiet_from = QUIET;
    r->config.run.drift_target = target;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.measured = note_rung;
    memset(rung, 0, sizeof rung);
}

/* Checks that every peer ended well, and that no edge was reset. */
static void all_ended_well(const struct rig *r)
{
    rig_ended_well(r, 1e-3);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(rig_progress(r, i).resets, 0);
}

/* A small model begins at a dense codec level. With a small drift target the level must stay dense.
 * With a large drift target the level must go down, one level at a time. (gossip_codec_levels tests
 * how the level goes up.) */
static void test_up_and_down(void **state)
{
    static const double target[] = {0.3, 20};
    int last[2] = {0};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig r;
        rig_auto(&r, target[k]);
        rig_run(&r, UINT64_MAX);
        all_ended_well(&r);
        /* The run of a small model begins at this codec level. */
        assert_int_equal(rung[0][1], CODEC_LEVELS_SAFE);
        for (uint64_t t = 1; t < ROUNDS; t++) {
            last[k] = rung[0][t];
            int change = rung[0][t] - rung[0][t - 1];
            assert_true(t == 1 || (change >= -1 && change <= 2));
        }
        struct node_progress p; /* The consensus phase must not change the codec level. */
        node_progress(sim_node(r.world, 0), &p);
        assert_int_equal(place(p.rung), last[k]);
        rig_close(&r);
    }
    print_message("rungs at the end: %d and %d\n", last[0], last[1]);
    assert_true(last[0] >= CODEC_LEVELS_SAFE && last[1] < CODEC_LEVELS_FIRST);
}

/* The drift must be near the target. For a smaller target, the run must choose denser codec
 * levels. */
static void test_target(void **state)
{
    static const double target[] = {3, 1, 0.5};
    double rungs[3] = {0};
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct rig r;
        rig_auto(&r, target[k]);
        r.quiet_from = 0;
        rig_run(&r, UINT64_MAX);
        all_ended_well(&r);
        double mean = 0;
        for (uint64_t t = QUIET; t < ROUNDS; t++) {
            rungs[k] += (double)rung[0][t] / (ROUNDS - QUIET);
            mean += drift[t] / (ROUNDS - QUIET);
        }
        if (!(mean <= 1.5 * target[k]))
            fail_msg("target %g: mean drift %g", target[k], mean);
        print_message("target %-4g: mean rung %.2f, mean drift %.3g\n", target[k], rungs[k], mean);
        rig_close(&r);
    }
    assert_true(rungs[0] < rungs[1] && rungs[1] < rungs[2]);
}

/* The interval of sketches is computed from the size of deltas at the middle codec level, even if
 * another level is in use. The run must open the codecs of all levels and of phases other than
 * training, and no other codec. */
static void test_plan(void **state)
{
    struct rig r;
    (void)state;
    rig_auto(&r, 1);
    rig_open(&r);
    while (!sim_node(r.world, 0)->workshop.ready)
        assert_true(sim_step(r.world));
    const struct node *n = sim_node(r.world, 0);
    const struct mixing *c = &n->workshop.mixing;
    double middle = (double)compress_nominal(c->codec[DELTA_RUNG + CODEC_LEVELS_MIDDLE]);
    assert_true((double)c->sketch_every
                == ceil((double)sketch_nominal(&c->sketch) / (0.05 * middle)));
    assert_null(c->codec[DELTA_RUN]);
    for (uint32_t k = DELTA_FINAL; k < DELTA_CODECS; k++)
        assert_non_null(c->codec[k]);
    rig_close(&r);
}

/* In lock step the level is a function of the seed. Neither the order of messages nor their delay
 * may change it. */
static void test_same_seed(void **state)
{
    static float model[PEERS][FLOATS];
    static int was[PEERS][ROUNDS + 1];
    (void)state;
#ifdef HEARSAY_SANITIZED
    /* With sanitizers the second run is left out, because its network is the same as in the first
     * run. */
    const int step = 2;
#else
    const int step = 1;
#endif
    for (int k = 0; k < 3; k += step) {
        struct rig r;
        rig_auto(&r, 0.3);
        if (k == 2) {
            r.config.seed = 99;
            r.config.jitter_us = 3000;
            r.config.step_spread = 1;
        }
        rig_run(&r, UINT64_MAX);
        all_ended_well(&r);
        for (uint32_t i = 0; i < PEERS; i++) {
            if (k > 0)
                assert_memory_equal(model[i], rig_model(&r, i), sizeof model[i]);
            memcpy(model[i], rig_model(&r, i), sizeof model[i]);
        }
        if (k > 0)
            assert_memory_equal(was, rung, sizeof was);
        memcpy(was, rung, sizeof was);
        rig_close(&r);
    }
}

/* Each sender chooses the codec level of its deltas. Peers with different codec levels must
 * understand each other, also without lock step and with lost sessions. */
static void test_asynchronous(void **state)
{
    struct rig r;
    struct consensus c;
    (void)state;
    rig_auto(&r, 0.3);
    r.config.measured = NULL;
    r.config.run.policy = RUN_ASYNC;
    r.config.step_us = 50 * 1000;
    r.config.step_spread = 2;
    r.config.cut_rate = 0.05;
    rig_run(&r, UINT64_MAX);
    for (uint32_t i = 0; i < PEERS; i++) {
        int code;
        struct node_progress p;
        assert_true(sim_ended(r.world, i, &code) && code == 0);
        node_progress(sim_node(r.world, i), &p);
        assert_int_equal(p.violations, 0);
        assert_true(place(p.rung) >= 0);
    }
    sim_drift(r.world, &c);
    assert_true(c.trained.relative <= 2e-3);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up_and_down),  cmocka_unit_test(test_target),
        cmocka_unit_test(test_plan),         cmocka_unit_test(test_same_seed),
        cmocka_unit_test(test_asynchronous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
