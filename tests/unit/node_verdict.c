/* tests/unit/node_verdict.c -- tests of peer/node/result/verdict.h: each kind of verdict with its
 * text and its exit code. */
#include "peer/node/result/verdict.h"

#include "peer/run/exit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Facts that give the verdict of consensus: 8 of 8 members ended together, and the estimated
 * consensus distance is below its target. */
static const struct verdict_facts good = {.n_members = 8,
                                          .n_among = 8,
                                          .quorum = 0.5,
                                          .distance = 4.1e-7,
                                          .target = 1e-3,
                                          .n_rounds = 400,
                                          .rounds_claimed = 400};

/* Judges the facts, and checks the kind and the exit code of the verdict. */
static struct verdict judged(const struct verdict_facts *f, enum verdict_kind kind, int code)
{
    struct verdict o;
    memset(&o, 0x55, sizeof o);
    verdict_judge(&o, f);
    if (o.kind != kind || o.exit_code != code)
        fail_msg("'%s': kind %s and code %d, expected %s and %d", o.text, verdict_word(o.kind),
                 o.exit_code, verdict_word(kind), code);
    return o;
}

/* A table of verdicts decides: the first of its rows whose condition fits the facts gives the
 * verdict. This test adds the facts for one row after another, from the last row to the first. Each
 * added fact must therefore change the verdict. */
static void test_order(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    judged(&f, VERDICT_CONSENSUS, 0);
    f.distance = 0.019;
    judged(&f, VERDICT_APART, 3);
    f.distance = (double)NAN;
    judged(&f, VERDICT_UNKNOWN, 3);
    f.target = 0;
    judged(&f, VERDICT_UNASKED, 0);
    f.n_among = 3;
    judged(&f, VERDICT_NO_QUORUM, 3);
    f.lonely = true;
    judged(&f, VERDICT_ALONE, 3);
    f.presence = VERDICT_ABSENT;
    judged(&f, VERDICT_AWAY, 3);
    f.diverged = "the loss ran away";
    judged(&f, VERDICT_DIVERGED, 3);
    f.stopped = true;
    judged(&f, VERDICT_STOPPED, 0);
    f.failed = CMD_USAGE;
    judged(&f, VERDICT_FAILED, 2);
    f.failed = CMD_FAILED;
    judged(&f, VERDICT_FAILED, 1);
}

