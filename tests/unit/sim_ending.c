/* tests/unit/sim_ending.c -- verdicts of a node after other peers died, left or came back. */
#include "peer/node/result/certificate.h"
#include "peer/node/result/verdict.h"
#include "peer/run/exit.h"
#include "peer/sim/faults.h"
#include "sim_rig.h"

enum { SECOND = 1000 * 1000, ROUNDS = 600 };

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

/* Sets a quorum timeout of 1 s, after which a peer without a quorum continues alone. Sets a
 * straggler timeout of 2 s, after which the others no longer wait for a peer whose worker hangs. */
static void impatient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = SECOND;
    c->worker_limit_us = 2 * SECOND;
}

static void patient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 600 * (int64_t)SECOND;
    c->worker_limit_us = 2 * SECOND;
}

/* Prepares a run that trains for 30 s over simulated TCP sessions. */
static void rig_prepare(struct rig *r, uint32_t n, const char *topology)
{
    rig_init(r, n, 300, topology, "qsgd:4", 0);
    r->eta = 0.05f;
    r->noise = 1.0f;
    r->config.step_us = 50 * 1000;
    r->config.sessions = true;
    r->config.configure = impatient;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
}

static void rig_with_quorum(struct rig *r, uint32_t n, const char *topology, double quorum)
{
    rig_prepare(r, n, topology);
    r->config.run.quorum = quorum;
    rig_open(r);
}

static void rig_with_policy(struct rig *r, uint32_t n, const char *topology, enum run_policy policy)
{
    rig_prepare(r, n, topology);
    r->config.run.policy = policy;
    rig_open(r);
}

static void rig_training(struct rig *r, uint32_t n, const char *topology)
{
    rig_with_quorum(r, n, topology, 0.5);
}

/* Returns the verdict of a peer, and asserts that its exit code agrees. */
static struct verdict ended(const struct rig *r, uint32_t peer, struct verdict_facts *f)
{
    struct verdict o;
    int code = -1;
    node_facts(sim_node(r->world, peer), f);
    verdict_judge(&o, f);
    if (!sim_ended(r->world, peer, &code) || code != o.exit_code)
        fail_msg("peer-%u: exit code %d, though '%s'", peer, code, o.text);
    return o;
}

static void check(const struct rig *r, uint32_t peer, enum verdict_kind kind, uint32_t n_among,
                  uint32_t n_members, const char *dead)
{
    char names[VERDICT_DEAD_MAX * (WIRE_NAME_MAX + 1)] = "";
    struct verdict_facts f;
    struct verdict o = ended(r, peer, &f);
    for (uint32_t i = 0; i < f.n_dead; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? " " : "",
                 f.dead[i]);
    if (o.kind != kind || f.n_among != n_among || f.n_members != n_members
        || strcmp(names, dead) != 0)
        fail_msg("peer-%u: '%s', expected %s of %u of %u, dead '%s'", peer, o.text,
                 verdict_word(kind), n_among, n_members, dead);
}

static void rig_end(struct rig *r)
{
    run_until(r, 120 * (int64_t)SECOND);
}

static void test_all_there(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 5, "ring");
    rig_end(&r);
    for (uint32_t i = 0; i < 5; i++)
        check(&r, i, VERDICT_CONSENSUS, 5, 5, "");
    rig_close(&r);
}

/* The stored promise of peer 1 is damaged, so it neither votes nor reports its model. Its model is
 * within the target, and it is connected to the end. The reasons that the peers give must not deny
 * that. */
static void damage_promise(void *self, uint32_t peer, struct node_config *c)
{
    static const uint8_t damaged[1] = {7};
    impatient(self, peer, c);
    if (peer == 1)
        c->promise = (struct bytes){damaged, sizeof damaged};
}

static void test_damaged_promise(void **state)
{
    struct rig r;
    struct verdict_facts f;
    (void)state;
    rig_prepare(&r, 4, "complete");
    r.config.configure = damage_promise;
    rig_open(&r);
    rig_end(&r);
    for (uint32_t i = 0; i < 4; i++) {
        struct verdict o = ended(&r, i, &f);
        assert_int_equal(o.kind, i == 1 ? VERDICT_AWAY : VERDICT_CONSENSUS);
        assert_non_null(
            strstr(o.text, i == 1 ? "the certificate of the run does not cover the model of "
                                    "this peer; finished: "
                                  : "peer-1: it reported no model within --final-drift"));
    }
    rig_close(&r);
}

/* Damages the stored promise of each peer except peer 0. */
static void damage_promises(void *self, uint32_t peer, struct node_config *c)
{
    damage_promise(self, peer > 0 ? 1 : 0, c);
}

/* Only one of four peers can vote, so there is no quorum for a certificate. All models are within
 * the target. Without a certificate no peer may claim consensus. */
static void test_no_success_without_certificate(void **state)
{
    struct rig r;
    struct verdict_facts f;
    (void)state;
    rig_prepare(&r, 4, "complete");
    r.config.configure = damage_promises;
    r.config.run.quorum = 0.5;
    rig_open(&r);
    rig_end(&r);
    for (uint32_t i = 0; i < 4; i++) {
        struct verdict o = ended(&r, i, &f);
        assert_int_equal(o.kind, VERDICT_UNKNOWN);
        assert_int_equal(o.exit_code, 3);
        assert_non_null(strstr(o.text, "the members did not agree on a certificate"));
    }
    rig_close(&r);
}

