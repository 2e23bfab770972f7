/* tests/unit/sim_resume.c -- every process of a run is killed and restarted. The run must end with
 * the same models, bit for bit, as one that was never interrupted. */
#include "gossip/mixers/mixer.h"
#include "nn/math/state.h"
#include "peer/node/step/graceful_stop.h"
#include "peer/sim/faults.h"
#include "peer/sim/state.h"
#include "sim_rig.h"
#include "test_share.h"

/* SEEDS: number of seeds for each plan. TOLD: number of seeds for each plan in which the peers are
 * asked to stop while some of them still resume. test_share.h says which of the seeds a test
 * runs. */
enum { SEEDS = 33, TOLD = 14 };
enum { SECOND = 1000 * 1000, ROUNDS = 400, KILLS = 3 };

/* Settings of a simulated run. */
struct plan
{
    const char *topology, *compress;
    uint32_t n, mixer;
    bool statistics, sessions;
    double pull; /* Value of --max-pull. If it is above 0, --byzantine is 1, otherwise 0. */
    uint32_t overlap;
    const char *outer; /* Value of --outer. NULL: none. */
    double trigger;    /* Value of --trigger, the event trigger. 0: none. */
};

static const struct plan plans[] = {
    {"ring", "qsgd:4", 4, 0, false, true, 0, 0, NULL, 0},
    {"ring", "topk:0.1", 3, 0, true, true, 0, 0, NULL, 0},
    {"torus", "auto", 9, 0, false, true, 0, 0, NULL, 0},
    {"complete", "topk:0.1", 4, 1, false, true, 0, 0, NULL, 0},
    {"regular:4", "lowrank:1", 7, 0, false, true, 0, 0, NULL, 0},
    {"ring", "none", 2, 0, true, false, 0, 0, NULL, 0},
    {"ring", "randk:0.1", 8, 0, false, false, 0, 0, NULL, 0},
    {"complete", "qsgd:4", 5, 0, false, false, 1, 0, NULL, 0},
    {"complete", "qsgd:4", 7, 0, false, false, 0, 0, NULL, 0},
    {"complete", "qsgd:4", 7, 0, false, true, 0, 0, NULL, 0},
    {"ring", "qsgd:4", 4, 0, false, true, 0, 1, NULL, 0},
    {"torus", "auto", 9, 0, true, true, 0, 1, NULL, 0},
    {"ring", "topk:0.1", 5, 0, false, false, 0, 1, NULL, 0},
    {"base:1", "qsgd:4", 4, 0, false, true, 0, 0, NULL, 0},
    {"base:2", "int8", 7, 0, true, true, 0, 0, NULL, 0},
    {"ring", "qsgd:4", 4, 0, false, true, 0, 0, "nesterov:0.7:0.5", 0},
    {"ring", "topk:0.1", 5, 0, true, true, 0, 1, "nesterov:0.7:0.5", 0},
    {"ring", "qsgd:4", 4, 0, true, true, 0, 0, NULL, 2},
    {"torus", "topk:0.1", 9, 0, false, false, 0, 1, NULL, 4},
};

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

/* ---- a trainer with a momentum: a killed process loses it, its checkpoint has it ---- */

enum { FLOATS_MAX = 80, PEERS_MAX = 16 };

static float momentum[PEERS_MAX][FLOATS_MAX];

static float *momentum_of(const struct rig_peer *p)
{
    assert_true(p->index < PEERS_MAX && rig_floats(p->rig) <= FLOATS_MAX);
    return momentum[p->index];
}

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    float before[FLOATS_MAX], *v = momentum_of(p);
    size_t n = p->rig->dim;
    memcpy(before, x, n * sizeof *x);
    rig_steps(self, x, round, n_steps, report);
    for (size_t k = 0; k < n; k++) {
        v[k] = 0.5f * v[k] + (x[k] - before[k]);
        x[k] += 0.3f * v[k];
    }
}

