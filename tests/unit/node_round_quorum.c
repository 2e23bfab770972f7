/* tests/unit/node_round_quorum.c -- tests of peer/node/session/round_quorum.c: a single peer that
 * claims a later round does not move the others, a majority does. */
#include "peer/node/session/sessions_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000 * 1000, BEAT = 100, FAR = 5000, JOB_US = 10 * 1000, EDGES = 5 };

static struct env env;
static struct sessions all;

/* Sets up `n` sessions. The peer on session `i` has just announced the round `round[i]`. */
static void said(const uint64_t *round, size_t n)
{
    env.now_us = env.driver_us = 100 * SECOND;
    memset(&all, 0, sizeof all);
    all.env = &env;
    all.n_links = NODE_LINKS_MAX;
    for (size_t i = 0; i < n; i++)
        all.links[2 * i] = (struct link){.used = true,
                                         .role = LINK_PEER,
                                         .same_run = true,
                                         .started = true,
                                         .number = (uint32_t)i,
                                         .said_us = env.now_us,
                                         .round = round[i]};
}

/* Advances node time and driver time: this process is not paused. */
static void advance(int64_t us)
{
    env.now_us += us;
    env.driver_us += us;
}

/* ---- most of them ---- */

static void test_most(void **state)
{
    static const struct
    {
        uint64_t claim[EDGES];
        size_t n;
        uint64_t most;
    } rows[] = {{{0}, 0, 0},          {{7}, 1, 7},
                {{7, 9}, 2, 7},       {{9, 7}, 2, 7},
                {{1, 9, 7}, 3, 7},    {{9, 9, 1, 1}, 4, 1},
                {{9, 9, 1, 8}, 4, 8}, {{UINT64_MAX, 5, 5, 5, UINT64_MAX}, 5, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t claim[EDGES];
        memcpy(claim, rows[i].claim, sizeof claim);
        assert_int_equal(round_quorum_most(claim, rows[i].n), rows[i].most);
    }
}

/* ---- edges ---- */

/* Neighbour i of `n` claims to be in step beat[i]. Returns the step of the first neighbour that the
 * round quorum passes to the scheduler: the claim of this neighbour, or a lower step. */
static uint64_t shown(struct round_quorum *b, enum node_phase phase, const uint64_t *beat, size_t n)
{
    struct schedule_edge edge[EDGES] = {{0}};
    struct schedule_view v = {
        .phase = phase, .lock_step = true, .beat = BEAT, .reach = 2, .edge = edge, .n_edges = n};
    for (size_t i = 0; i < n; i++)
        edge[i] = (struct schedule_edge){.state = SCHEDULE_EDGE_OPEN, .beat = beat[i]};
    round_quorum_look(b, &all, &v, edge);
    return edge[0].beat;
}

/* The neighbours announce the same steps over their sessions as on their edges. A step that at most
 * half of the neighbours announce must not be believed, in training and in the consensus phase. */
static void test_edges(void **state)
{
    static const struct
    {
        uint64_t beat[EDGES];
        size_t n;
        uint64_t shown;
        const char *what;
    } rows[] = {{{FAR, BEAT}, 2, BEAT, "one of two lies"},
                {{FAR, FAR - 1}, 2, FAR - 1, "we were away: both are ahead"},
                {{FAR, BEAT, BEAT + 1, BEAT}, 4, BEAT, "one of four lies"},
                {{FAR, FAR, BEAT + 1, BEAT}, 4, BEAT, "two of four are not most"},
                {{FAR, FAR, FAR - 3, BEAT}, 4, FAR - 3, "three of four are"},
                {{BEAT + 20, BEAT}, 2, BEAT + 20, "lock step's lead is believed"},
                {{BEAT - 1, FAR}, 2, BEAT - 1, "who is behind is waited for"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct round_quorum b = {.fastest_us = JOB_US};
        said(rows[i].beat, rows[i].n);
        uint64_t got = shown(&b, NODE_TRAINING, rows[i].beat, rows[i].n);
        if (got != rows[i].shown)
            fail_msg("%s: %llu", rows[i].what, (unsigned long long)got);
        assert_int_equal(shown(&b, NODE_CONSENSUS, rows[i].beat, rows[i].n), rows[i].shown);
        assert_int_equal(shown(&b, NODE_JOINING, rows[i].beat, rows[i].n), rows[i].beat[0]);
    }
}

/* The node and one of its two neighbours were cut off together, and are in round BEAT. The node
 * believes that the other peers are in the later round FAR if most of its sessions announce that,
 * but not if only its second neighbour does. */
static void test_a_minority_follows(void **state)
{
    static const uint64_t rounds[] = {FAR, BEAT, FAR + 2, FAR + 1, FAR};
    static const uint64_t edges[] = {FAR, BEAT};
    struct round_quorum b = {.fastest_us = JOB_US};
    (void)state;
    said(rounds, 5);
    assert_int_equal(shown(&b, NODE_TRAINING, edges, 2), FAR);
    said(rounds, 2);
    assert_int_equal(shown(&b, NODE_TRAINING, edges, 2), BEAT);
}

/* A peer that has trained alone and is far ahead of most others waits for them. It does not wait
 * for a minority that is far behind or claims to be. A neighbour that is joining does not count as
 * behind, because it will fetch a model. */
static void test_far_ahead(void **state)
{
    enum { LEAD = 20, OLD = 10 };
    static const struct
    {
        uint64_t edge[EDGES], session[EDGES];
        size_t n_edges, n_sessions;
        bool gathers;
        uint64_t shown;
        const char *what;
    } rows[] = {
        {{OLD, OLD}, {OLD, OLD}, 2, 2, false, BEAT - LEAD, "both came back"},
        {{OLD, OLD}, {OLD, OLD, OLD}, 2, 3, true, OLD, "one of them gathers, and counts as none"},
        {{OLD, BEAT}, {OLD, BEAT}, 2, 2, false, OLD, "one of two"},
        {{OLD, OLD}, {OLD, OLD, BEAT, BEAT}, 2, 4, false, OLD, "half of all"},
        {{OLD, BEAT}, {OLD, OLD, BEAT}, 2, 3, false, BEAT - LEAD, "two live on of five"},
        {{OLD, BEAT, BEAT}, {OLD, OLD, OLD}, 3, 3, false, OLD, "most neighbours are with us"},
        {{BEAT - LEAD, OLD}, {OLD, OLD}, 2, 2, false, BEAT - LEAD, "who is near is as it is"},
        {{OLD}, {OLD}, 1, 1, false, OLD, "a single one"},
        {{OLD}, {OLD, OLD}, 1, 2, false, BEAT - LEAD, "one neighbour, and another"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct round_quorum b = {.fastest_us = JOB_US};
        struct schedule_edge edge[EDGES];
        struct schedule_view v = {.phase = NODE_TRAINING,
                                  .lock_step = true,
                                  .beat = BEAT,
                                  .reach = 2,
                                  .edge = edge,
                                  .n_edges = rows[i].n_edges};
        said(rows[i].session, rows[i].n_sessions);
        for (int k = 0; k < 3; k++) {
            v.lock_step = k != 1;
            v.phase = k == 2 ? NODE_JOINING : NODE_TRAINING;
            for (size_t j = 0; j < rows[i].n_edges; j++)
                edge[j] = (struct schedule_edge){
                    .state = SCHEDULE_EDGE_OPEN, .flapping = true, .beat = rows[i].edge[j]};
            edge[0].gathers = rows[i].gathers;
            round_quorum_look(&b, &all, &v, edge);
            uint64_t expected = k == 0 ? rows[i].shown : rows[i].edge[0];
            if (edge[0].beat != expected || edge[0].flapping != (expected == rows[i].edge[0]))
                fail_msg("%s: %llu", rows[i].what, (unsigned long long)edge[0].beat);
        }
    }
}

/* In the consensus phase the rounds of members that have finished no longer grow. Such members must
 * not make this peer believe that it is ahead of the run. */
static void test_finished_members_do_not_count(void **state)
{
    static const uint64_t rounds[] = {10, 11, 12, BEAT - 25};
    uint64_t behind = BEAT - 25, lead = 2 * 2 + 16;
    struct round_quorum b = {0};
    (void)state;
    said(rounds, 4);
    assert_int_equal(shown(&b, NODE_CONSENSUS, &behind, 1), BEAT - lead);
    for (size_t i = 0; i < 3; i++)
        all.links[2 * i].finished = true;
    assert_int_equal(shown(&b, NODE_CONSENSUS, &behind, 1), behind);
}

/* ---- sessions ---- */

/* The round that a peer announced last is extrapolated to the present, by the pace between its last
 * two announcements. */
static void test_words_grow_old(void **state)
{
    static const uint64_t rounds[] = {1000, 1000, 1000};
    size_t n;
    (void)state;
    said(rounds, 3);
    assert_int_equal(round_quorum_sessions(&all, &n), 1000);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) {
        struct link *l = &all.links[2 * i];
        l->before = 500;
        l->before_us = l->said_us - SECOND / 2;
    }
    env.now_us += SECOND / 4;
    assert_int_equal(round_quorum_sessions(&all, &n), 1250);
    /* The pace of two of the three peers is not known: one has announced a lower round than before,
     * and one has announced only one round. Their rounds are not extrapolated. */
    all.links[0].before = 2000;
    all.links[2].before_us = 0;
    assert_int_equal(round_quorum_sessions(&all, &n), 1000);
}

static void test_who_counts(void **state)
{
    static const uint64_t rounds[] = {10, 20, 30};
    size_t n;
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct link *l = &all.links[0];
        said(rounds, 3);
        l->role = i == 0 ? LINK_NEW : i == 1 ? LINK_OBSERVER : LINK_PEER;
        l->hung_up = i == 2 ? "a reason" : NULL;
        l->mute = i == 3;
        l->same_run = i != 4;
        l->started = i != 5;
        assert_int_equal(round_quorum_sessions(&all, &n), 20);
        assert_int_equal(n, 2);
    }
}

/* A joining peer fetches the model from the peer in the latest round, but not from a peer that is
 * far ahead of what most sessions announce. If the fetched model claims a round that is too far
 * ahead, the joining peer begins in the round that most sessions have reached. */
static void test_joining(void **state)
{
    static const uint64_t rounds[] = {700, FAR, 703, 701};
    (void)state;
    said(rounds, 4);
    assert_int_equal(round_quorum_furthest(&all)->round, 703);
    assert_int_equal(round_quorum_joined(&all, 704), 704);
    assert_int_equal(round_quorum_joined(&all, FAR), 701);
    /* With only one other peer, the round that this peer claims is believed. */
    said(rounds + 1, 1);
    assert_int_equal(round_quorum_furthest(&all)->round, FAR);
    assert_int_equal(round_quorum_joined(&all, FAR), FAR);
    said(rounds, 0);
    assert_null(round_quorum_furthest(&all));
    assert_int_equal(round_quorum_joined(&all, FAR), FAR);
}

/* ---- two peers ---- */

/* With a single neighbour, a claim is believed only up to the rounds that the neighbour can have
 * done while it was not heard. */
static void test_two_peers(void **state)
{
    static const uint64_t near[] = {BEAT + 1}, later[] = {FAR};
    uint64_t lead = 2 * 2 + 16;
    struct round_quorum b = {0};
    (void)state;
    said(near, 1);
    /* The node has done no job yet and does not know how fast a peer can train, so it believes any
     * claim. */
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), FAR);
    round_quorum_worked(&b, 3 * JOB_US);
    round_quorum_worked(&b, JOB_US);
    round_quorum_worked(&b, 2 * JOB_US);
    assert_int_equal(b.fastest_us, JOB_US);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    /* The neighbour has just announced a step near the node's own, so it cannot be far ahead
     * yet. */
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), BEAT);
    advance(60 * SECOND);
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), BEAT);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    /* The neighbour is silent, but may continue to train. The rounds that it can have done
     * meanwhile limit the claims that are believed: 800 rounds after 1 s, and every round up to FAR
     * after another 60 s. */
    advance(SECOND);
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), BEAT + lead + 800);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    advance(60 * SECOND);
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), FAR);
}