/* All live peers must know which peers are dead, also if these were not their neighbours. */
static void test_deaths(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 8, "ring");
    run_until(&r, 5 * SECOND);
    sim_kill(r.world, 3);
    sim_power_off(r.world, 5);
    rig_end(&r);
    for (uint32_t i = 0; i < 8; i++)
        if (i != 3 && i != 5)
            check(&r, i, VERDICT_CONSENSUS, 6, 8, "peer-3 peer-5");
    rig_close(&r);
}

/* A peer is killed shortly before training ends. The others declare it dead during the consensus
 * phase, each at another time. With some seeds, peer 0 rebuilds its graph when its neighbours have
 * just finished. All three must end with consensus. */
static void test_death_during_the_consensus_phase(void **state)
{
    (void)state;
    for (uint64_t seed = 91; seed <= 120; seed++) {
        struct rig r;
        rig_init(&r, 4, 300, "ring", "topk:0.05", 0);
        r.eta = 0.05f;
        r.noise = 1.0f;
        r.config.seed = seed;
        r.config.step_us = 5 * 1000;
        r.config.step_spread = 0.3;
        r.config.jitter_us = 300;
        r.config.sessions = true;
        r.config.run.rounds = 400;
        r.config.run.final_drift = 1e-3;
        r.config.run.quorum = 0.5;
        rig_open(&r);
        /* The processes start at different times, so that their timers expire at different
         * times. */
        struct rng rng = rng_stream(rng_key(seed, RNG_TEST, 4, 0));
        for (uint32_t i = 0; i < 4; i++)
            sim_stop(r.world, i, true);
        for (uint32_t i = 0; i < 4; i++) {
            (void)sim_run_to(r.world, sim_now_us(r.world) + (int64_t)rng_below(&rng, SECOND / 10));
            sim_stop(r.world, i, false);
        }
        run_until(&r, SECOND + (int64_t)(seed * 2654435761 % 700) * 1000);
        sim_kill(r.world, 2);
        rig_end(&r);
        for (uint32_t i = 0; i < 4; i++)
            if (i != 2)
                check(&r, i, VERDICT_CONSENSUS, 3, 4, "peer-2");
        rig_close(&r);
    }
}

/* The final model of one peer is farther from the mean than the bound that this peer has computed.
 * The distance of the final models then exceeds the target, so the first attempt of the finish
 * protocol must be aborted. The peers must continue to mix, and end with consensus in the second
 * attempt. */
static void test_final_models_apart_mix_on(void **state)
{
    enum { N = 5 };
    struct rig r;
    (void)state;
    rig_training(&r, N, "ring");
    r.peers[2].changes = true;
    rig_end(&r);
    for (uint32_t i = 0; i < N; i++) {
        check(&r, i, VERDICT_CONSENSUS, N, N, "");
        assert_int_equal(certificate_attempt(sim_node(r.world, i)), 1);
    }
    rig_close(&r);
}

/* Without faults, the first attempt of the finish protocol succeeds. */
static void test_one_attempt_without_faults(void **state)
{
    static const char *const topology[] = {"ring", "complete", "star"};
    (void)state;
    for (size_t k = 0; k < sizeof topology / sizeof *topology; k++) {
        struct rig r;
        rig_training(&r, 6, topology[k]);
        rig_end(&r);
        for (uint32_t i = 0; i < 6; i++) {
            assert_int_equal(certificate_attempt(sim_node(r.world, i)), 0);
            check(&r, i, VERDICT_CONSENSUS, 6, 6, "");
        }
        rig_close(&r);
    }
}

static void test_no_quorum(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 4, "ring");
    run_until(&r, 5 * SECOND);
    for (uint32_t i = 1; i < 4; i++)
        sim_kill(r.world, i);
    bool held = false;
    for (int64_t t = 5 * SECOND; t < 40 * (int64_t)SECOND; t += SECOND / 4) {
        run_until(&r, t);
        held |= rig_progress(&r, 0).holds;
    }
    /* A peer below the quorum must stop training (`holds`), but only until its quorum timeout. */
    assert_true(held && !rig_progress(&r, 0).holds);
    rig_end(&r);
    check(&r, 0, VERDICT_NO_QUORUM, 1, 4, "peer-1 peer-2 peer-3");
    rig_close(&r);
}

/* Opens a ring of n peers over sessions, with exact gradients. `configure` changes the
 * configuration of each node. */
static void open_without_noise(struct rig *r, uint32_t n,
                               void (*configure)(void *, uint32_t, struct node_config *))
{
    rig_init(r, n, 300, "ring", "qsgd:4", 0);
    r->eta = 0.05f;
    r->config.step_us = 50 * 1000;
    r->config.sessions = true;
    r->config.configure = configure;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.run.quorum = 0.5;
    rig_open(r);
}

static void twenty_seconds(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 20 * SECOND;
}