static void test_distances(void **state)
{
    static const struct
    {
        double distance, target;
        enum verdict_kind kind;
    } row[] = {
        {0, 1e-3, VERDICT_CONSENSUS},
        {1e-3, 1e-3, VERDICT_CONSENSUS}, /* A consensus distance equal to the target suffices. */
        {1.001e-3, 1e-3, VERDICT_APART},
        {(double)INFINITY, 1e-3, VERDICT_UNKNOWN},
        {(double)NAN, 1e-3, VERDICT_UNKNOWN},
        {(double)NAN, 0, VERDICT_UNASKED},
        {0.5, -1, VERDICT_UNASKED},
        {0.5, (double)NAN, VERDICT_UNASKED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct verdict_facts f = good;
        f.distance = row[i].distance;
        f.target = row[i].target;
        judged(&f, row[i].kind,
               row[i].kind == VERDICT_CONSENSUS || row[i].kind == VERDICT_UNASKED ? 0 : 3);
    }
}

/* A consensus distance that was computed from the models themselves (exact) decides instead of the
 * estimates of the peers, even if every peer has claimed consensus. */
static void test_exact(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    struct verdict said = judged(&f, VERDICT_CONSENSUS, 0);
    assert_string_equal(said.text, "consensus of 8 of 8 peers at relative drift 4.10e-07 "
                                   "(estimated, target 0.001); no round skipped");
    f.distance = 0.236;
    f.exact = true;
    struct verdict o = judged(&f, VERDICT_APART, 3);
    assert_string_equal(o.text, "no consensus: relative drift 2.36e-01 (exact) is over the target "
                                "0.001: 8 of 8 peers; no round skipped");
}

static void test_infinite_loss(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    f.infinite = true;
    f.diverged = "";
    struct verdict o = judged(&f, VERDICT_DIVERGED, 3);
    assert_string_equal(o.text, "no consensus: the run diverged: the last loss is not finite");
    f.diverged = "the training loss ended at 41.8, having begun at 2.3";
    o = judged(&f, VERDICT_DIVERGED, 3);
    assert_string_equal(o.text, "no consensus: the run diverged: the training loss ended at 41.8, "
                                "having begun at 2.3");
}

static void test_quorum(void **state)
{
    static const struct
    {
        uint32_t live, members;
        double share;
        bool holds;
    } row[] = {
        {4, 8, 0.5, true},  {3, 8, 0.5, false}, {5, 9, 0.5, true},  {4, 9, 0.5, false},
        {1, 2, 0.5, true},  {1, 3, 0.5, false}, {7, 10, 0.7, true}, {6, 10, 0.7, false},
        {3, 10, 0.3, true}, {0, 8, 0, true},    {1, 1024, 0, true}, {1, 1, 1, true},
        {8, 8, 1, true},    {7, 8, 1, false},   {1, 1, 0.5, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct verdict_facts f = good;
        f.n_among = row[i].live;
        f.n_members = row[i].members;
        f.quorum = row[i].share;
        assert_int_equal(verdict_quorum(f.n_among, f.n_members, f.quorum), row[i].holds);
        bool alone = row[i].live == 1 && row[i].members > 1;
        enum verdict_kind kind = alone ? VERDICT_ALONE : VERDICT_CONSENSUS;
        judged(&f, row[i].holds ? kind : VERDICT_NO_QUORUM, row[i].holds && !alone ? 0 : 3);
    }
}

/* Both halves of an even partition have a quorum of one half, but only the half with the first
 * member may claim consensus. A single remaining member cannot claim consensus, whether the others
 * have died or left. */
static void test_one_half_and_one_alone(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    f.n_among = 4;
    judged(&f, VERDICT_CONSENSUS, 0);
    f.without_first = true;
    struct verdict o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_non_null(strstr(
        o.text, ", exactly half of the 8 initial members, and without "
                "the member with the smallest identity, which decides between equal halves"));
    snprintf(f.first, sizeof f.first, "p1");
    o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_non_null(strstr(o.text, "and without p1, which decides between equal halves"));
    f.n_among = 5;
    judged(&f, VERDICT_CONSENSUS, 0);
    f = good;
    f.n_members = f.n_among = 1;
    judged(&f, VERDICT_CONSENSUS, 0);
    f.n_left = 3;
    o = judged(&f, VERDICT_ALONE, 3);
    assert_string_equal(o.text,
                        "no consensus: alone at the end, with one model: 1 of 1 peer, and 3 "
                        "left before; no round skipped");
    /* A second member has ended with the same model but could not store it, so this peer is not
     * alone. */
    f.n_failed = 1;
    judged(&f, VERDICT_CONSENSUS, 0);
}

/* Members that joined later and died do not reduce the share of the initial members. */
static void test_quorum_of_the_beginning(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    f.n_members = 10;
    f.n_among = 4;
    judged(&f, VERDICT_NO_QUORUM, 3);
    f.n_begun = 8;
    judged(&f, VERDICT_CONSENSUS, 0);
    f.n_begun = 9;
    judged(&f, VERDICT_NO_QUORUM, 3);
}

static void test_words_of_the_dead(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    verdict_add_dead(&f, "peer-3");
    verdict_add_dead(&f, "peer-5");
    f.n_among = 6;
    f.rounds_skipped = 12;
    struct verdict o = judged(&f, VERDICT_CONSENSUS, 0);
    assert_string_equal(o.text,
                        "consensus of 6 of 8 peers (dead: peer-3, peer-5) at relative "
                        "drift 4.10e-07 (estimated, target 0.001); 12 of 400 rounds skipped");
    f.n_among = 1;
    f.rounds_skipped = 0;
    f.joined_round = 120;
    o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_string_equal(o.text, "no quorum: 1 of 8 peers (dead: peer-3, peer-5), 4 of 8 needed for "
                                "quorum 0.5; relative drift 4.10e-07 (estimated); joined at round "
                                "120; no round skipped");
    f.n_begun = 11;
    f.quorum = 0.7;
    f.joined_round = 0;
    f.distance = (double)NAN;
    o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_string_equal(o.text,
                        "no quorum: 1 of 8 peers (dead: peer-3, peer-5), 8 of 11 needed for "
                        "quorum 0.7; no round skipped");
}

/* Members that are no voters cannot agree on a certificate, however many they are. */
static void test_too_few_voters(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    f.n_voting = 3;
    judged(&f, VERDICT_CONSENSUS, 0);
    f.uncertified = true;
    f.distance = (double)NAN;
    struct verdict o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_string_equal(o.text,
                        "no quorum: 8 of 8 peers, with 3 of the 8 initial members (5 joined "
                        "later and have no vote), 4 of 8 needed for quorum 0.5; no round "
                        "skipped");
    f.n_voting = 4;
    judged(&f, VERDICT_UNKNOWN, 3);
    f.without_first = true;
    o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_non_null(strstr(o.text,
                           "with 4 of the 8 initial members (4 joined later and have no vote), "
                           "exactly half"));
    f.n_among = 5;
    o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_non_null(strstr(o.text, " (1 joined later and has no vote), exactly half"));
}

/* Without a quorum or a certificate, the text names dead members that had finished. */
static void test_finished_before_they_died(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    f.n_among = 1;
    f.distance = (double)NAN;
    verdict_add_dead(&f, "peer-3");
    verdict_add_finished(&f, "peer-3");
    struct verdict o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_string_equal(o.text, "no quorum: 1 of 8 peers (dead: peer-3), 4 of 8 needed for quorum "
                                "0.5; finished, and may have ended the run without this peer: "
                                "peer-3; no round skipped");
    verdict_add_left(&f, "peer-5");
    verdict_add_left(&f, "peer-6");
    o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_non_null(strstr(o.text, "0.5; left before: peer-5, peer-6; finished, and"));
    f.n_left = 0;
    f.quorum = 0;
    o = judged(&f, VERDICT_ALONE, 3);
    assert_non_null(strstr(o.text, "; finished, and may have ended the run without this peer: "
                                   "peer-3; "));
    f.n_among = 7;
    f.uncertified = true;
    o = judged(&f, VERDICT_UNKNOWN, 3);
    assert_non_null(strstr(o.text, "; finished, and may have ended the run without this peer: "
                                   "peer-3; "));
}

/* If some members do not count towards consensus, the text names them and the reasons. */
static void test_words_of_the_absent(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    verdict_add_absent(&f, "peer-4", "its worker hangs");
    f.n_among = 7;
    struct verdict o = judged(&f, VERDICT_CONSENSUS, 0);
    assert_non_null(strstr(o.text, "consensus of 7 of 8 peers (peer-4: its worker hangs) at"));
    verdict_add_dead(&f, "peer-1");
    verdict_add_absent(&f, "peer-6", "late");
    f.n_among = 5;
    o = judged(&f, VERDICT_CONSENSUS, 0);
    assert_non_null(
        strstr(o.text, "5 of 8 peers (dead: peer-1; peer-4: its worker hangs, peer-6: late) at"));
    for (int i = 0; i < 100; i++)
        verdict_add_absent(&f, "x", "late");
    o = judged(&f, VERDICT_CONSENSUS, 0);
    assert_non_null(strstr(o.text, "peer-6: late, x: late"));
    assert_non_null(strstr(o.text, " and 94 more) at"));

    struct verdict_facts all = {.quorum = 0.5, .target = 0.001, .distance = 1e-9};
    const struct verdict_peer peer[] = {{.name = "a", .ended = true},
                                        {.name = "b", .ended = true},
                                        {.name = "c"},
                                        {.name = "d", .ended = true, .absent = "away"}};
    for (size_t i = 0; i < sizeof peer / sizeof *peer; i++)
        verdict_add_peer(&all, &peer[i]);
    assert_int_equal(all.n_among, 2);
    o = judged(&all, VERDICT_CONSENSUS, 0);
    assert_non_null(strstr(o.text, "consensus of 2 of 4 peers (c: it has no model, d: away) at"));
}

/* Even with more dead members than the text can name, the text of the verdict is complete. */
static void test_many_dead(void **state)
{
    struct verdict_facts f = good;
    char name[WIRE_NAME_MAX + 1];
    (void)state;
    memset(name, 'n', WIRE_NAME_MAX);
    name[WIRE_NAME_MAX] = '\0';
    for (uint32_t i = 0; i < VERDICT_DEAD_MAX + 10; i++)
        verdict_add_dead(&f, name);
    assert_int_equal(f.n_dead, VERDICT_DEAD_MAX + 10);
    assert_string_equal(f.dead[VERDICT_DEAD_MAX - 1], name);
    f.n_members = UINT32_MAX;
    f.n_among = UINT32_MAX - 1;
    f.rounds_claimed = f.rounds_skipped = f.joined_round = UINT64_MAX;
    struct verdict o = judged(&f, VERDICT_CONSENSUS, 0);
    assert_non_null(strstr(o.text, " and 66 more) at relative drift"));
    assert_true(strlen(o.text) < sizeof o.text - 1);
    f.distance = 1;
    o = judged(&f, VERDICT_APART, 3);
    assert_true(strlen(o.text) < sizeof o.text - 1);
}

/* Three full lists of the longest names fit into the text: the text ends with its last clause. */
static void test_longest_text(void **state)
{
    struct verdict_facts f = good;
    char name[WIRE_NAME_MAX + 1], why[VERDICT_WHY_MAX];
    (void)state;
    memset(name, 'n', WIRE_NAME_MAX);
    name[WIRE_NAME_MAX] = '\0';
    memset(why, 'w', VERDICT_WHY_MAX - 1);
    why[VERDICT_WHY_MAX - 1] = '\0';
    for (uint32_t i = 0; i < VERDICT_DEAD_MAX; i++) {
        verdict_add_dead(&f, name);
        verdict_add_absent(&f, name, why);
        verdict_add_finished(&f, name);
    }
    f.n_members = f.n_begun = f.n_joined = UINT32_MAX;
    f.n_among = 1;
    f.rounds_claimed = f.rounds_skipped = f.joined_round = UINT64_MAX;
    snprintf(f.joined, sizeof f.joined, "%s", name);
    f.unlearnt = "the end of the sentence";
    struct verdict o = judged(&f, VERDICT_NO_QUORUM, 3);
    assert_string_equal(o.text + strlen(o.text) - strlen(f.unlearnt), f.unlearnt);
}

static void test_ends_of_other_kinds(void **state)
{
    struct verdict_facts f = good;
    (void)state;
    f.rounds_claimed = 120;
    f.stopped = true;
    struct verdict o = judged(&f, VERDICT_STOPPED, 0);
    assert_string_equal(o.text, "stopped at round 120 of 400, no consensus claimed");
    verdict_add_dead(&f, "p1");
    o = judged(&f, VERDICT_STOPPED, 0);
    assert_string_equal(o.text, "stopped at round 120 of 400, no consensus claimed; dead: p1");
    f.n_rounds = f.rounds_claimed = 0;
    o = judged(&f, VERDICT_STOPPED, 0);
    assert_string_equal(o.text, "stopped while it waited for a run");
    f.n_rounds = 400;
    f.rounds_claimed = 120;
    f.failed = CMD_FAILED;
    o = judged(&f, VERDICT_FAILED, 1);
    assert_string_equal(o.text, "failed at round 120 of 400");
    f.failure = "a file could not be written";
    o = judged(&f, VERDICT_FAILED, 1);
    assert_string_equal(o.text, "failed: a file could not be written");
    f = good;
    f.presence = VERDICT_ABSENT;
    f.rounds_claimed = 120;
    o = judged(&f, VERDICT_AWAY, 3);
    assert_non_null(strstr(o.text, "without this peer, which has reached round 120 of 400;"));
    /* 0: the peer has no checkpoint, so it does not know the round at which it stopped. */
    f.rounds_claimed = 0;
    o = judged(&f, VERDICT_AWAY, 3);
    assert_non_null(strstr(o.text, "the run ended without this peer;"));
    f.presence = VERDICT_UNCOVERED;
    f.rounds_claimed = 120;
    verdict_add_finished(&f, "p0");
    verdict_add_dead(&f, "p2");
    o = judged(&f, VERDICT_AWAY, 3);
    assert_string_equal(o.text, "no consensus: the certificate of the run does not cover the model "
                                "of this peer; finished: p0; "
                                "not known to have finished: p2; no round skipped");
    f = good;
    f.target = 0;
    o = judged(&f, VERDICT_UNASKED, 0);
    assert_string_equal(o.text, "no consensus phase was requested, so no consensus is claimed: 8 "
                                "of 8 peers; no round skipped");
    f.target = 1e-3;
    f.n_members = f.n_among = 1;
    f.distance = (double)NAN;
    o = judged(&f, VERDICT_UNKNOWN, 3);
    assert_string_equal(o.text, "no consensus: the drift is not known: 1 of 1 peer; no round "
                                "skipped");
}

/* Facts of all peers are combined. Every peer exited with code 0 by its own estimate, but the
 * models are too far apart. If a single peer has diverged, the verdict for all must be
 * "diverged". */
static void test_peers_added_up(void **state)
{
    struct verdict_facts all = {.quorum = 0.5, .target = 1e-3, .exact = true};
    struct verdict_peer p = {.name = "peer-0", .ended = true, .rounds_claimed = 400};
    struct verdict o;
    (void)state;
    for (int i = 0; i < 8; i++)
        verdict_add_peer(&all, &p);
    all.distance = 0.236;
    o = judged(&all, VERDICT_APART, 3);
    assert_string_equal(o.text, "no consensus: relative drift 2.36e-01 (exact) is over the target "
                                "0.001: 8 of 8 peers; no round skipped");
    all.distance = 1e-9;
    judged(&all, VERDICT_CONSENSUS, 0);
    p = (struct verdict_peer){
        .name = "peer-8", .died = true, .ended = true, .rounds_claimed = 100, .rounds_skipped = 50};
    verdict_add_peer(&all, &p); /* The rounds that a dead member claimed or skipped do not count. */
    p = (struct verdict_peer){.name = "peer-9", .left = true, .diverged = "went away"};
    verdict_add_peer(&all, &p); /* This peer was stopped, so it is no longer a member. */
    p = (struct verdict_peer){
        .name = "peer-10", .ended = true, .rounds_claimed = 400, .rounds_skipped = 12};
    verdict_add_peer(&all, &p);
    o = judged(&all, VERDICT_CONSENSUS, 0);
    assert_string_equal(o.text, "consensus of 9 of 10 peers (dead: peer-8) at relative drift "
                                "1.00e-09 (exact, target 0.001); 12 of 3600 rounds skipped");
    p = (struct verdict_peer){.name = "peer-11", .ended = true, .diverged = "ran away"};
    verdict_add_peer(&all, &p);
    p.diverged = "later";
    verdict_add_peer(&all, &p);
    o = judged(&all, VERDICT_DIVERGED, 3);
    assert_string_equal(o.text, "no consensus: the run diverged: ran away");
    all.diverged = NULL;
    /* The added member has no final model, and its last training loss is not finite. The loss makes
     * the verdict "diverged". The member counts as a member that is absent, not as dead. */
    p = (struct verdict_peer){.name = "peer-12", .infinite = true};
    verdict_add_peer(&all, &p);
    judged(&all, VERDICT_DIVERGED, 3);
    assert_int_equal(all.n_dead, 1);
    assert_int_equal(all.n_among, 11);
    assert_int_equal(all.n_members, 13);
}

/* If no peer learnt anything, the verdict is consensus, but its text contains a warning. If at
 * least one peer learnt something, there must be no warning: after consensus all peers have the
 * same model. */
static void test_nothing_learnt(void **state)
{
    struct verdict_facts all = {.quorum = 0.5, .target = 1e-3, .exact = true, .distance = 1e-9};
    struct verdict_peer idle = {.name = "peer-0", .ended = true, .unlearnt = "the loss is flat"};
    struct verdict_peer able = {.name = "peer-2", .ended = true, .unlearnt = ""};
    (void)state;
    verdict_add_peer(&all, &idle);
    verdict_add_peer(&all, &idle);
    struct verdict o = judged(&all, VERDICT_CONSENSUS, 0);
    assert_string_equal(o.text,
                        "consensus of 2 of 2 peers at relative drift 1.00e-09 (exact, target "
                        "0.001); no round skipped; warning: the model is no better than guessing: "
                        "the loss is flat");
    verdict_add_peer(&all, &able);
    verdict_add_peer(&all, &idle);
    o = judged(&all, VERDICT_CONSENSUS, 0);
    assert_null(strstr(o.text, "guessing"));
}

/* The rounds before a peer joined do not count as rounds that it skipped. The text names the peers
 * that joined. */
static void test_who_joined(void **state)
{
    struct verdict_facts all = {.quorum = 0.5, .target = 1e-3, .exact = true, .distance = 1e-9};
    struct verdict_peer p = {.name = "peer-0", .ended = true, .rounds_claimed = 400};
    (void)state;
    verdict_add_peer(&all, &p);
    p = (struct verdict_peer){
        .name = "peer-1", .ended = true, .rounds_claimed = 400, .joined_round = 120};
    verdict_add_peer(&all, &p);
    struct verdict o = judged(&all, VERDICT_CONSENSUS, 0);
    assert_string_equal(o.text,
                        "consensus of 2 of 2 peers at relative drift 1.00e-09 (exact, target "
                        "0.001); peer-1 joined at round 120; no round skipped");
    p.name = "peer-2";
    p.joined_round = 80;
    verdict_add_peer(&all, &p);
    o = judged(&all, VERDICT_CONSENSUS, 0);
    assert_string_equal(o.text,
                        "consensus of 3 of 3 peers at relative drift 1.00e-09 (exact, target "
                        "0.001); 2 peers joined, the last (peer-1) at round 120; no round "
                        "skipped");
}

static void test_words(void **state)
{
    static const char *const word[] = {
        "failed",    "stopped",       "diverged", "ended-elsewhere", "never-connected",
        "no-quorum", "not-requested", "unknown",  "over-target",     "consensus"};
    (void)state;
    for (int i = 0; i <= VERDICT_CONSENSUS; i++)
        assert_string_equal(verdict_word((enum verdict_kind)i), word[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_infinite_loss),
        cmocka_unit_test(test_quorum),
        cmocka_unit_test(test_one_half_and_one_alone),
        cmocka_unit_test(test_quorum_of_the_beginning),
        cmocka_unit_test(test_words_of_the_dead),
        cmocka_unit_test(test_finished_before_they_died),
        cmocka_unit_test(test_words_of_the_absent),
        cmocka_unit_test(test_many_dead),
        cmocka_unit_test(test_longest_text),
        cmocka_unit_test(test_ends_of_other_kinds),
        cmocka_unit_test(test_peers_added_up),
        cmocka_unit_test(test_nothing_learnt),
        cmocka_unit_test(test_who_joined),
        cmocka_unit_test(test_too_few_voters),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