static void trainer_state(void *self, struct state *s)
{
    const struct rig_peer *p = self;
    state_floats(s, momentum_of(p), p->rig->dim, "optimizer.momentum");
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    memset(momentum[peer], 0, sizeof momentum[peer]);
    t->steps = steps;
    t->state = trainer_state;
    return err;
}

/* Number of rounds from one evaluation to the next. 0: only the final model is evaluated. */
static uint64_t evaluate_every;

static void patient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->evaluate_every = evaluate_every;
    c->patience_us = 60 * (int64_t)SECOND;
}

/* Prepares a run in which a round takes 50 ms and a checkpoint is written every 2 s. */
static void rig_plan(struct rig *r, const struct plan *p, uint64_t rounds)
{
    rig_init(r, p->n, 60, p->topology, p->compress, 0);
    r->eta = 0.05f;
    r->noise = 0.3f;
    if (p->statistics)
        rig_with_statistics(r, 3, 3, 1);
    r->config.step_us = 50 * 1000;
    r->config.sessions = p->sessions;
    r->config.checkpoint_us = 2 * SECOND;
    r->config.configure = patient;
    r->config.make_trainer = make_trainer;
    r->config.disk_us = SECOND / 10;
    r->config.run.rounds = rounds;
    r->config.run.mixer = p->mixer;
    r->config.run.pull = p->pull;
    r->config.run.overlap = p->overlap;
    r->config.run.trigger = p->trigger;
    if (p->outer != NULL)
        snprintf(r->config.run.outer, sizeof r->config.run.outer, "%s", p->outer);
    r->config.run.tolerate = p->pull > 0;
    r->config.run.final_drift = 1e-3;
    r->config.run.quorum = 0.5;
    rig_open(r);
}

/* Kills all peers as in a power failure, one after another with up to 20 ms between them. Restarts
 * each peer within 4 s. */
static void kill_all(struct rig *r, struct rng *rng)
{
    int64_t back[16], now = sim_now_us(r->world);
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        run_until(r, now += (int64_t)(rng_unit(rng) * 20000));
        sim_kill(r->world, i);
        back[i] = (int64_t)(rng_unit(rng) * 4 * SECOND);
    }
    for (int64_t t = 0; t < 4 * SECOND; t += 1000) {
        run_until(r, now + t);
        for (uint32_t i = 0; i < r->config.n_peers; i++)
            if (back[i] >= t && back[i] < t + 1000)
                assert_int_equal(sim_restart(r->world, i), 0);
    }
}

static void compare(const struct rig *a, const struct rig *b, uint64_t seed)
{
    for (uint32_t i = 0; i < a->config.n_peers; i++) {
        struct node_progress p = rig_progress(b, i);
        int code = -1;
        if (!sim_ended(b->world, i, &code) || code != 0)
            fail_msg("seed %llu: peer-%u did not end well", (unsigned long long)seed, i);
        if (p.rounds_skipped != 0)
            fail_msg("seed %llu: peer-%u: %llu rounds skipped, %llu edges begun anew",
                     (unsigned long long)seed, i, (unsigned long long)p.rounds_skipped,
                     (unsigned long long)p.resets);
        if (memcmp(rig_model(a, i), rig_model(b, i), rig_floats(a) * sizeof(float)) != 0)
            fail_msg("seed %llu: peer-%u has another model", (unsigned long long)seed, i);
    }
}

static void one_seed(const struct plan *p, uint64_t seed)
{
    struct rng rng = rng_stream(rng_key(seed, RNG_TEST, p->n, 17));
    struct rig a, b;
    rig_plan(&a, p, ROUNDS);
    rig_run(&a, UINT64_MAX);
    rig_ended_well(&a, 1e-3);
    rig_plan(&b, p, ROUNDS);
    b.loud = getenv("LOUD") != NULL;
    for (int k = 0; k < KILLS; k++) {
        run_until(&b, sim_now_us(b.world) + (int64_t)(rng_unit(&rng) * 9 * SECOND));
        kill_all(&b, &rng);
    }
    rig_run(&b, UINT64_MAX);
    compare(&a, &b, seed);
    rig_close(&a);
    rig_close(&b);
}

