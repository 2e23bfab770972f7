/* tests/unit/sim_pass.c -- a consensus phase with a graph of its own.
 *
 * With base:K, one exact averaging pass (rounds after which all models are the exact mean) ends the
 * phase for all peers. A pass that is not exact ends no phase. */
#include "sim_rig.h"
#include "test_share.h"

#include "peer/node/state.h"
#include "topology/round_schedule.h"

enum { SECOND = 1000 * 1000, SEEDS = 60 };

/* Returns the seed of the nth run. The environment variable SEED replaces all seeds. */
static uint64_t seed_of(uint64_t nth)
{
    const char *given = getenv("SEED");
    return given != NULL ? strtoull(given, NULL, 10) : nth;
}

/* Prepares a run in which each model jumps to its own optimum in round 0. The consensus phase
 * begins three rounds later. */
static void open_rig(struct rig *r, uint32_t n, const char *topology, const char *last)
{
    rig_init(r, n, 200, topology, "none", 0);
    r->loud = getenv("LOUD") != NULL;
    struct run *run = &r->config.run;
    run->rounds = 4;
    run->final_drift = 1e-3;
    snprintf(run->final_compress, sizeof run->final_compress, "none");
    snprintf(run->final_topology, sizeof run->final_topology, "%s", last);
}

static uint32_t rounds_of_pass(const char *spec, uint32_t n)
{
    struct round_schedule rota;
    assert_int_equal(round_schedule_build(&rota, spec, n, 1), 0);
    uint32_t rounds = rota.n_rounds;
    round_schedule_close(&rota);
    return rounds;
}

/* Returns the largest distance of a live peer's model from the mean of the live models, divided by
 * the length of the mean. */
static double farthest(const struct rig *r)
{
    uint32_t n = 0;
    double *mean = calloc(r->dim, sizeof *mean), mean2 = 0, worst = 0;
    for (uint32_t i = 0; i < r->config.n_peers; i++)
        n += sim_node(r->world, i) != NULL;
    for (uint32_t i = 0; i < r->config.n_peers; i++)
        for (size_t k = 0; k < r->dim && sim_node(r->world, i) != NULL; k++)
            mean[k] += (double)rig_model(r, i)[k] / n;
    for (size_t k = 0; k < r->dim; k++)
        mean2 += mean[k] * mean[k];
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        double d2 = 0;
        for (size_t k = 0; k < r->dim && sim_node(r->world, i) != NULL; k++)
            d2 += ((double)rig_model(r, i)[k] - mean[k]) * ((double)rig_model(r, i)[k] - mean[k]);
        worst = fmax(worst, sqrt(d2 / mean2));
    }
    free(mean);
    return worst;
}

/* Checks that no peer reports a bound of its distance that is below the largest real distance from
 * the mean. If the bound comes from sketches, it may be lower by some rounding errors. */
static void bounds_hold(const struct rig *r)
{
    const double roundings = 5e-7;
    double worst = farthest(r);
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        const struct node *node = sim_node(r->world, i);
        if (node == NULL)
            continue;
        double said = phases_own_distance(node->phases);
        if (!(worst <= said + roundings) || !(said <= r->config.run.final_drift))
            fail_msg("peer-%u says at most %g, and some model is %g from the mean", i, said, worst);
        if (!(worst <= averaging_pass_bound(node->edges)))
            fail_msg("a pass leaves at most %g, and some model is %g from the mean",
                     averaging_pass_bound(node->edges), worst);
    }
}

/* Returns whether the mean of the models must still be the mean of the optima c_i. The mean may
 * differ if a peer joined late with the model of its neighbours, skipped a round, or distrusted a
 * neighbour. */
static bool all_began(const struct rig *r)
{
    bool all = true;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        struct node_progress p = rig_progress(r, i);
        all &= p.joined_round == 0 && p.rounds_skipped == 0
               && edges_status(sim_node(r->world, i)->edges).n_distrusted == 0;
    }
    return all;
}

/* Runs to the end and checks every averaging pass. A peer whose pass was exact must hold the mean
 * of the models at the start of the pass, whatever happened to the passes of others. */
