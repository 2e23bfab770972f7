/* tests/unit/sim_attack.c -- the effect of one Byzantine peer among 16 on a torus.
 *
 * Peer i minimises |x - c_i|^2 / 2, with c_i standard normal in DIM dimensions. The error of a run
 * is the squared distance, per coordinate, between the mean of the honest peers' models and the
 * mean of their c_i. */
#include "nn/math/vec.h"
#include "peer/sim/attack.h"
#include "sim_rig.h"
#include "test_share.h"

#include <errno.h>

enum { PEERS = 16, DIM = 256, ROUNDS = 400, LIAR = 5 };

static uint64_t n_notes; /* Number of warnings by honest peers that name the Byzantine peer. */

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self, (void)peer;
    n_notes +=
        strstr(note->text, "peer-5 sent a delta that no model of this run can produce") != NULL;
}

/* Runs an attack, or none (NULL), and returns the error of the run. *distrusted: how often honest
 * peers closed an edge. *apart: consensus distance at the end. */
static double run_attack(const char *attack, const char *compress, uint32_t tolerate,
                         uint64_t *distrusted, double *apart)
{
    char error[ATTACK_ERROR_MAX];
    bool liar[PEERS];
    struct rig r;
    struct consensus c;
    double off2 = 0;
    rig_init(&r, PEERS, DIM, "torus", compress, 0);
    r.eta = 0.05f;
    r.config.run.rounds = ROUNDS;
    r.config.run.tolerate = tolerate;
    r.config.note = hear;
    n_notes = 0;
    if (attack != NULL) {
        assert_int_equal(attack_read(attack, PEERS, &r.config.attack, liar, error), 0);
        r.config.liar = liar;
    }
    rig_run(&r, UINT64_MAX);
    *distrusted = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        *distrusted += i != LIAR ? rig_progress(&r, i).distrusted : 0;
    for (size_t k = 0; k < DIM; k++) {
        double x = 0, want = 0;
        for (uint32_t i = 0; i < PEERS; i++) {
            bool counts = attack == NULL || i != LIAR;
            x += counts ? (double)rig_model(&r, i)[k] : 0;
            want += counts ? (double)r.c[i * DIM + k] : 0;
        }
        off2 += (x - want) * (x - want) / (PEERS - 1) / (PEERS - 1);
    }
    sim_drift(r.world, &c);
    *apart = c.trained.xi;
    rig_close(&r);
    return off2 / DIM;
}

static const char *const codecs[] = {"none", "qsgd:4", "topk:0.1"};
enum { CODECS = sizeof codecs / sizeof codecs[0] };

/* Effect of an attack without --byzantine. KEPT_OUT: a check of received data stops it. LITTLE: it
 * moves the mean a little. RUIN: it ruins the run. */
enum harm { KEPT_OUT, LITTLE, RUIN };
static const struct
{
    const char *attack;
    enum harm harm;
} table[] = {{"huge:5", KEPT_OUT}, {"scaled:5", RUIN}, {"negated:5", LITTLE},
             {"random:5", LITTLE}, {"push:5", LITTLE}, {"nan:5", KEPT_OUT},
             {"ipm:5", LITTLE},    {"alie:5", RUIN},   {"dissensus:5", RUIN}};

static bool is_so(enum harm harm, double off2)
{
    static const double from[] = {0, 1e-4, 1e3}, to[] = {1e-3, 0.1, (double)INFINITY};
    return off2 >= from[harm] && off2 <= to[harm];
}

/* Without --byzantine each attack has the effect that the table states. All four neighbours of a
 * peer with absurd deltas must close their edges at once, and report it. */
static void one_liar_untolerated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (size_t k = 0; k < CODECS; k++) {
            if (!test_share_has(i * CODECS + k))
                continue;
            uint64_t distrusted;
            double apart, off2 = run_attack(table[i].attack, codecs[k], 0, &distrusted, &apart);
            if (!is_so(table[i].harm, off2))
                fail_msg("%s, %s: the mean is off by %g", table[i].attack, codecs[k], off2);
            bool huge = strcmp(table[i].attack, "huge:5") == 0;
            assert_true(!huge || (distrusted == 4 && n_notes == 4));
            assert_true(distrusted == 0 || huge || table[i].harm == RUIN);
        }
}

/* With --byzantine 1 the effect of every attack must be bounded, with every codec. */
static void one_liar_tolerated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (size_t k = 0; k < CODECS; k++) {
            if (!test_share_has(i * CODECS + k))
                continue;
            uint64_t distrusted;
            double apart, off2 = run_attack(table[i].attack, codecs[k], 1, &distrusted, &apart);
            if (!(off2 <= 0.015) || !(apart <= 3))
                fail_msg("%s, %s: the mean is off by %g, models are %g apart", table[i].attack,
                         codecs[k], off2, apart);
        }
}

