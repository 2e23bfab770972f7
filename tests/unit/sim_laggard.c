/* tests/unit/sim_laggard.c -- a process is killed when others have finished or are about to, and
 * returns. The returned process must end with the model of the finished peers, or report that it
 * does not have that model. */
#include "nn/math/vec.h"
#include "peer/node/result/verdict.h"
#include "peer/run/exit.h"
#include "peer/sim/faults.h"
#include "sim_rig.h"

enum { SECOND = 1000 * 1000, ROUNDS = 200, PEERS_MAX = 8 };

/* Settings of a simulated run. */
struct plan
{
    const char *topology, *compress;
    uint32_t n;
    int64_t step_us, checkpoint_us;
    double drift;
};

static const struct plan plans[] = {
    {"ring", "qsgd:4", 4, 50 * 1000, 2 * SECOND, 1e-3},
    {"ring", "qsgd:4", 5, 50 * 1000, 0, 1e-3},
    {"complete", "none", 3, 200 * 1000, SECOND / 4, 0.1},
    {"ring", "none", 2, 200 * 1000, SECOND / 4, 0.1},
    {"ring", "none", 6, 300 * 1000, SECOND / 4, 0.1},
};

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

static void run_for(struct rig *r, int64_t us)
{
    run_until(r, sim_now_us(r->world) + us);
}

static void patient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 60 * (int64_t)SECOND;
}

static void rig_plan(struct rig *r, const struct plan *p)
{
    rig_init(r, p->n, 300, p->topology, p->compress, 0);
    r->eta = 0.05f;
    r->noise = 0.3f;
    r->loud = getenv("LOUD") != NULL;
    r->config.step_us = p->step_us;
    r->config.latency_us = 2000;
    r->config.sessions = true;
    r->config.checkpoint_us = p->checkpoint_us;
    r->config.disk_us = SECOND / 10;
    r->config.configure = patient;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = p->drift;
    r->config.run.quorum = 0.5;
    rig_open(r);
}

/* Runs until some peer has its final model. Kills a peer that does not have its final model yet,
 * and returns its number. */
static uint32_t kill_laggard(struct rig *r)
{
    uint32_t n = r->config.n_peers, first = n, last = n;
    while (first == n && sim_step(r->world))
        for (uint32_t i = 0; i < n; i++)
            first = rig_progress(r, i).phase == NODE_FINISHING ? i : first;
    for (uint32_t i = 0; i < n; i++)
        last = rig_progress(r, i).phase < NODE_FINISHING ? i : last;
    assert_true(last < n);
    sim_kill(r->world, last);
    return last;
}

static int code_of(const struct rig *r, uint32_t peer, struct verdict *o, struct verdict_facts *f)
{
    int code = -1;
    node_facts(sim_node(r->world, peer), f);
    verdict_judge(o, f);
    if (!sim_ended(r->world, peer, &code) || code != o->exit_code)
        fail_msg("peer-%u: exit code %d, though '%s'", peer, code, o->text);
    return code;
}

static void check(const struct rig *r, uint32_t peer, enum verdict_kind kind, uint32_t n_among)
{
    struct verdict_facts f;
    struct verdict o;
    (void)code_of(r, peer, &o, &f);
    if (o.kind != kind || f.n_among != n_among || f.n_members != r->config.n_peers)
        fail_msg("peer-%u: '%s', expected %s of %u", peer, o.text, verdict_word(kind), n_among);
}

/* The killed peer returns while the finished peers still run. The peer must take their model, and
 * must end with the verdict consensus. */
static void test_comes_back_in_time(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        struct rig r;
        struct consensus c;
        print_message("%s of %u, %s\n", plans[k].topology, plans[k].n, plans[k].compress);
        rig_plan(&r, &plans[k]);
        uint32_t last = kill_laggard(&r);
        run_for(&r, 3 * SECOND);
        assert_int_equal(sim_restart(r.world, last), 0);
        run_for(&r, 120 * (int64_t)SECOND);
        check(&r, last, VERDICT_CONSENSUS, plans[k].n);
        struct node_progress p = rig_progress(&r, last);
        /* The restarted peer joined after the last round of training, so it has trained no
         * round. */
        assert_true(p.joined_round == ROUNDS && p.rounds_done == 0);
        sim_drift(r.world, &c);
        assert_true(c.trained.relative <= plans[k].drift);
        rig_close(&r);
    }
}

/* The peer returns at once, while some of the others have finished and some are in the consensus
 * phase. The returned peer must end in consensus. */