/* At 3 s, peers 2 to 4 of five are killed and peer 1 loses its connection to peer 0. Peer 0 is
 * stopped from 10 s to 50 s. The pause must not count towards its quorum timeout of 20 s: at 58 s
 * peer 0 has waited for about 12 s, so it still waits for a quorum. */
static void test_pause_uses_no_quorum_timeout(void **state)
{
    struct rig r;
    (void)state;
    open_without_noise(&r, 5, twenty_seconds);
    run_until(&r, 3 * SECOND);
    for (uint32_t i = 2; i < 5; i++)
        sim_kill(r.world, i);
    sim_cut(r.world, 0, 1, true);
    sim_cut(r.world, 1, 0, true);
    run_until(&r, 10 * SECOND);
    assert_true(rig_progress(&r, 0).holds);
    sim_stop(r.world, 0, true);
    run_until(&r, 50 * (int64_t)SECOND);
    sim_stop(r.world, 0, false);
    run_until(&r, 52 * (int64_t)SECOND);
    assert_true(rig_progress(&r, 0).holds);
    run_until(&r, 58 * (int64_t)SECOND);
    assert_true(rig_progress(&r, 0).holds);
    rig_close(&r);
}

/* A peer that leaves cleanly is no longer a member, and its verdict claims no consensus. */
static void test_leaving(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 4, "ring");
    run_until(&r, 5 * SECOND);
    sim_ask_to_leave(r.world, 2);
    rig_end(&r);
    struct verdict_facts f;
    assert_int_equal(ended(&r, 2, &f).kind, VERDICT_STOPPED);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 2)
            check(&r, i, VERDICT_CONSENSUS, 3, 3, "");
    rig_close(&r);
}

/* One peer has ended its consensus phase, and another peer leaves or dies before the others end
 * theirs. The others knew that all models were within the target, and must keep this knowledge: no
 * later measurement can include the model of the peer that has ended. */
static void test_losing_a_member_at_the_end(void **state)
{
    static const enum run_policy policy[] = {RUN_SYNC, RUN_SSP, RUN_ASYNC};
    (void)state;
    for (uint32_t k = 0; k < 12; k++) {
        struct rig r;
        uint32_t first = 0;
        rig_with_policy(&r, 5, k < 6 ? "complete" : "ring", policy[k % 6 / 2]);
        while (rig_progress(&r, first).phase < NODE_FINISHING && sim_step(r.world))
            first = (first + 1) % 5;
        uint32_t lost = (first + 1) % 5;
        assert_int_equal(rig_progress(&r, lost).phase, NODE_CONSENSUS);
        if (k % 2 == 0)
            sim_ask_to_leave(r.world, lost);
        else
            sim_kill(r.world, lost);
        rig_end(&r);
        for (uint32_t i = 0; i < 5; i++) {
            struct verdict_facts f;
            if (i != lost && ended(&r, i, &f).kind != VERDICT_CONSENSUS)
                fail_msg("run %u, peer-%u after peer-%u and the loss of peer-%u: %s", k, i, first,
                         lost, ended(&r, i, &f).text);
        }
        rig_close(&r);
    }
}

/* A machine that returns, with its old identity or a new one, must count as the same member. */
static void test_coming_back(void **state)
{
    (void)state;
    for (int anew = 0; anew < 2; anew++) {
        struct rig r;
        rig_training(&r, 4, "ring");
        run_until(&r, 5 * SECOND);
        sim_kill(r.world, 1);
        run_until(&r, 9 * SECOND);
        int err = anew ? sim_restart_as_new(r.world, 1) : sim_restart(r.world, 1);
        assert_int_equal(err, 0);
        rig_end(&r);
        for (uint32_t i = 0; i < 4; i++)
            check(&r, i, VERDICT_CONSENSUS, 4, 4, "");
        struct verdict_facts f;
        (void)ended(&r, 1, &f);
        assert_true(f.joined_round > 0 && f.rounds_claimed == ROUNDS);
        rig_close(&r);
    }
}

/* For each peer: number of bytes of the last promise (the stored vote in the finish protocol), and
 * the callback that stores it. */
static struct kept_promise
{
    bool (*keep)(void *self, const uint8_t *bytes, size_t n);
    void *self;
    size_t n;
} kept_promise[3];

static bool keep_and_count(void *self, const uint8_t *bytes, size_t n)
{
    struct kept_promise *k = self;
    k->n = n;
    return k->keep(k->self, bytes, n);
}

static void count_promises(void *self, uint32_t peer, struct node_config *c)
{
    impatient(self, peer, c);
    kept_promise[peer] = (struct kept_promise){c->keep_promise, c->keep_promise_self, 0};
    c->keep_promise = keep_and_count;
    c->keep_promise_self = &kept_promise[peer];
}

static bool all_have_accepted(void)
{
    bool all = true;
    for (uint32_t i = 0; i < 3; i++)
        all &= kept_promise[i].n > FINISH_PROMISE_HEAD;
    return all;
}

static void copy_models(const struct rig *r, float *x)
{
    const struct segment *s;
    size_t n_segments, n;
    for (uint32_t i = 0; i < 3; i++)
        memcpy(x + i * r->dim, node_model(sim_node(r->world, i), &s, &n_segments, &n),
               r->dim * sizeof *x);
}

