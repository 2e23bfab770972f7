/* tests/unit/sim_liars.c -- Byzantine members with honest models and false statements about
 * everything else.
 *
 * Peer i minimises |x - c_i|^2 / 2 (sim_rig.h). Whatever such a member says about rounds or the
 * drift, the others must do all their rounds and soon end near each other. */
#include "peer/node/result/verdict.h"
#include "peer/sim/attack.h"
#include "sim_rig.h"

enum { PEERS_MAX = 16, DIM = 2048, ROUNDS = 120 };

static void open_with(struct rig *r, uint32_t n, const char *topology, const char *attack,
                      bool *liar)
{
    char error[ATTACK_ERROR_MAX];
    rig_init(r, n, DIM, topology, "none", 0);
    r->quiet = true;
    r->eta = 0.05f;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.step_us = 20000;
    if (attack_read(attack, n, &r->config.attack, liar, error) != 0)
        fail_msg("%s", error);
    r->config.liar = liar;
    rig_run(r, UINT64_MAX);
}

/* Checks that the honest peers did every round and ended with exit code `code`. The consensus phase
 * may have at most `settling` rounds, and the relative drift may be at most `drift` at the end. */
static void honest_ended(const struct rig *r, int code, double drift, uint64_t settling)
{
    struct consensus c;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        struct node_progress p = rig_progress(r, i);
        int got;
        if (r->config.liar[i])
            continue;
        assert_true(sim_ended(r->world, i, &got));
        if (got != code || p.rounds_done != ROUNDS || p.rounds_skipped != 0
            || p.settle_rounds > settling)
            fail_msg("%s, %u peers: peer-%u: exit code %d, %llu done, %llu skipped, %llu to settle",
                     r->config.attack->name, r->config.n_peers, i, got,
                     (unsigned long long)p.rounds_done, (unsigned long long)p.rounds_skipped,
                     (unsigned long long)p.settle_rounds);
    }
    sim_drift(r->world, &c);
    if (!(c.trained.relative <= drift))
        fail_msg("%s: relative drift %g", r->config.attack->name, c.trained.relative);
}

/* ---- rounds ---- */

static const struct
{
    uint32_t n;
    const char *topology;
} clusters[] = {{2, "ring"}, {3, "ring"}, {4, "ring"}, {8, "ring"}, {16, "torus"}};

/* A Byzantine peer claims that it has done all rounds. The edges between the others must stay in
 * lock step, and no peer may skip to the end. */
static void false_rounds_move_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof clusters / sizeof clusters[0]; i++) {
        struct rig r;
        bool liar[PEERS_MAX];
        open_with(&r, clusters[i].n, clusters[i].topology, "rounds:1", liar);
        honest_ended(&r, 0, 1e-3, 200);
        rig_close(&r);
    }
}

/* ---- sketches ---- */

/* A Byzantine peer sends no sketches, or false ones. The others must still find, soon and
 * correctly, that all models are close. */
static void false_sketches_hold_up_nobody(void **state)
{
    static const char *const kinds[] = {"mute-sketch:1", "false-sketch:1", "settled:1"};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 1; i < sizeof clusters / sizeof clusters[0]; i++) {
            struct rig r;
            bool liar[PEERS_MAX];
            struct consensus c;
            open_with(&r, clusters[i].n, clusters[i].topology, kinds[k], liar);
            honest_ended(&r, 0, 1e-3, 300);
            sim_drift(r.world, &c);
            for (uint32_t p = 0; p < clusters[i].n; p++) {
                double says = rig_progress(&r, p).relative_drift, is = c.trained.relative;
                struct verdict_facts f;
                node_facts(sim_node(r.world, p), &f);
                /* A peer that has fetched a certified model has not measured the drift of that
                 * model. Its verdict contains the distance in the certificate instead. */
                if (isnan(says) && !f.uncertified)
                    says = f.distance;
                /* A peer need not report the drift if it is below float rounding. */
                bool low = is > 1e-5 && !(says >= 0.5 * is);
                if (!liar[p] && (low || !(says <= 1e-3)))
                    fail_msg("%s, %u peers: peer-%u says %g, and it is %g", kinds[k], clusters[i].n,
                             p, says, is);
            }
            rig_close(&r);
        }
}

/* ---- messages that do not decode ---- */

static uint64_t n_warnings;

static void count_warnings(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self, (void)peer;
    n_warnings += note->level == NOTE_WARNING;
}

/* Three of four peers send messages that do not decode. The run of the fourth must end, and its
 * warnings must not be repeated without bound. */
static void most_send_no_numbers(void **state)
{
    char error[ATTACK_ERROR_MAX];
    bool liar[4];
    struct rig r;
    int code;
    (void)state;
    rig_init(&r, 4, 64, "ring", "none", 0);
    r.eta = 0.05f;
    r.config.run.rounds = 60;
    r.config.run.final_drift = 1e-3;
    r.config.run.quorum = 0.5;
    r.config.note = count_warnings;
    assert_int_equal(attack_read("nan:0-2", 4, &r.config.attack, liar, error), 0);
    r.config.liar = liar;
    n_warnings = 0;
    rig_run(&r, 2000000);
    assert_true(sim_ended(r.world, 3, &code));
    assert_in_range(n_warnings, 1, 500);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_rounds_move_nobody),
        cmocka_unit_test(false_sketches_hold_up_nobody),
        cmocka_unit_test(most_send_no_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