static void test_comes_back_at_once(void **state)
{
    (void)state;
    for (int64_t ms = 20; ms < 2000; ms *= 2) {
        struct rig r;
        struct consensus c;
        rig_plan(&r, &plans[4]);
        uint32_t last = kill_laggard(&r);
        run_for(&r, ms * 1000);
        assert_int_equal(sim_restart(r.world, last), 0);
        run_for(&r, 120 * (int64_t)SECOND);
        check(&r, last, VERDICT_CONSENSUS, plans[4].n);
        sim_drift(r.world, &c);
        assert_true(c.trained.relative <= plans[4].drift);
        rig_close(&r);
    }
}

/* The finished peers reached no consensus. The returning peer takes over their model, and must not
 * claim a consensus either. */
static void test_comes_back_to_no_consensus(void **state)
{
    static const struct plan plan = {"ring", "qsgd:4", 4, 50 * 1000, 2 * SECOND, 1e-9};
    struct rig r;
    (void)state;
    rig_plan(&r, &plan);
    uint32_t last = kill_laggard(&r);
    run_for(&r, 3 * SECOND);
    assert_int_equal(sim_restart(r.world, last), 0);
    run_for(&r, 120 * (int64_t)SECOND);
    check(&r, last, VERDICT_APART, 4);
    rig_close(&r);
}

/* The finished peers have left. The returning peer must report that their result is unknown. */
static void test_comes_back_too_late(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        struct rig r;
        if (plans[k].checkpoint_us == 0)
            continue;
        rig_plan(&r, &plans[k]);
        uint32_t last = kill_laggard(&r);
        run_for(&r, 90 * (int64_t)SECOND);
        assert_int_equal(sim_restart(r.world, last), 0);
        run_for(&r, 200 * (int64_t)SECOND);
        check(&r, last, VERDICT_AWAY, 1);
        rig_close(&r);
    }
}

/* Two peers return too late and find each other. They must have no quorum, because the quorum
 * counts all members in their checkpoints. */
static void test_two_come_back_too_late(void **state)
{
    struct rig r;
    struct plan plan = plans[0];
    (void)state;
    plan.n = 5;
    rig_plan(&r, &plan);
    run_for(&r, 8 * SECOND);
    sim_kill(r.world, 1);
    sim_kill(r.world, 3);
    run_for(&r, 120 * (int64_t)SECOND);
    assert_int_equal(sim_restart(r.world, 1), 0);
    assert_int_equal(sim_restart(r.world, 3), 0);
    run_for(&r, 300 * (int64_t)SECOND);
    check(&r, 0, VERDICT_CONSENSUS, 3);
    check(&r, 1, VERDICT_NO_QUORUM, 2);
    check(&r, 3, VERDICT_NO_QUORUM, 2);
    rig_close(&r);
}

/* The finished peers end while the returning peer fetches their model. Whenever they end, the peer
 * may report success only with their model. */
static void test_they_leave_meanwhile(void **state)
{
    uint32_t n_good = 0, n_alone = 0;
    (void)state;
    for (int64_t ms = 0; ms < 60; ms++) {
        float kept[PEERS_MAX][300];
        struct verdict_facts f;
        struct verdict o;
        struct rig r;
        rig_plan(&r, &plans[2]);
        uint32_t last = kill_laggard(&r), other = last == 0;
        run_for(&r, 3 * SECOND);
        assert_int_equal(sim_restart(r.world, last), 0);
        run_for(&r, 30 * ms * 1000);
        memcpy(kept[0], rig_model(&r, other), sizeof kept[0]);
        for (uint32_t i = 0; i < r.config.n_peers; i++)
            if (i != last)
                sim_kill(r.world, i);
        run_for(&r, 200 * (int64_t)SECOND);
        memcpy(kept[1], rig_model(&r, last), sizeof kept[1]);
        bool good = code_of(&r, last, &o, &f) == CMD_OK;
        n_good += good;
        n_alone += o.kind == VERDICT_AWAY || o.kind == VERDICT_UNKNOWN;
        double apart = sqrt(rig_error2(&kept[0][0], 2, 300) / vec_norm2(kept[0], 300));
        if (good && !(apart < 1e-3))
            fail_msg("gone after %d ms: '%s', though %.2g apart", 30 * (int)ms, o.text, apart);
        rig_close(&r);
    }
    print_message("%u good, %u alone\n", n_good, n_alone);
    assert_true(n_good > 0 && n_alone > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back_in_time),
        cmocka_unit_test(test_comes_back_at_once),
        cmocka_unit_test(test_comes_back_to_no_consensus),
        cmocka_unit_test(test_comes_back_too_late),
        cmocka_unit_test(test_two_come_back_too_late),
        cmocka_unit_test(test_they_leave_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