/* Two or all three peers are killed after all have accepted the certificate, and before they know
 * that it is decided. After their restart they must load their stored models. Without lock step
 * they would otherwise compute other models, which the certificate does not cover. */
static void test_killed_after_acceptance(void **state)
{
    (void)state;
    for (uint32_t n_killed = 2; n_killed <= 3; n_killed++) {
        struct rig r;
        float before[3 * 300], after[3 * 300];
        rig_prepare(&r, 3, "complete");
        r.config.latency_us = 300 * 1000;
        r.config.run.policy = RUN_ASYNC;
        r.config.run.quorum = 0.5;
        r.config.checkpoint_us = SECOND;
        r.config.configure = count_promises;
        rig_open(&r);
        while (!all_have_accepted() && sim_step(r.world))
            ;
        for (uint32_t i = 0; i < 3; i++)
            assert_null(certificate_known(sim_node(r.world, i)));
        copy_models(&r, before);
        for (uint32_t i = 0; i < n_killed; i++)
            sim_kill(r.world, i);
        run_until(&r, sim_now_us(r.world) + SECOND / 10);
        for (uint32_t i = 0; i < n_killed; i++)
            assert_int_equal(sim_restart(r.world, i), 0);
        rig_end(&r);
        for (uint32_t i = 0; i < 3; i++)
            check(&r, i, VERDICT_CONSENSUS, 3, 3, "");
        copy_models(&r, after);
        assert_memory_equal(before, after, sizeof before);
        /* A process that starts after the end, when no other peer is left, ends with the same
         * result. */
        sim_kill(r.world, 1);
        assert_int_equal(sim_restart(r.world, 1), 0);
        run_until(&r, sim_now_us(r.world) + 40 * (int64_t)SECOND);
        check(&r, 1, VERDICT_CONSENSUS, 3, 3, "");
        copy_models(&r, after);
        assert_memory_equal(before, after, sizeof before);
        rig_close(&r);
    }
}

/* Returns the first peer from `from` on that knows the certificate of the run, or n if none does. */
static uint32_t first_with_certificate(const struct rig *r, uint32_t from, uint32_t n)
{
    uint32_t i = from;
    while (i < n && certificate_known(sim_node(r->world, i)) == NULL)
        i++;
    return i;
}

/* A restarted process reads a damaged promise. */
static void damage_accepted_ballot(void *self, uint32_t peer, struct node_config *c)
{
    static uint8_t damaged[FINISH_PROMISE_MAX];
    count_promises(self, peer, c);
    if (c->promise.n == 0)
        return;
    memcpy(damaged, c->promise.p, c->promise.n);
    /* The accepted ballot is now higher than the promised one, so the promise is refused. The hash
     * of the reported model is unchanged. */
    damaged[FINISH_BALLOT + 4] ^= 1;
    c->promise.p = damaged;
}

/* Returns the first peer that has accepted a proposal, or 3 if no peer has. */
static uint32_t first_that_accepted(void)
{
    uint32_t i = 0;
    while (i < 3 && kept_promise[i].n <= FINISH_PROMISE_HEAD)
        i++;
    return i;
}

/* As patient(), but processes know no members at their start, and find each other by names. */
static void by_name(void *self, uint32_t peer, struct node_config *c)
{
    static const char *const names[] = {"all"};
    patient(self, peer, c);
    c->n_known = 0;
    c->bootstrap = names;
    c->n_bootstrap = 1;
}

static uint32_t resolve_all(void *self, uint32_t peer, const char *name,
                            const char *address[NODE_SEEDS_MAX])
{
    (void)self, (void)peer, (void)name;
    address[0] = "peer-0:1";
    address[1] = "peer-1:1";
    address[2] = "peer-2:1";
    return 3;
}

/* As check(), but the names of dead members may be unknown. */
static void check_consensus(const struct rig *r, uint32_t peer, uint32_t n_among,
                            uint32_t n_members)
{
    struct verdict_facts f;
    struct verdict o = ended(r, peer, &f);
    if (o.kind != VERDICT_CONSENSUS || f.n_among != n_among || f.n_members != n_members)
        fail_msg("peer-%u: '%s', expected consensus of %u of %u", peer, o.text, n_among, n_members);
}

/* The coordinator is killed after it has stored the certificate, and before any other peer has
 * received it. Its next process must not end before the other peers have the certificate, because
 * no other process has it. After the end, when no other process is left, a further process must end
 * in the time after which an unreachable member counts as dead. `dead`: peer 0 is killed before the
 * certificate, and its refused dials must not count against the coordinator. */