static void run_looking_at_passes(struct rig *r)
{
    uint64_t seen[16] = {0}, n_clean = 0;
    uint32_t n = r->config.n_peers;
    double mean2 = 0, *mean = calloc(r->dim, sizeof *mean);
    for (size_t k = 0; k < r->dim; k++) {
        for (uint32_t i = 0; i < n; i++)
            mean[k] += (double)r->c[i * r->dim + k] / n;
        mean2 += mean[k] * mean[k];
    }
    rig_open(r);
    while (sim_step(r->world))
        for (uint32_t i = 0; i < n; i++) {
            const struct averaging_pass *p = edges_pass(sim_node(r->world, i)->edges);
            if (!p->over || !(p->bound > 0) || seen[i] == p->over_beat || !all_began(r))
                continue;
            double d2 = 0;
            for (size_t k = 0; k < r->dim; k++)
                d2 +=
                    ((double)rig_model(r, i)[k] - mean[k]) * ((double)rig_model(r, i)[k] - mean[k]);
            if (!(sqrt(d2 / mean2) <= 1e-6))
                fail_msg("SEED=%llu: the pass of peer-%u was clean, and %g from the mean",
                         (unsigned long long)r->config.seed, i, sqrt(d2 / mean2));
            seen[i] = p->over_beat;
            n_clean++;
        }
    assert_true(n_clean > 0 || !all_began(r));
    free(mean);
}

/* ---- without faults ---- */

/* Checks the number of rounds of the consensus phase. The first round completes exchanges that are
 * under way. The next `pass` rounds are an exact averaging pass. The phase may then take `pass`
 * more rounds, until all peers know that the pass was exact. */
static void ends_after_a_pass(struct rig *r, const char *last)
{
    uint32_t n = r->config.n_peers, pass = rounds_of_pass(last, n), most = 0;
    rig_run(r, UINT64_MAX);
    rig_ended_well(r, 1e-6);
    bounds_hold(r);
    for (uint32_t i = 0; i < n; i++) {
        struct node_progress p = rig_progress(r, i);
        most = p.settle_rounds > most ? (uint32_t)p.settle_rounds : most;
        if (p.settle_rounds < 1 + pass || p.settle_rounds > 1 + 2 * pass)
            fail_msg("%s of %u: peer-%u took %d rounds, a pass has %u", last, n, i,
                     (int)p.settle_rounds, pass);
    }
    if (!(rig_mean_error(r) < 1e-6))
        fail_msg("%s of %u: the mean moved by %g", last, n, rig_mean_error(r));
    print_message("%s, then %s of %u: %u rounds, of which %u are a pass\n", r->config.run.topology,
                  last, n, most, pass);
    rig_close(r);
}

static void one_pass(uint32_t n, const char *topology, const char *last)
{
    struct rig r;
    open_rig(&r, n, topology, last);
    ends_after_a_pass(&r, last);
}

static void test_one_pass(void **state)
{
    (void)state;
    one_pass(64, "ring", "base:1");
    one_pass(64, "ring", "base:4");
    one_pass(100, "torus", "base:1");
    one_pass(100, "torus", "base:4");
    one_pass(2, "ring", "base:1");
    one_pass(3, "ring", "base:4");
    one_pass(7, "ring", "base:1");
    one_pass(11, "ring", "base:1");
    one_pass(11, "star", "base:2");
}

/* Exact averaging passes are already made in training. In one case the graphs of training and of
 * the consensus phase differ, in the other case they are the same. */
static void test_passes_all_along(void **state)
{
    (void)state;
    one_pass(7, "base:1", "base:2");
    one_pass(11, "base:1", "base:1");
}

/* In training, a lossy codec is used, or deltas are sent before the local steps (--overlap).
 * Neither may matter in the consensus phase, which must end after one averaging pass. */