static void test_all_are_killed(void **state)
{
    const char *given = getenv("SEED");
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (uint64_t seed = 1; seed <= test_share_of(SEEDS); seed++) {
            print_message("%s, %s, --overlap %u, SEED=%llu\n", plans[i].topology, plans[i].compress,
                          plans[i].overlap, (unsigned long long)seed);
            if (given == NULL || seed == strtoull(given, NULL, 10))
                one_seed(&plans[i], seed);
        }
}

/* A peer that resumes from a checkpoint reports the last accuracy with the round of the evaluated
 * model. */
static void test_accuracy_keeps_its_round(void **state)
{
    static const struct plan plan = {.n = 3, .topology = "ring", .compress = "none"};
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 3, 18));
    struct rig r;
    (void)state;
    evaluate_every = 20;
    rig_plan(&r, &plan, 10 * ROUNDS);
    while (rig_progress(&r, 0).accuracy_round == 0)
        run_until(&r, sim_now_us(r.world) + SECOND);
    uint64_t round = rig_progress(&r, 0).round, evaluated = rig_progress(&r, 0).accuracy_round;
    while (r.world->peers[0].checkpoints.slot[0].beat <= round)
        run_until(&r, sim_now_us(r.world) + SECOND / 10);
    kill_all(&r, &rng);
    while (rig_progress(&r, 0).phase != NODE_TRAINING)
        run_until(&r, sim_now_us(r.world) + 1000);
    struct node_progress p = rig_progress(&r, 0);
    assert_true(isfinite(p.accuracy) && p.accuracy_samples > 0);
    assert_in_range(p.accuracy_round, evaluated, p.round);
    evaluate_every = 0;
    rig_close(&r);
}

/* All peers are killed. Peer 0 returns with its only checkpoint, peer 1 without one, and peer 2 not at
 * all, so the run cannot begin again with --min-peers 3. Peer 0 must not wait permanently: the run
 * may have ended without it. A warning says for how long peer 0 waits. */
static void test_checkpoint_without_use(void **state)
{
    static const struct plan plan = {.n = 3, .topology = "ring", .compress = "none"};
    int code = -1;
    struct rig r;
    (void)state;
    rig_plan(&r, &plan, 10 * ROUNDS);
    r.loud = getenv("LOUD") != NULL;
    r.warning = "waiting for the members of the checkpoint";
    run_until(&r, 4 * SECOND);
    for (uint32_t i = 0; i < 3; i++)
        sim_kill(r.world, i);
    run_until(&r, 5 * SECOND);
    assert_int_equal(sim_restart(r.world, 0), 0);
    for (int k = 0; k < 2; k++)
        r.world->peers[1].checkpoints.slot[k].beat = 0;
    assert_int_equal(sim_restart(r.world, 1), 0);
    run_until(&r, 200 * SECOND);
    assert_true(sim_ended(r.world, 0, &code));
    assert_int_equal(code, 3);
    assert_true(r.n_warnings > 0);
    rig_close(&r);
}

/* ---- all peers are asked to stop ---- */

/* Asks all peers to stop, each up to 20 ms after the previous one, as `hearsay local` does after
 * Ctrl-C. All must store a checkpoint of the same step. Then restarts them. */
static void ask_all(struct rig *r, struct rng *rng, uint64_t seed)
{
    int64_t now = sim_now_us(r->world);
    uint64_t round = rig_progress(r, 0).round;
    int code;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        run_until(r, now += (int64_t)(rng_unit(rng) * 20000));
        sim_ask_to_leave(r->world, i);
    }
    run_until(r, now + GRACEFUL_STOP_US + SECOND);
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        uint64_t beat = r->world->peers[i].checkpoints.slot[0].beat;
        assert_true(sim_ended(r->world, i, &code));
        if (beat < round || beat != r->world->peers[0].checkpoints.slot[0].beat)
            fail_msg("seed %llu: told to end at round %llu, the checkpoint of peer-%u is of %llu",
                     (unsigned long long)seed, (unsigned long long)round, i,
                     (unsigned long long)beat);
        sim_kill(r->world, i);
    }
    for (uint32_t i = 0; i < r->config.n_peers; i++)
        assert_int_equal(sim_restart(r->world, i), 0);
}