static void check_only_one_with_certificate(uint32_t n, int64_t checkpoint_us, int64_t away_us,
                                            bool dead)
{
    struct rig r;
    uint32_t k;
    rig_prepare(&r, n, "ring");
    r.config.latency_us = 300 * 1000;
    r.config.run.policy = RUN_ASYNC;
    r.config.run.quorum = 0.5;
    r.config.checkpoint_us = checkpoint_us;
    r.config.configure = by_name;
    r.config.resolve = resolve_all;
    r.config.run.min_peers = n;
    rig_open(&r);
    while (dead && certificate_model(sim_node(r.world, 0)) == CERTIFICATE_MIXING
           && sim_step(r.world))
        ;
    if (dead)
        sim_kill(r.world, 0);
    do
        k = first_with_certificate(&r, dead, n);
    while (k == n && sim_step(r.world));
    assert_true(k < n);
    /* The messages with the certificate are lost with the sessions. */
    for (uint32_t i = dead; i < n; i++)
        if (i != k)
            sim_reset(r.world, k, i, 0, 0);
    sim_kill(r.world, k);
    run_until(&r, sim_now_us(r.world) + away_us);
    for (uint32_t i = dead; i < n; i++)
        assert_true(i == k || certificate_known(sim_node(r.world, i)) == NULL);
    assert_int_equal(sim_restart(r.world, k), 0);
    run_until(&r, sim_now_us(r.world) + 60 * (int64_t)SECOND);
    for (uint32_t i = dead; i < n; i++)
        check_consensus(&r, i, n - dead, n);
    sim_kill(r.world, k);
    assert_int_equal(sim_restart(r.world, k), 0);
    run_until(&r, sim_now_us(r.world) + 15 * (int64_t)SECOND);
    check_consensus(&r, k, n - dead, n);
    rig_close(&r);
}

static void test_only_one_with_certificate(void **state)
{
    (void)state;
    for (int checkpoints = 0; checkpoints < 2; checkpoints++)
        for (int64_t away_us = SECOND / 10; away_us < 9 * SECOND; away_us += 2 * SECOND) {
            check_only_one_with_certificate(2, checkpoints * SECOND, away_us, false);
            /* With three peers, the other two have a quorum and decide soon. */
            if (away_us < SECOND)
                check_only_one_with_certificate(3, checkpoints * SECOND, away_us, false);
            check_only_one_with_certificate(3, checkpoints * SECOND, away_us, true);
        }
}

/* Number of votes with a proposal that each peer still refuses to store, and number of messages that
 * it has printed about its votes. */
static uint32_t n_refusals[3], n_vote_notes[3];

static bool refuse_acceptance(void *self, const uint8_t *bytes, size_t n)
{
    struct kept_promise *k = self;
    uint32_t peer = (uint32_t)(k - kept_promise);
    if (n > FINISH_PROMISE_HEAD && n_refusals[peer] > 0) {
        n_refusals[peer]--;
        return false;
    }
    return k->keep(k->self, bytes, n);
}

static void refuse_acceptances(void *self, uint32_t peer, struct node_config *c)
{
    count_promises(self, peer, c);
    c->keep_promise = refuse_acceptance;
}

static void count_vote_notes(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    n_vote_notes[peer] += strstr(note->text, "the vote of this peer") != NULL;
}

/* The disk of one of two peers has room for a promise, but not for an acceptance, in several ballots.
 * The peer prints one warning and, when its acceptance is stored, one message. */
static void test_vote_notes_do_not_alternate(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        struct rig r;
        rig_prepare(&r, 2, "complete");
        r.config.run.quorum = 1;
        r.config.configure = refuse_acceptances;
        r.config.note = count_vote_notes;
        for (uint32_t i = 0; i < 2; i++) {
            n_refusals[i] = i == k ? 4 : 0;
            n_vote_notes[i] = 0;
        }
        rig_open(&r);
        rig_end(&r);
        for (uint32_t i = 0; i < 2; i++) {
            check(&r, i, VERDICT_CONSENSUS, 2, 2, "");
            assert_int_equal(n_refusals[i], 0);
            assert_int_equal(n_vote_notes[i], i == k ? 2 : 0);
        }
        rig_close(&r);
    }
}

/* The coordinator is killed after it has accepted its own proposal, and its stored promise is
 * damaged. Its next process must use no part of the promise, so it does not take its stored model
 * back, but resumes from its checkpoint. It must not end before the other peers decide. */
static void test_damaged_promise_after_acceptance(void **state)
{
    (void)state;
    for (uint32_t policy = RUN_SYNC; policy <= RUN_ASYNC; policy++) {
        struct rig r;
        struct verdict_facts f;
        rig_prepare(&r, 3, "complete");
        r.config.latency_us = 30 * 1000;
        r.config.run.policy = policy;
        r.config.checkpoint_us = SECOND;
        r.config.configure = damage_accepted_ballot;
        rig_open(&r);
        while (first_that_accepted() == 3 && sim_step(r.world))
            ;
        uint32_t killed = first_that_accepted();
        sim_kill(r.world, killed);
        assert_int_equal(sim_restart(r.world, killed), 0);
        run_until(&r, sim_now_us(r.world) + 60 * (int64_t)SECOND);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(ended(&r, i, &f).kind, i == killed ? VERDICT_AWAY : VERDICT_CONSENSUS);
        rig_close(&r);
    }
}

static bool promise_lost;

static void lose_promise(void *self, uint32_t peer, struct node_config *c)
{
    impatient(self, peer, c);
    if (promise_lost)
        c->promise = (struct bytes){NULL, 0};
}

/* A process starts after the end of the run, has no checkpoint, and meets no other peer. It ends with
 * the certificate that an earlier process has stored, and with the stored model. If only a model is
 * stored, the process does not train alone, although --min-peers is 1. */
