/* tests/unit/sim_ending.c -- verdicts of a node after other peers died, left or came back. */
#include "peer/node/verdict.h"
#include "peer/run/exit.h"
#include "peer/sim/faults.h"
#include "sim_rig.h"

enum { SECOND = 1000 * 1000, ROUNDS = 600 };

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

/* With a quorum timeout of 1 s, the last peer continues alone. A hung peer is noticed after 2 s. */
static void impatient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = SECOND;
    c->worker_limit_us = 2 * SECOND;
}

/* Thirty seconds of training over sessions as TCP has them. */
static void rig_with_quorum(struct rig *r, uint32_t n, const char *topology, double quorum)
{
    rig_init(r, n, 300, topology, "qsgd:4", 0);
    r->eta = 0.05f;
    r->noise = 1.0f;
    r->config.step_us = 50 * 1000;
    r->config.sessions = true;
    r->config.configure = impatient;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.run.quorum = quorum;
    rig_open(r);
}

static void rig_training(struct rig *r, uint32_t n, const char *topology)
{
    rig_with_quorum(r, n, topology, 0.5);
}

/* Returns the verdict of a peer, with the exit code of its own result. */
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

/* Peers that were no neighbours of the dead know it all the same. */
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
    assert_true(held && !rig_progress(&r, 0).holds); /* For as long as it has patience. */
    rig_end(&r);
    check(&r, 0, VERDICT_NO_QUORUM, 1, 4, "peer-1 peer-2 peer-3");
    rig_close(&r);
}

static void twenty_seconds(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 20 * SECOND;
}

/* At 3 s, peers 2 to 4 of five are killed and peer 1 loses its connection to peer 0. Peer 0 is stopped
 * from 10 s to 50 s. The pause must not count towards its quorum timeout of 20 s: at 58 s peer 0 has
 * waited for about 12 s, so it still holds. */
static void test_pause_uses_no_quorum_timeout(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 5, 300, "ring", "qsgd:4", 0);
    r.eta = 0.05f;
    r.config.step_us = 50 * 1000;
    r.config.sessions = true;
    r.config.configure = twenty_seconds;
    r.config.run.rounds = ROUNDS;
    r.config.run.final_drift = 1e-3;
    r.config.run.quorum = 0.5;
    r.loud = getenv("LOUD") != NULL;
    rig_open(&r);
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

/* A peer that leaves cleanly is no longer a member and claims nothing. */
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

/* A machine that comes back, with its identity or with another, is the same member. */
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

/* A peer that cannot store its model has failed and belongs to no consensus. The verdicts of the
 * others do not depend on it. */
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

/* A hung peer is not dead, but it does not end with the others. */
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

static void patient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 600 * (int64_t)SECOND;
    c->worker_limit_us = 2 * SECOND;
}

/* Peer 2 is away while the others finish and go: how its run ended `within` so long of its return. */
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

/* A peer whose worker hung has learned that the others finished, and ends when the worker is
 * free. */
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

/* The consensus phase waits for workers that hang as it begins: they are soon done, and then all agree. */
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

/* Two of three peers hang until the third has ended by itself. When they continue, they have no
 * consensus with it. */
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

/* A peer that was stopped or disconnected finds no other peer, and notices long before --quorum-
 * timeout that the run has ended. */
static void test_away_and_deserted(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct rig r;
        rig_init(&r, 4, 300, "ring", "qsgd:4", 0);
        r.eta = 0.05f;
        r.config.step_us = 50 * 1000;
        r.config.sessions = true;
        r.config.configure = patient;
        r.config.run.rounds = ROUNDS;
        r.config.run.final_drift = 1e-3;
        r.config.run.quorum = 0.5;
        rig_open(&r);
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

/* Without a consensus phase nothing is claimed of the distance. */
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

/* A loss that is not finite ends the run there, the second time. */
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
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_no_quorum),
        cmocka_unit_test(test_pause_uses_no_quorum_timeout),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_coming_back),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_away_and_told),
        cmocka_unit_test(test_hung_at_the_end),
        cmocka_unit_test(test_back_too_late),
        cmocka_unit_test(test_away_and_deserted),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_diverged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