static void test_training_of_any_kind(void **state)
{
    static const char *const codec[] = {"topk:0.05", "sign", RUN_AUTO};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (uint32_t overlap = 0; overlap < 2; overlap++) {
            struct rig r;
            rig_init(&r, 12, 300, "ring", codec[i], 0);
            struct run *run = &r.config.run;
            run->rounds = 20;
            run->final_drift = 1e-3;
            run->overlap = overlap;
            snprintf(run->final_compress, sizeof run->final_compress, "none");
            snprintf(run->final_topology, sizeof run->final_topology, "base:1");
            rig_with_statistics(&r, 5, 5, 1);
            ends_after_a_pass(&r, "base:1");
        }
}

/* Slow peers reach the consensus phase long after the others. The others must wait for their edges
 * to the slow peers. */
static void test_late_and_slow(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 6; nth++) {
        struct rig r;
        open_rig(&r, 16, "ring", "base:1");
        r.config.seed = seed_of(nth);
        r.config.step_us = 200 * 1000;
        r.config.step_spread = 4;
        r.config.jitter_us = 30 * 1000;
        r.config.latency_us = 20 * 1000;
        r.config.sessions = true;
        print_message("late, SEED=%llu\n", (unsigned long long)r.config.seed);
        ends_after_a_pass(&r, "base:1");
    }
}

/* In the consensus phase the graph may differ from the graph of training, even if it does not
 * change by round. */
static void test_another_graph(void **state)
{
    static const char *const last[] = {"complete", "exponential", "ring"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig r;
        open_rig(&r, 16, i == 2 ? "torus" : "ring", last[i]);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        assert_true(rig_mean_error(&r) < 1e-6);
        print_message("%s of 16: %d rounds\n", last[i], (int)rig_progress(&r, 0).settle_rounds);
        rig_close(&r);
    }
}

/* ---- with faults ---- */

static void run_to_settled(struct rig *r, uint32_t peer, uint64_t rounds)
{
    while (rig_progress(r, peer).settle_rounds < rounds && sim_step(r->world))
        ;
}

/* A peer dies in the middle of an averaging pass. The others must make another pass without it. */
static void test_a_death(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= test_share_of(24); nth++) {
        struct rig r;
        uint64_t seed = seed_of(nth);
        struct rng rng = rng_stream(rng_key(seed, RNG_TEST, 64, 29));
        open_rig(&r, 16, "ring", nth % 2 ? "base:1" : "base:3");
        r.config.seed = seed;
        r.config.step_us = 50 * 1000;
        r.config.sessions = nth % 3 > 0;
        rig_open(&r);
        uint32_t pass = rounds_of_pass(r.config.run.final_topology, 16);
        run_to_settled(&r, 3, 1 + rng_u64(&rng) % (pass + 1));
        sim_kill(r.world, (uint32_t)(rng_u64(&rng) % 16));
        rig_run(&r, UINT64_MAX);
        print_message("a death, SEED=%llu: %d rounds\n", (unsigned long long)seed,
                      (int)rig_progress(&r, sim_node(r.world, 5) != NULL ? 5 : 6).settle_rounds);
        rig_ended_well(&r, 1e-6);
        bounds_hold(&r);
        rig_close(&r);
    }
}

/* Up to 30 % of the deltas are lost with their sessions, in clusters of different sizes and
 * speeds. */