static void test_after_the_end_without_checkpoint(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 3; n += 2)
        for (int lost = 0; lost < 2; lost++) {
            struct rig r;
            struct verdict_facts f;
            const struct segment *segment;
            size_t n_segments, n_params;
            float before[300];
            rig_prepare(&r, n, "complete");
            r.config.run.min_peers = 1;
            r.config.configure = lose_promise;
            promise_lost = false;
            rig_open(&r);
            rig_end(&r);
            check(&r, 0, VERDICT_CONSENSUS, n, n, "");
            memcpy(before, node_model(sim_node(r.world, 0), &segment, &n_segments, &n_params),
                   sizeof before);
            sim_kill(r.world, 0);
            promise_lost = lost > 0;
            assert_int_equal(sim_restart(r.world, 0), 0);
            run_until(&r, sim_now_us(r.world) + 40 * (int64_t)SECOND);
            if (lost > 0) {
                assert_int_equal(ended(&r, 0, &f).kind, VERDICT_AWAY);
                assert_int_equal(rig_progress(&r, 0).round, 0);
            } else {
                check(&r, 0, VERDICT_CONSENSUS, n, n, "");
                assert_memory_equal(
                    before, node_model(sim_node(r.world, 0), &segment, &n_segments, &n_params),
                    sizeof before);
            }
            rig_close(&r);
        }
}

/* A peer that cannot store its model has failed and belongs to no consensus. The verdicts of the
 * others must not depend on it. */
static void test_full_disk(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 5, "ring");
    sim_fill_disk(r.world, 2, true);
    rig_end(&r);
    for (uint32_t i = 0; i < 5; i++)
        if (i != 2)
            check(&r, i, VERDICT_CONSENSUS, 4, 5, "peer-2");
    struct verdict_facts f;
    struct verdict o = ended(&r, 2, &f);
    assert_int_equal(o.kind, VERDICT_FAILED);
    assert_int_equal(o.exit_code, CMD_FAILED);
    rig_close(&r);
}

/* A peer whose worker hangs must not count as dead, nor as one of the peers in consensus. */
static void test_stuck(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 4, "ring");
    run_until(&r, 5 * SECOND);
    sim_hang(r.world, 2, true);
    run_until(&r, 40 * (int64_t)SECOND);
    for (uint32_t i = 0; i < 4; i++) {
        struct verdict_facts f;
        node_facts(sim_node(r.world, i), &f);
        if (i != 2)
            assert_true(f.n_among == 3 && f.n_members == 4 && f.n_dead == 0);
    }
    rig_close(&r);
}

/* Peer 2 was away while the others finished and left. Within `within_us` of its return, it must end
 * with the verdict that the run ended without it. */
static void check_away(struct rig *r, int64_t within_us, uint32_t n_finished, uint32_t n_dead)
{
    struct verdict_facts f;
    int code;
    run_until(r, sim_now_us(r->world) + within_us);
    assert_true(sim_ended(r->world, 2, &code));
    struct verdict o = ended(r, 2, &f);
    if (o.kind != VERDICT_AWAY || o.exit_code != CMD_APART || f.n_among != 1 || f.n_members != 4
        || f.n_finished != n_finished || f.n_dead != n_dead || f.rounds_claimed >= ROUNDS)
        fail_msg("'%s', %u finished, %u dead", o.text, f.n_finished, f.n_dead);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 2)
            check(r, i, VERDICT_CONSENSUS, 3, 4, n_finished > 0 ? "" : "peer-2");
}

/* The worker of peer 2 hangs while the others finish. The peer has learned that they finished, and
 * must end when its worker is free. */
static void test_away_and_told(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 4, "ring");
    run_until(&r, 5 * SECOND);
    sim_hang(r.world, 2, true);
    run_until(&r, 120 * (int64_t)SECOND);
    sim_hang(r.world, 2, false);
    check_away(&r, SECOND, 3, 0);
    rig_close(&r);
}

/* Two workers hang when the consensus phase begins. The phase must wait for them, and all peers
 * must then agree. */
static void test_hung_at_the_end(void **state)
{
    struct rig r;
    (void)state;
    rig_training(&r, 4, "ring");
    while (rig_progress(&r, 0).round < ROUNDS - 5)
        run_until(&r, sim_now_us(r.world) + SECOND / 10);
    sim_hang(r.world, 1, true);
    sim_hang(r.world, 2, true);
    run_until(&r, sim_now_us(r.world) + 25 * (int64_t)SECOND);
    assert_int_equal(rig_progress(&r, 0).phase, NODE_CONSENSUS);
    sim_hang(r.world, 1, false);
    sim_hang(r.world, 2, false);
    rig_end(&r);
    rig_ended_well(&r, 1e-3);
    for (uint32_t i = 0; i < 4; i++)
        check(&r, i, VERDICT_CONSENSUS, 4, 4, "");
    rig_close(&r);
}

/* Two of three peers hang until the third has ended by itself. When they continue, the third must
 * not have claimed consensus with them. */