/* All peers are asked to stop and are restarted, twice. Nothing may be lost, and the final models
 * must equal the models of an undisturbed run. */
static void test_all_are_told_to_end(void **state)
{
    const char *given = getenv("SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct rng rng = rng_stream(rng_key(seed, RNG_TEST, i, 19));
        struct rig a, b;
        print_message("%s, %s, --overlap %u, SEED=%llu\n", plans[i].topology, plans[i].compress,
                      plans[i].overlap, (unsigned long long)seed);
        rig_plan(&a, &plans[i], ROUNDS);
        rig_run(&a, UINT64_MAX);
        rig_plan(&b, &plans[i], ROUNDS);
        for (int k = 0; k < 2; k++) {
            run_until(&b,
                      sim_now_us(b.world) + 3 * SECOND + (int64_t)(rng_unit(&rng) * 3 * SECOND));
            ask_all(&b, &rng, seed);
        }
        rig_run(&b, UINT64_MAX);
        compare(&a, &b, seed);
        rig_close(&a);
        rig_close(&b);
    }
}

/* All peers are asked to stop when some have resumed from their checkpoints and others still wait
 * to do so. A peer that has trained a few rounds without the others must not store a checkpoint of
 * these rounds. */
static void told_while_coming_back(const struct plan *p, uint64_t seed)
{
    struct rng rng = rng_stream(rng_key(seed, RNG_TEST, p->n, 23));
    struct rig a, b;
    rig_plan(&a, p, ROUNDS);
    rig_run(&a, UINT64_MAX);
    rig_plan(&b, p, ROUNDS);
    b.loud = getenv("LOUD") != NULL;
    run_until(&b, 3 * SECOND + (int64_t)(rng_unit(&rng) * 3 * SECOND));
    int64_t now = sim_now_us(b.world);
    for (uint32_t i = 0; i < p->n; i++)
        sim_kill(b.world, i);
    for (uint32_t i = 0; i < p->n; i++) {
        run_until(&b, now += (int64_t)(rng_unit(&rng) * SECOND / 4));
        assert_int_equal(sim_restart(b.world, i), 0);
    }
    run_until(&b, now += (int64_t)(rng_unit(&rng) * SECOND / 2));
    for (uint32_t i = 0; i < p->n; i++)
        sim_ask_to_leave(b.world, i);
    run_until(&b, now + GRACEFUL_STOP_US + SECOND);
    for (uint32_t i = 0; i < p->n; i++) {
        int code;
        assert_true(sim_ended(b.world, i, &code));
        sim_kill(b.world, i);
        assert_int_equal(sim_restart(b.world, i), 0);
    }
    rig_run(&b, UINT64_MAX);
    compare(&a, &b, seed);
    rig_close(&a);
    rig_close(&b);
}

static void test_told_to_end_while_coming_back(void **state)
{
    const char *given = getenv("SEED");
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (uint64_t seed = 1; seed <= test_share_of(TOLD); seed++) {
            print_message("%s, %s, --overlap %u, SEED=%llu\n", plans[i].topology, plans[i].compress,
                          plans[i].overlap, (unsigned long long)seed);
            if (given == NULL || seed == strtoull(given, NULL, 10))
                told_while_coming_back(&plans[i], seed);
        }
}

/* A peer is asked to stop, but cannot finish its round, because a neighbour is silent. The peer
 * must still stop. */
