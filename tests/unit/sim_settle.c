/* tests/unit/sim_settle.c -- the consensus phase must end at its target, and not much later. */
#include "sim_rig.h"
#include "test_share.h"

/* Tests consensus phases in which each round reduces the distance of the models by only about 2 %.
 * If the phase ends one round too early, the distance is still over the target. If it is far under
 * the target, the phase has ended too late. The exact distance must be neither. */
static void slow_end(const char *topology, uint32_t n, double gamma, double target)
{
    struct rig r;
    struct consensus c;
    rig_init(&r, n, 400, topology, "fp16", gamma);
    snprintf(r.config.run.final_compress, sizeof r.config.run.final_compress, "fp16");
    r.config.run.rounds = 8;
    r.config.run.final_drift = target;
    rig_open(&r);
    rig_run(&r, 2 * 1000 * 1000);
    rig_ended_well(&r, target);
    sim_drift(r.world, &c);
    print_message("%s of %u: target %g, exact %.3g, %d rounds\n", topology, n, target,
                  c.trained.relative, (int)rig_progress(&r, 0).settle_rounds);
    assert_true(rig_progress(&r, 0).settle_rounds >= 10);
    assert_true(c.trained.relative > target / 10);
    rig_close(&r);
}

static void test_slow_end(void **state)
{
    (void)state;
    slow_end("ring", 8, 0.1, 0.3);
    slow_end("ring", 8, 0.1, 0.1);
    slow_end("ring", 6, 0.05, 0.2);
    slow_end("complete", 4, 0.02, 0.5);
}

/* Returns the exact distance of a peer's model from the mean of all models, divided by the norm of
 * the mean. */
static double distance_of(const struct rig *r, uint32_t peer)
{
    double apart2 = 0, norm2 = 0;
    for (size_t k = 0; k < r->dim; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < r->config.n_peers; i++)
            mean += (double)rig_model(r, i)[k] / r->config.n_peers;
        double d = (double)rig_model(r, peer)[k] - mean;
        apart2 += d * d;
        norm2 += mean * mean;
    }
    return sqrt(apart2 / norm2);
}

/* Models are equal except for their last bits. The last drift that each peer publishes must be at
 * least its distance from the mean, and at most ten times as large. */
static void bounded(const char *topology, uint32_t n, const char *compress)
{
    struct rig r;
    double least = INFINITY, most = 0;
    rig_init(&r, n, 2000, topology, compress, 0);
    snprintf(r.config.run.final_compress, sizeof r.config.run.final_compress, "%s",
             r.config.run.compress);
    r.eta = 0.1f;
    r.noise = 1.0f;
    r.config.run.rounds = 40;
    r.config.run.final_drift = 1e-6;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-6);
    for (uint32_t i = 0; i < n; i++) {
        double ratio = rig_progress(&r, i).relative_drift / distance_of(&r, i);
        least = fmin(least, ratio);
        most = fmax(most, ratio);
    }
    print_message("%s of %u, %s: from %.2f to %.2f times the distance\n", topology, n, compress,
                  least, most);
    assert_true(least >= 1 && most <= 10);
    rig_close(&r);
}

static void test_bound(void **state)
{
    (void)state;
    bounded("ring", 4, "none");
    bounded("ring", 4, "qsgd:4");
    bounded("complete", 8, "none");
    bounded("complete", 24, "none");
    bounded("complete", 24, "qsgd:4");
    bounded("torus", 16, "qsgd:8");
    bounded("exponential", 16, "fp16");
}

/* In lock step, the deltas of an edge give its two ends bounds on their distance. These bounds must
 * end the consensus phase soon. Sketches would take longer, because they travel up and down a tree
 * in each of two drift windows. The reported drift must be at least half of the exact one. */
static void soon(const char *topology, uint32_t n, const char *compress, double target,
                 uint64_t most_rounds)
{
    struct rig r;
    struct consensus c;
    rig_init(&r, n, 2000, topology, compress, 0);
    r.eta = 0.1f;
    r.noise = 1.0f;
    r.config.run.rounds = 40;
    r.config.run.final_drift = target;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, target);
    sim_drift(r.world, &c);
    uint64_t rounds = rig_progress(&r, 0).settle_rounds;
    print_message("%s of %u, %s to %g: %d rounds, exact %.3g, at most %.3g\n", topology, n,
                  compress, target, (int)rounds, c.trained.relative,
                  rig_progress(&r, 0).relative_drift);
    assert_true(rounds <= most_rounds);
    for (uint32_t i = 0; i < n; i++)
        assert_true(rig_progress(&r, i).relative_drift >= 0.5 * c.trained.relative);
    rig_close(&r);
}

static void test_soon(void **state)
{
    (void)state;
    soon("ring", 8, "qsgd:4", 1e-3, 23);
    soon("ring", 8, "qsgd:4", 0.1, 19);
    soon("torus", 64, "qsgd:4", 0.03, 33);
    soon("ring", 24, "fp16", 1e-2, 66);
    soon("torus", 25, "qsgd:4", 1e-3, 24);
    soon("exponential", 32, "qsgd:8", 1e-3, 18);
    soon("star", 9, "qsgd:4", 1e-3, 32);
}

/* Models are equal when the consensus phase begins. Its sparse codec moves them apart before they
 * become equal again. Sketches from the beginning of the phase do not show this, but the distance
 * bounds of the edges do. No peer may claim a consensus that does not exist. */
static void parted(uint32_t n, const char *codec, double target, bool all)
{
    struct rig r;
    struct consensus c;
    int code;
    uint32_t n_claim = 0;
    rig_init(&r, n, 2000, "complete", "none", 0);
    r.eta = 0.1f;
    r.noise = 1.0f;
    r.config.run.rounds = 40;
    r.config.run.final_drift = target;
    snprintf(r.config.run.final_compress, sizeof r.config.run.final_compress, "%s", codec);
    rig_run(&r, UINT64_MAX);
    sim_drift(r.world, &c);
    for (uint32_t i = 0; i < n; i++)
        n_claim += sim_ended(r.world, i, &code) && code == 0;
    print_message("complete of %u, %s: %d rounds, exact %.3g of %.3g, claimed by %u\n", n, codec,
                  (int)rig_progress(&r, 0).settle_rounds, c.trained.relative, target, n_claim);
    if (all)
        rig_ended_well(&r, target);
    assert_true(n_claim == 0 || c.trained.relative <= target);
    rig_close(&r);
}

static void test_parted_by_the_codec(void **state)
{
    (void)state;
    for (uint32_t n = 3; n < 8; n++)
        parted(n, "topk:0.1", 1e-5, true);
    /* With the codec `sign`, models do not reach the target distance, or reach it only after
     * thousands of rounds. */
    uint64_t k = 0;
    for (uint32_t n = 3; n < 8; n++)
        for (double target = 2e-2; target > 1e-4; target /= 4)
            if (test_share_has(k++))
                parted(n, "sign", target, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_end),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_soon),
        cmocka_unit_test(test_parted_by_the_codec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