static void test_back_too_late(void **state)
{
    struct rig r;
    struct verdict_facts f;
    (void)state;
    rig_with_quorum(&r, 3, "complete", 0);
    run_until(&r, 5 * SECOND);
    sim_hang(r.world, 1, true);
    sim_hang(r.world, 2, true);
    while (rig_progress(&r, 0).phase != NODE_FINISHING)
        run_until(&r, sim_now_us(r.world) + SECOND / 10);
    sim_hang(r.world, 1, false);
    sim_hang(r.world, 2, false);
    rig_end(&r);
    struct verdict o = ended(&r, 0, &f);
    if (o.exit_code == CMD_OK || f.n_among != 1 || isfinite(f.distance))
        fail_msg("'%s'", o.text);
    rig_close(&r);
}

/* Asserts that `peer` ends within 60 s, with the verdict that the run ended while the peer was
 * away. */
static void check_deserted(struct rig *r, uint32_t peer)
{
    struct verdict_facts f;
    int code;
    run_until(r, sim_now_us(r->world) + 60 * (int64_t)SECOND);
    assert_true(sim_ended(r->world, peer, &code));
    struct verdict o = ended(r, peer, &f);
    if (o.kind != VERDICT_AWAY)
        fail_msg("peer-%u: '%s'", peer, o.text);
}

/* A peer is stopped in the consensus phase, until the others have got a certificate and left. When
 * it continues, it must notice that they have left, and not wait for --quorum-timeout. */
static void test_deserted(void **state)
{
    (void)state;
    for (int64_t k = 0; k < 5; k++) {
        struct rig r;
        rig_prepare(&r, 4, "ring");
        r.config.configure = patient;
        r.config.run.policy = RUN_SSP;
        r.config.run.quorum = 0.5;
        rig_open(&r);
        while (rig_progress(&r, 2).round < ROUNDS - 1)
            run_until(&r, sim_now_us(r.world) + SECOND / 100);
        run_until(&r, sim_now_us(r.world) + k * SECOND / 10);
        sim_stop(r.world, 2, true);
        run_until(&r, sim_now_us(r.world) + 200 * (int64_t)SECOND);
        sim_stop(r.world, 2, false);
        check_deserted(&r, 2);
        rig_close(&r);
    }
}

/* A peer freezes its model when it waits for the certificate. The first such peer is cut off until
 * the others have got a certificate and left. When the network works again, the first peer must
 * notice that the others have left. */
static void test_frozen_and_deserted(void **state)
{
    struct rig r;
    uint32_t first = 0;
    (void)state;
    rig_prepare(&r, 4, "ring");
    r.config.configure = patient;
    r.config.run.quorum = 0.5;
    rig_open(&r);
    while (certificate_model(sim_node(r.world, first)) == CERTIFICATE_MIXING) {
        run_until(&r, sim_now_us(r.world) + SECOND / 10000);
        first = (first + 1) % 4;
    }
    assert_null(certificate_known(sim_node(r.world, first)));
    for (int cut = 1; cut >= 0; cut--) {
        for (uint32_t i = 0; i < 4; i++) {
            if (i == first)
                continue;
            sim_cut(r.world, i, first, cut == 1);
            sim_cut(r.world, first, i, cut == 1);
        }
        run_until(&r, sim_now_us(r.world) + cut * 100 * (int64_t)SECOND);
    }
    assert_int_equal(certificate_model(sim_node(r.world, first)), CERTIFICATE_WITHIN);
    /* The certificate lists the peer as dead, because nothing is known about its model. */
    for (uint32_t i = 0; i < 4; i++) {
        struct verdict_facts f;
        if (i != first && (ended(&r, i, &f).kind != VERDICT_CONSENSUS || f.n_dead != 1))
            fail_msg("peer-%u: %u dead, %u absent", i, f.n_dead, f.n_absent);
    }
    check_deserted(&r, first);
    rig_close(&r);
}

/* Three of four peers are killed after they have frozen their models, before there is a certificate.
 * The verdict of the last peer must say that they had finished. */
static void test_finished_before_they_died(void **state)
{
    struct rig r;
    struct verdict_facts f;
    uint32_t n_frozen = 0;
    (void)state;
    rig_prepare(&r, 4, "ring");
    r.config.run.quorum = 0.5;
    rig_open(&r);
    while (n_frozen < 4) {
        run_until(&r, sim_now_us(r.world) + SECOND / 10000);
        n_frozen = 0;
        for (uint32_t i = 0; i < 4; i++)
            n_frozen += certificate_model(sim_node(r.world, i)) != CERTIFICATE_MIXING;
    }
    for (uint32_t i = 1; i < 4; i++)
        sim_kill(r.world, i);
    rig_end(&r);
    struct verdict o = ended(&r, 0, &f);
    if (o.kind != VERDICT_NO_QUORUM || f.n_dead != 3 || f.n_finished != 3)
        fail_msg("'%s': %u dead, %u finished", o.text, f.n_dead, f.n_finished);
    rig_close(&r);
}

/* A run of one peer must end at once after training. No other member can answer the finish
 * protocol, so the peer must not wait for it. */
static void test_single_peer(void **state)
{
    static const enum run_policy policies[] = {RUN_SYNC, RUN_SSP, RUN_ASYNC};
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        struct rig r;
        struct verdict_facts f;
        rig_prepare(&r, 1, "ring");
        r.config.run.min_peers = 1;
        r.config.run.policy = policies[i];
        rig_open(&r);
        while (rig_progress(&r, 0).round < ROUNDS)
            run_until(&r, sim_now_us(r.world) + SECOND);
        run_until(&r, sim_now_us(r.world) + 5 * SECOND);
        struct verdict o = ended(&r, 0, &f);
        if (o.kind != VERDICT_CONSENSUS)
            fail_msg("policy %d: '%s'", (int)policies[i], o.text);
        rig_close(&r);
    }
}