/* Without an attack, the clipping of --byzantine moves the mean only a little. Without --byzantine
 * the mean does not move. No edge may be distrusted. */
static void nobody_lies(void **state)
{
    (void)state;
    for (size_t k = 0; k < CODECS; k++)
        for (uint32_t tolerate = 0; tolerate < 2; tolerate++) {
            uint64_t distrusted;
            double apart, off2 = run_attack(NULL, codecs[k], tolerate, &distrusted, &apart);
            assert_int_equal(distrusted, 0);
            if (!(off2 <= (tolerate > 0 ? 1e-4 : 1e-12)) || !(apart <= 2))
                fail_msg("%s, --byzantine %u: the mean is off by %g, models are %g apart",
                         codecs[k], tolerate, off2, apart);
        }
}

/* ---- as few neighbours as B allows ---- */

/* Eight peers have four neighbours each, and one of the eight is Byzantine. If the Byzantine peer
 * is detected, its neighbours can mix with their three other neighbours. If it is not detected, the
 * consensus phase must still bring the honest peers together within 300 rounds. */
static void the_smallest_graph_is_enough(void **state)
{
    static const char *const attacks[] = {"huge:5", "nan:5", "push:5", "dissensus:5"};
    (void)state;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++)
        for (size_t k = 0; k < CODECS; k++) {
            enum { FEW = 8 };
            if (!test_share_has(i * CODECS + k))
                continue;
            char error[ATTACK_ERROR_MAX];
            bool liar[FEW];
            struct rig r;
            struct consensus c;
            rig_init(&r, FEW, DIM, "regular:4", codecs[k], 0);
            r.eta = 0.05f;
            r.quiet = true;
            r.config.run.rounds = 60;
            r.config.run.tolerate = 1;
            r.config.run.final_drift = 1e-3;
            assert_int_equal(attack_read(attacks[i], FEW, &r.config.attack, liar, error), 0);
            r.config.liar = liar;
            rig_run(&r, UINT64_MAX);
            sim_drift(r.world, &c);
            uint64_t settling = rig_progress(&r, 0).settle_rounds;
            if (!(c.trained.relative <= 1e-3) || settling > 300)
                fail_msg("%s, %s: relative drift %g after %llu rounds", attacks[i], codecs[k],
                         c.trained.relative, (unsigned long long)settling);
            rig_close(&r);
        }
}

/* ---- more Byzantine neighbours than B ---- */

/* A graph in which five honest peers (0 to 4) form a ring and have two Byzantine neighbours each.
 * Edges among the Byzantine peers give every peer four neighbours. */
static const char two_on_each[] =
    "edges:0-1,1-2,2-3,3-4,4-0,0-5,0-10,1-6,1-11,2-7,2-12,3-8,3-13,4-9,"
    "4-14,5-6,6-7,7-8,8-9,9-10,10-11,11-12,12-13,13-14,14-5,5-10,6-11,"
    "7-12,8-13,9-14";
enum { HONEST = 5, RING_PEERS = 15 };

/* Returns the largest squared distance, per coordinate, of an honest peer from its own optimum. */
static double run_two_on_each(const char *attack, double pull)
{
    char error[ATTACK_ERROR_MAX];
    bool liar[RING_PEERS];
    struct rig r;
    double most2 = 0;
    rig_init(&r, RING_PEERS, DIM, two_on_each, "none", 0);
    r.eta = 0.05f;
    r.config.run.rounds = ROUNDS;
    r.config.run.final_drift = 0;
    r.config.run.tolerate = 1;
    r.config.run.pull = pull;
    assert_int_equal(attack_read(attack, RING_PEERS, &r.config.attack, liar, error), 0);
    r.config.liar = liar;
    rig_run(&r, UINT64_MAX);
    for (uint32_t i = 0; i < HONEST; i++)
        most2 = fmax(most2, vec_dist2(rig_model(&r, i), &r.c[i * DIM], DIM) / DIM);
    rig_close(&r);
    return most2;
}

/* Half of the neighbours are Byzantine, although --byzantine is 1, and the models drift apart. With
 * --max-pull 0.5 all neighbours together move a model by less than half of the peer's own local
 * step. Each honest peer must then end at its own optimum. */
static void more_liars_than_that(void **state)
{
    static const char *const attacks[] = {"alie:5-14", "dissensus:5-14", "push:5-14"};
    (void)state;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        double without = run_two_on_each(attacks[i], 0), with = run_two_on_each(attacks[i], 0.5);
        if (!(without > 0.5) || !(with < 1e-6))
            fail_msg("%s: off by %g, with --max-pull 0.5 by %g", attacks[i], without, with);
    }
}