static void test_cuts(void **state)
{
    static const char *const last[] = {"base:1", "base:1", "base:2", "base:3"};
    (void)state;
    for (uint64_t nth = 1; nth <= test_share_of(SEEDS); nth++) {
        struct rig r;
        uint64_t seed = seed_of(nth);
        struct rng rng = rng_stream(rng_key(seed, RNG_TEST, 12, 37));
        uint32_t n = 5 + (uint32_t)(rng_u64(&rng) % 12);
        open_rig(&r, n, rng_u64(&rng) % 3 ? "ring" : "exponential", last[rng_u64(&rng) % 4]);
        r.config.seed = seed;
        r.config.cut_rate = rng_u64(&rng) % 3 ? 0.3 : 0.05;
        r.config.jitter_us = rng_u64(&rng) % 2 ? 2000 : 50 * 1000;
        r.config.step_us = rng_u64(&rng) % 2 ? 1000 : 100 * 1000;
        r.config.step_spread = rng_u64(&rng) % 2 ? 0 : 3;
        r.config.run.rounds = 1 + rng_u64(&rng) % 6;
        r.config.run.overlap = rng_u64(&rng) % 4 == 0;
        run_looking_at_passes(&r);
        rig_ended_well(&r, 1e-3);
        bounds_hold(&r);
        if (all_began(&r) && !(rig_mean_error(&r) < 1e-6))
            fail_msg("SEED=%llu: the mean moved by %g", (unsigned long long)seed,
                     rig_mean_error(&r));
        print_message("cuts, SEED=%llu: %s of %u, %d rounds\n", (unsigned long long)seed,
                      r.config.run.final_topology, n, (int)rig_progress(&r, 0).settle_rounds);
        rig_close(&r);
    }
}

/* The path between the two peers of a pair is cut for longer than any peer waits. No peer may take
 * the averaging pass of that time for exact. The two peers may take each other for dead, and then
 * the mean may change. */
static void test_a_path_is_cut(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 8; nth++) {
        struct rig r;
        uint64_t seed = seed_of(nth);
        struct rng rng = rng_stream(rng_key(seed, RNG_TEST, 8, 31));
        open_rig(&r, 8, "ring", "base:1");
        r.config.seed = seed;
        r.config.sessions = true;
        r.config.step_us = 50 * 1000;
        rig_open(&r);
        run_to_settled(&r, 0, 1 + rng_u64(&rng) % 4);
        uint32_t a = (uint32_t)(rng_u64(&rng) % 8), b = a ^ 1u << rng_u64(&rng) % 3;
        int64_t until_us = sim_now_us(r.world) + 25 * (int64_t)SECOND;
        sim_cut(r.world, a, b, true);
        sim_cut(r.world, b, a, true);
        while (sim_now_us(r.world) < until_us && sim_step(r.world))
            ;
        sim_cut(r.world, a, b, false);
        sim_cut(r.world, b, a, false);
        rig_run(&r, UINT64_MAX);
        print_message("a path is cut, SEED=%llu: %d rounds, drift %g\n", (unsigned long long)seed,
                      (int)rig_progress(&r, 0).settle_rounds, farthest(&r));
        rig_ended_well(&r, 1e-3);
        bounds_hold(&r);
        rig_close(&r);
    }
}

/* All peers are killed in training and resume from their checkpoints. Their final models must equal
 * the models of an undisturbed run bit for bit. */
static void test_a_restart(void **state)
{
    struct rig r[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        open_rig(&r[k], 6, "ring", "base:1");
        r[k].eta = 0.05f;
        r[k].config.step_us = 50 * 1000;
        r[k].config.sessions = true;
        r[k].config.checkpoint_us = SECOND;
        r[k].config.disk_us = SECOND / 10;
        r[k].config.run.rounds = 100;
        rig_open(&r[k]);
        while (k == 1 && rig_progress(&r[k], 0).round < 60 && sim_step(r[k].world))
            ;
        for (uint32_t i = 0; i < 6 && k == 1; i++)
            sim_kill(r[k].world, i);
        for (uint32_t i = 0; i < 6 && k == 1; i++)
            assert_int_equal(sim_restart(r[k].world, i), 0);
        rig_run(&r[k], UINT64_MAX);
        rig_ended_well(&r[k], 1e-6);
        bounds_hold(&r[k]);
    }
    for (uint32_t i = 0; i < 6; i++)
        assert_memory_equal(rig_model(&r[0], i), rig_model(&r[1], i), r[0].dim * sizeof(float));
    rig_close(&r[0]);
    rig_close(&r[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_pass),
        cmocka_unit_test(test_passes_all_along),
        cmocka_unit_test(test_training_of_any_kind),
        cmocka_unit_test(test_late_and_slow),
        cmocka_unit_test(test_another_graph),
        cmocka_unit_test(test_a_death),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_a_path_is_cut),
        cmocka_unit_test(test_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