/* A peer is stopped shortly before training ends, for about as long as the others need to declare
 * it dead. When it continues, the others may have frozen their models, so that it has no neighbour
 * to mix with. It must wait for the finish protocol: the peers mix again, or it fetches a certified
 * model. */
static void test_stranded(void **state)
{
    bool back_in_time = false;
    (void)state;
    for (int64_t tenths = 45; tenths <= 65; tenths++) {
        struct rig r;
        struct verdict_facts f;
        rig_with_policy(&r, 4, "ring", RUN_SSP);
        while (rig_progress(&r, 2).round < ROUNDS - 1)
            run_until(&r, sim_now_us(r.world) + SECOND / 100);
        sim_stop(r.world, 2, true);
        run_until(&r, sim_now_us(r.world) + tenths * SECOND / 10);
        sim_stop(r.world, 2, false);
        run_until(&r, sim_now_us(r.world) + 120 * (int64_t)SECOND);
        for (uint32_t i = 0; i < 4; i++) {
            struct verdict o = ended(&r, i, &f);
            if (o.kind != VERDICT_CONSENSUS && !(i == 2 && o.kind == VERDICT_AWAY))
                fail_msg("peer-%u, stopped for %.1f s: '%s'", i, (double)tenths / 10, o.text);
            back_in_time |= certificate_attempt(sim_node(r.world, i)) == 1;
        }
        rig_close(&r);
    }
    assert_true(back_in_time);
}

/* A peer is stopped or disconnected while the others finish. On its return it finds no other peer,
 * and must notice long before --quorum-timeout that the run has ended. */
static void test_away_and_deserted(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct rig r;
        open_without_noise(&r, 4, patient);
        run_until(&r, 5 * SECOND);
        for (int on = 1; on >= 0; on--) {
            for (uint32_t i = 0; i < 4 && cut; i++)
                if (i != 2) {
                    sim_cut(r.world, 2, i, on);
                    sim_cut(r.world, i, 2, on);
                }
            if (!cut)
                sim_stop(r.world, 2, on);
            if (on)
                run_until(&r, 90 * (int64_t)SECOND);
        }
        check_away(&r, (cut ? 75 : 30) * (int64_t)SECOND, 0, 3);
        rig_close(&r);
    }
}

/* A run without a consensus phase must have a verdict that claims no distance. */
static void test_unasked(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 3, 300, "ring", "qsgd:4", 0);
    r.config.run.quorum = 0.5;
    rig_run(&r, UINT64_MAX);
    for (uint32_t i = 0; i < 3; i++)
        check(&r, i, VERDICT_UNASKED, 3, 3, "");
    rig_close(&r);
}

/* Makes local steps whose loss is NaN from round 20 on. The second such loss must end the run. */
static void lossless(void *self, float *x, uint64_t round, uint32_t n_steps,
                     struct trainer_report *report)
{
    rig_steps(self, x, round, n_steps, report);
    report->loss = round < 20 ? 1 : (double)NAN;
}

static int lossless_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                            char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = lossless;
    return err;
}

static void test_diverged(void **state)
{
    struct rig r;
    struct verdict_facts f;
    (void)state;
    rig_init(&r, 1, 300, "ring", "qsgd:4", 0);
    r.config.make_trainer = lossless_trainer;
    r.config.run.final_drift = 1e-3;
    rig_run(&r, UINT64_MAX);
    struct verdict o = ended(&r, 0, &f);
    assert_int_equal(o.kind, VERDICT_DIVERGED);
    assert_true(f.infinite);
    assert_int_equal(f.rounds_claimed, 22);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_there),
        cmocka_unit_test(test_final_models_apart_mix_on),
        cmocka_unit_test(test_one_attempt_without_faults),
        cmocka_unit_test(test_damaged_promise),
        cmocka_unit_test(test_no_success_without_certificate),
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_death_during_the_consensus_phase),
        cmocka_unit_test(test_no_quorum),
        cmocka_unit_test(test_pause_uses_no_quorum_timeout),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_losing_a_member_at_the_end),
        cmocka_unit_test(test_coming_back),
        cmocka_unit_test(test_killed_after_acceptance),
        cmocka_unit_test(test_only_one_with_certificate),
        cmocka_unit_test(test_vote_notes_do_not_alternate),
        cmocka_unit_test(test_damaged_promise_after_acceptance),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_away_and_told),
        cmocka_unit_test(test_hung_at_the_end),
        cmocka_unit_test(test_back_too_late),
        cmocka_unit_test(test_deserted),
        cmocka_unit_test(test_frozen_and_deserted),
        cmocka_unit_test(test_finished_before_they_died),
        cmocka_unit_test(test_single_peer),
        cmocka_unit_test(test_stranded),
        cmocka_unit_test(test_away_and_deserted),
        cmocka_unit_test(test_after_the_end_without_checkpoint),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_diverged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