static void test_one_is_told_to_end(void **state)
{
    struct rig r;
    int code = -1;
    (void)state;
    rig_plan(&r, &plans[0], ROUNDS);
    run_until(&r, 3 * SECOND);
    sim_stop(r.world, 2, true);
    run_until(&r, 3 * SECOND + SECOND / 10);
    sim_ask_to_leave(r.world, 1);
    run_until(&r, 3 * SECOND + GRACEFUL_STOP_US + SECOND / 2);
    assert_true(sim_ended(r.world, 1, &code));
    assert_int_equal(code, 0);
    sim_stop(r.world, 2, false); /* Lets the worker of the stopped peer finish its job. */
    run_until(&r, 8 * SECOND);
    rig_close(&r);
}

/* ---- checkpoints with false contents and correct hashes ---- */

/* Restarts peer 1 from a checkpoint in which bytes were changed. `what` describes the change. */
static void bring_up(struct rig *r, const char *what)
{
    int code = 0;
    r->quiet = true;
    assert_int_equal(sim_restart(r->world, 1), 0);
    run_until(r, sim_now_us(r->world) + 3 * SECOND);
    if (sim_ended(r->world, 1, &code) && code != 2 && code != 3)
        fail_msg("%s: exit code %d", what, code);
    r->quiet = false;
}

static struct state *newest(struct rig *r)
{
    return &r->world->peers[1].checkpoints.slot[0].state;
}

/* A checkpoint contains a delta that does not decode, as if a neighbour had sent it. The resuming
 * peer must refuse the checkpoint. */
static void test_a_delta_that_does_not_decode(void **state)
{
    struct rig r;
    int code = -1;
    bool found = false;
    (void)state;
    rig_plan(&r, &plans[1], ROUNDS);
    run_until(&r, 6 * SECOND);
    sim_kill(r.world, 1);
    struct state *s = newest(&r);
    for (size_t i = 0; i < s->n_sections; i++)
        if (strcmp(s->section[i].name, "delta.0") == 0) {
            memset(s->bytes + s->section[i].at + 8, 0xff, s->section[i].n - 8);
            found = true;
        }
    assert_true(found);
    bring_up(&r, "a bad delta");
    assert_true(sim_ended(r.world, 1, &code));
    assert_int_equal(code, 2);
    rig_close(&r);
}

/* Any byte of a checkpoint is changed. The peer must continue or report the error, and the others
 * must continue. */
static void test_any_byte_may_be_another(void **state)
{
    const char *given = getenv("SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    struct rng rng = rng_stream(rng_key(seed, RNG_TEST, 3, 18));
    (void)state;
    for (size_t plan = 0; plan < 4; plan++) {
        struct rig r;
        rig_plan(&r, &plans[plan], 100000);
        for (int k = 0; k < 60; k++) {
            char what[64];
            run_until(&r, sim_now_us(r.world) + 5 * SECOND);
            sim_kill(r.world, 1);
            struct state *s = newest(&r);
            if (s->n == 0)
                fail_msg("SEED=%llu: there is no checkpoint", (unsigned long long)seed);
            size_t at = (size_t)rng_below(&rng, s->n);
            uint8_t was = s->bytes[at];
            s->bytes[at] ^= (uint8_t)(1 + rng_below(&rng, 255));
            snprintf(what, sizeof what, "SEED=%llu, plan %zu, byte %zu of %zu",
                     (unsigned long long)seed, plan, at, s->n);
            bring_up(&r, what);
            sim_kill(r.world, 1);
            s->bytes[at] = was;
            assert_int_equal(sim_restart(r.world, 1), 0);
        }
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_killed),
        cmocka_unit_test(test_accuracy_keeps_its_round),
        cmocka_unit_test(test_checkpoint_without_use),
        cmocka_unit_test(test_all_are_told_to_end),
        cmocka_unit_test(test_told_to_end_while_coming_back),
        cmocka_unit_test(test_one_is_told_to_end),
        cmocka_unit_test(test_a_delta_that_does_not_decode),
        cmocka_unit_test(test_any_byte_may_be_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