/* ---- an honest peer with other data ---- */

/* Multiplies the optimum of peer 5 by 10,000, as if its data were not scaled. */
static void rig_unscaled(struct rig *r, uint64_t rounds)
{
    rig_init(r, PEERS, DIM, "torus", "none", 0);
    r->eta = 0.05f;
    r->config.run.rounds = rounds;
    r->config.note = hear;
    n_notes = 0;
    for (size_t k = 0; k < DIM; k++)
        r->c[LIAR * DIM + k] *= 1e4f;
}

static void run_unscaled(struct rig *r, uint64_t rounds)
{
    rig_unscaled(r, rounds);
    rig_run(r, UINT64_MAX);
}

static void an_unscaled_peer_is_left_alone(void **state)
{
    struct rig r;
    double most = 0;
    (void)state;
    run_unscaled(&r, ROUNDS);
    assert_int_equal(n_notes, 4);
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM && i != LIAR; k++)
            most = fmax(most, fabs((double)rig_model(&r, i)[k]));
    assert_true(most <= 5);
    rig_close(&r);
}

/* Neighbours that distrust peer 5 close their edges. They must try again after 0.5, 1, 2 and 4
 * s. */
static void who_was_barred_is_tried_again(void **state)
{
    struct rig r;
    (void)state;
    run_unscaled(&r, 7000);
    uint64_t tried = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        tried += i != LIAR ? rig_progress(&r, i).distrusted : 0;
    assert_int_equal(tried, 4 * 5);
    rig_close(&r);
}

/* In the consensus phase, an edge that was closed for distrust is tried only once more. Without
 * training, the neighbour's deltas do not become better, so further tries would fail, too. */
static void who_was_barred_is_tried_once_more_in_the_last_phase(void **state)
{
    struct rig r;
    (void)state;
    rig_unscaled(&r, 20);
    r.config.step_us = r.config.latency_us = 100 * 1000;
    /* With these settings the consensus phase lasts longer than an edge stays closed for
     * distrust. */
    r.config.run.final_drift = 1e-12;
    rig_run(&r, UINT64_MAX);
    /* An edge that was closed for distrust is tried again three times in training, which ends
     * before the fourth time, and once more in the consensus phase. */
    assert_int_equal(n_notes, 4 * (3 + 1));
    assert_true(sim_now_us(r.world) > 20 * 1000 * 1000);
    rig_close(&r);
}

/* ---- the spec ---- */

static void specs_are_read(void **state)
{
    static const struct
    {
        const char *spec;
        /* Attack of each peer as one digit: "1" marks a Byzantine peer, "0" an honest peer. NULL:
         * the spec is refused. */
        const char *who;
        const char *why;
    } rows[] = {{"huge", "00000001", NULL},
                {"nan:0", "10000000", NULL},
                {"alie:1,3-5,7", "01011101", NULL},
                {"push:2-2", "00100000", NULL},
                {"hug", NULL, "found 'hug', expected one of huge, scaled"},
                {"", NULL, "expected one of"},
                {"huge:", NULL, "expected peers from 0 to 7"},
                {"huge:8", NULL, "expected peers from 0 to 7"},
                {"huge:3-1", NULL, "expected peers"},
                {"huge:1,", NULL, "expected peers"},
                {"huge:-1", NULL, "expected peers"},
                {"huge:1x", NULL, "expected peers"},
                {"huge:99999999999999999999", NULL, "expected peers"},
                {"huge:0-7", NULL, "leaves no honest peer"},
                {"huge:2,0,2", NULL, "found '2,0,2', which names peer 2 twice"},
                {"huge:1-3,3", NULL, "names peer 3 twice"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct attack *attack;
        bool liar[8];
        char error[ATTACK_ERROR_MAX];
        int err = attack_read(rows[i].spec, 8, &attack, liar, error);
        assert_int_equal(err, rows[i].who != NULL ? 0 : -EINVAL);
        if (rows[i].who == NULL && strstr(error, rows[i].why) == NULL)
            fail_msg("%s: \"%s\"", rows[i].spec, error);
        for (size_t k = 0; k < 8 && rows[i].who != NULL; k++)
            assert_int_equal(liar[k], rows[i].who[k] == '1');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_liar_untolerated),
        cmocka_unit_test(one_liar_tolerated),
        cmocka_unit_test(nobody_lies),
        cmocka_unit_test(the_smallest_graph_is_enough),
        cmocka_unit_test(more_liars_than_that),
        cmocka_unit_test(an_unscaled_peer_is_left_alone),
        cmocka_unit_test(who_was_barred_is_tried_again),
        cmocka_unit_test(who_was_barred_is_tried_once_more_in_the_last_phase),
        cmocka_unit_test(specs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