/* The node is paused for 60 s, and its single neighbour continues without it. Messages from the
 * time before the pause arrive after it. The rounds that the neighbour can have done in the pause
 * count. 10 s (DEAD_LINK_US) after the pause, new messages show again how far the neighbour is. */
static void test_two_peers_and_a_pause(void **state)
{
    static const uint64_t near[] = {BEAT + 1}, later[] = {FAR};
    struct round_quorum b = {.fastest_us = JOB_US};
    (void)state;
    said(near, 1);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    env.driver_us += 60 * SECOND;
    failure_detector_continue(&all, 60 * SECOND);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), FAR);
    advance(DEAD_LINK_US);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), BEAT);
}

/* The first step of a process may look like a pause. A claim is not believed because of it. */
static void test_pause_before_the_first_round(void **state)
{
    static const uint64_t near[] = {BEAT + 1}, later[] = {FAR};
    struct round_quorum b = {.fastest_us = JOB_US};
    (void)state;
    said(near, 1);
    failure_detector_continue(&all, 60 * SECOND);
    assert_int_equal(shown(&b, NODE_TRAINING, near, 1), BEAT + 1);
    assert_int_equal(shown(&b, NODE_TRAINING, later, 1), BEAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_far_ahead),
        cmocka_unit_test(test_a_minority_follows),
        cmocka_unit_test(test_words_grow_old),
        cmocka_unit_test(test_who_counts),
        cmocka_unit_test(test_joining),
        cmocka_unit_test(test_two_peers),
        cmocka_unit_test(test_two_peers_and_a_pause),
        cmocka_unit_test(test_pause_before_the_first_round),
        cmocka_unit_test(test_finished_members_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
