/* tests/unit/node_schedule.c -- tests of peer/node/schedule.h: phases, lock step and the end of a
 * run. */
#include "peer/node/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000 * 1000, LIMIT = 10 * SECOND };

/* Functions that return a neighbour for a test. at(): a neighbour in step `beat`. ready(): in step
 * `beat`, with a complete exchange. settled(): as ready(), with the hop count `hops` of the
 * consensus phase. lost(): a neighbour whose session is lost. */
static struct schedule_edge at(uint64_t beat)
{
    return (struct schedule_edge){
        .state = SCHEDULE_EDGE_OPEN, .exchange = SCHEDULE_EXCHANGE_MADE, .beat = beat};
}

static struct schedule_edge ready(uint64_t beat)
{
    struct schedule_edge e = at(beat);
    e.exchange = SCHEDULE_EXCHANGE_COMPLETE;
    return e;
}

static struct schedule_edge settled(uint64_t beat, uint32_t hops)
{
    struct schedule_edge e = ready(beat);
    e.settled = hops;
    return e;
}

static struct schedule_edge lost(int64_t us)
{
    return (struct schedule_edge){.lost_us = us};
}

/* View of a peer in a ring of eight peers, after 10 of 100 rounds. */
static struct schedule_view training(const struct schedule_edge *edge)
{
    return (struct schedule_view){.phase = NODE_TRAINING,
                                  .lock_step = true,
                                  .staleness = 1,
                                  .round = 10,
                                  .rounds = 100,
                                  .beat = 10,
                                  .limit_us = LIMIT,
                                  .n_live = 8,
                                  .reach = 4,
                                  .has_model = true,
                                  .trained = true,
                                  .distance = (double)INFINITY,
                                  .target = 1e-3,
                                  .edge = edge,
                                  .n_edges = 2};
}

static struct schedule_view settling(const struct schedule_edge *edge)
{
    struct schedule_view v = training(edge);
    v.phase = NODE_CONSENSUS;
    v.round = 100;
    v.beat = 150;
    return v;
}

static void expect(const struct schedule_view *v, enum schedule_act act, const char *what)
{
    struct schedule_decision d = schedule_next(v);
    if (d.act != act)
        fail_msg("%s: decided %d, expected %d", what, (int)d.act, (int)act);
}

/* ---- lock step ---- */

static void test_lock_step_waits_for_the_slower(void **state)
{
    static const struct
    {
        uint64_t beat;
        enum schedule_act act;
    } row[] = {
        {9, SCHEDULE_WAIT},
        {10, SCHEDULE_TRAIN},
        {11, SCHEDULE_TRAIN},
        /* This peer skips rounds only if a neighbour is ahead by more than the lead, which is 24
         * steps here (2 x 4 hops + 16). In this row the neighbour is ahead by exactly 24 steps. */
        {34, SCHEDULE_TRAIN}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct schedule_edge e[2] = {ready(row[i].beat), ready(10)};
        struct schedule_view v = training(e);
        expect(&v, row[i].act, "beside a neighbour");
        assert_int_equal(schedule_next(&v).claim, 0);
    }
}

/* Two neighbours are two steps apart. The neighbour that is ahead waits and the other one
 * continues, even if both deltas of the exchange have arrived. */
static void test_a_skew_is_corrected_once(void **state)
{
    struct schedule_edge ahead[2] = {ready(10), ready(12)}, behind[2] = {ready(12), ready(10)};
    struct schedule_view v = training(ahead), w = training(behind);
    (void)state;
    w.beat = w.round = 12;
    expect(&v, SCHEDULE_TRAIN, "the one behind");
    expect(&w, SCHEDULE_WAIT, "the one ahead");
    assert_ptr_equal(schedule_next(&w).for_whom, &behind[1]);
}

static void test_beats_are_claimed_beyond_the_lead(void **state)
{
    struct schedule_edge e[2] = {at(35), at(10)}, away[2] = {at(10), at(35)};
    struct schedule_view v = training(e), w = training(away);
    (void)state;
    assert_int_equal(schedule_lead(&v), 24);
    assert_int_equal(schedule_next(&v).claim, 35);
    /* The neighbour is behind by more than the lead (schedule_lead(), 24 steps). It will skip
     * rounds, so this peer does not wait for it. */
    w.beat = w.round = 35;
    expect(&w, SCHEDULE_TRAIN, "far ahead");
    v.lock_step = false, v.staleness = 0;
    assert_int_equal(schedule_next(&v).claim, 0);
    v.lock_step = true, v.staleness = 1;
    /* The neighbour has lost its session. Its last announced step may be from the end of another
     * run, so this peer does not skip rounds because of it. */
    e[0].state = SCHEDULE_EDGE_CLOSED;
    assert_int_equal(schedule_next(&v).claim, 0);
    v.reach = 1000;
    assert_int_equal(schedule_lead(&v), 64 + 16);
}

/* With the stale synchronous policy, a peer in training waits when a neighbour is `staleness`
 * rounds behind. */
static void test_stale_synchronous_waits_at_its_bound(void **state)
{
    struct schedule_edge e[2] = {at(7), at(12)};
    struct schedule_view v = training(e);
    (void)state;
    v.lock_step = false;
    v.staleness = 4;
    expect(&v, SCHEDULE_TRAIN, "three rounds behind");
    e[0].beat = 6;
    expect(&v, SCHEDULE_WAIT, "four rounds behind");
    assert_ptr_equal(schedule_next(&v).for_whom, &e[0]);
    e[0].busy_us = LIMIT + 1;
    expect(&v, SCHEDULE_TRAIN, "it hangs");
    e[0].busy_us = 0;
    e[0].state = SCHEDULE_EDGE_CLOSED;
    expect(&v, SCHEDULE_TRAIN, "it is gone");
    e[0].state = SCHEDULE_EDGE_OPEN;
    /* This peer is now 84 rounds ahead of neighbour 0. Without lock step, a peer does not skip
     * rounds, so neighbour 0 cannot catch up at once. */
    e[1].beat = 90;
    v.beat = v.round = 90;
    expect(&v, SCHEDULE_WAIT, "far behind"); /* The staleness limit applies, so this peer waits. */
    assert_int_equal(schedule_next(&v).claim, 0);
}

static void test_nobody_waits_for_who_is_excused(void **state)
{
    (void)state;
    /* In the cases `k` = 7 and 8 the neighbour reports that its long job makes progress. */
    for (int k = 0; k < 9; k++) {
        struct schedule_edge e[2] = {at(9), at(10)};
        struct schedule_view v = training(e);
        e[0].busy_us = k == 1 ? LIMIT : k == 2 ? LIMIT + 1 : k >= 7;
        e[0].mute_us = k == 3 ? 3 * LIMIT : k == 4 ? 3 * LIMIT + 3 : 0;
        if (k >= 7)
            e[0].mute_us = 30 * LIMIT + (k == 8 ? 30 : 0);
        e[0].flapping = k == 5;
        e[0].state = k != 6 ? SCHEDULE_EDGE_OPEN : SCHEDULE_EDGE_CLOSED;
        bool excused = k == 2 || k == 4 || k == 5 || k == 8;
        expect(&v, excused || k == 6 ? SCHEDULE_TRAIN : SCHEDULE_WAIT, "excused");
        assert_int_equal(schedule_excused(&v, &e[0]), excused);
    }
}

/* In lock step a peer without usable neighbours keeps its usual time per round, instead of running
 * as fast as it can. */
static void test_who_is_alone_keeps_the_pace(void **state)
{
    (void)state;
    for (int k = 0; k < 9; k++) {
        struct schedule_edge e[2] = {lost(SECOND), lost(SECOND)};
        struct schedule_view v = training(e);
        bool alone = k < 4;
        v.usual_us = SECOND;
        v.idle_us = SECOND - 1;
        if (k == 1 || k == 2)
            e[1] = at(10);
        e[1].flapping = k == 1;
        e[1].busy_us = k == 2 ? LIMIT + 1 : 0;
        /* This neighbour is 25 steps behind, more than the lead of 24, so it is not waited for. */
        if (k == 3)
            v.beat = v.round = 35, e[1] = at(10);
        if (k == 4)
            e[1] = at(10);
        /* The neighbour is 24 steps behind. This is not more than the lead of 24, so this peer
         * waits for it. */
        if (k == 5)
            v.beat = v.round = 34, e[1] = at(10);
        if (k == 6)
            v.lock_step = false, v.staleness = 0;
        if (k == 7)
            e[0].state = e[1].state = SCHEDULE_EDGE_DONE;
        if (k == 8)
            v.n_edges = 0;
        assert_int_equal(schedule_alone(&v), alone);
        expect(&v, alone || k == 5 ? SCHEDULE_WAIT : SCHEDULE_TRAIN, "alone");
        assert_int_equal(schedule_next(&v).wait_us, alone ? 1 : 0);
        v.idle_us = SECOND;
        expect(&v, k == 5 ? SCHEDULE_WAIT : SCHEDULE_TRAIN, "alone, and it is time");
    }
}

/* A peer learns its usual time per round only in step with neighbours, not while catching up. */
static void test_in_step(void **state)
{
    static const struct
    {
        uint64_t a, b;
        bool in_step;
    } row[] = {{10, 10, true}, {9, 11, true}, {10, 12, false}, {30, 10, false}};
    struct schedule_edge none[2] = {lost(SECOND), lost(SECOND)};
    struct schedule_view w = training(none);
    (void)state;
    assert_false(schedule_in_step(&w));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct schedule_edge e[2] = {at(row[i].a), at(row[i].b)};
        struct schedule_view v = training(e);
        assert_int_equal(schedule_in_step(&v), row[i].in_step);
        v.lock_step = false, v.staleness = 0;
        assert_false(schedule_in_step(&v));
    }
}

/* The node waits for a neighbour that joins at the start of a run, but not for one that joins
 * later. */
static void test_who_gathers(void **state)
{
    struct schedule_edge e[2] = {at(4), at(10)};
    struct schedule_view v = training(e);
    (void)state;
    e[0].gathers = true;
    expect(&v, SCHEDULE_WAIT, "it may begin with us");
    e[0].beat = 3;
    expect(&v, SCHEDULE_TRAIN, "it will need a model");
    e[0].gathers = false;
    expect(&v, SCHEDULE_WAIT, "it has one");
}

static void test_async_waits_for_nobody(void **state)
{
    struct schedule_edge e[2] = {at(1), at(2)};
    struct schedule_view v = training(e);
    (void)state;
    v.lock_step = false, v.staleness = 0;
    expect(&v, SCHEDULE_TRAIN, "asynchronous");
}

/* ---- gathering, quorum ---- */

static void test_gathering(void **state)
{
    static const struct
    {
        bool has_model, behind, complete, quiet;
        int64_t gathered_us;
        enum schedule_act act;
    } row[] = {{false, false, true, true, 0, SCHEDULE_GET_MODEL},
               {true, true, true, true, 0, SCHEDULE_GET_MODEL},
               {true, false, false, true, 0, SCHEDULE_WAIT},
               {true, false, true, false, 0, SCHEDULE_WAIT},
               {true, false, true, false, 10 * SECOND - 1, SCHEDULE_WAIT},
               {true, false, true, false, 10 * SECOND, SCHEDULE_BEGIN},
               {true, false, true, true, 0, SCHEDULE_BEGIN}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct schedule_edge e[2] = {at(0), at(0)};
        struct schedule_view v = training(e);
        v.phase = NODE_JOINING;
        v.round = v.beat = 0;
        v.has_model = row[i].has_model;
        v.behind = row[i].behind;
        v.complete = row[i].complete;
        v.quiet = row[i].quiet;
        v.gathered_us = row[i].gathered_us;
        expect(&v, row[i].act, "gathering");
    }
}

static void test_below_the_quorum_it_mixes_and_takes_no_steps(void **state)
{
    struct schedule_edge e[2] = {ready(10), at(9)}, idle[2] = {at(10), at(9)};
    struct schedule_view v = training(e);
    (void)state;
    v.held = true;
    v.idle_us = SECOND;
    expect(&v, SCHEDULE_MIX, "held");
    v.idle_us = 100;
    expect(&v, SCHEDULE_WAIT, "held, just mixed");
    assert_int_equal(schedule_next(&v).wait_us, SCHEDULE_HOLD_US - 100);
    v.idle_us = SECOND;
    v.edge = idle;
    expect(&v, SCHEDULE_WAIT, "held, nothing to mix");
    struct schedule_edge last[2] = {settled(150, 9), settled(150, 9)};
    struct schedule_view s = settling(last);
    s.distance = 0;
    s.held = true;
    s.idle_us = SECOND;
    s.stalled_us = 10 * SCHEDULE_STALL_US;
    expect(&s, SCHEDULE_MIX, "held in the consensus phase");
    assert_false(schedule_next(&s).drain);
}

/* ---- the consensus phase ---- */

static void test_training_ends(void **state)
{
    struct schedule_edge e[2] = {at(99), at(100)};
    struct schedule_view v = training(e);
    (void)state;
    v.round = v.beat = 100;
    expect(&v, SCHEDULE_SETTLE, "after the last round");
}

/* The hop count (`settled`) of a peer is the number of hops within which all members are known to
 * have a consensus distance under the target. The consensus phase ends when the hop count exceeds
 * the eccentricity of the peer, which is the number of hops to the farthest member. */
static void test_settled_by_hops(void **state)
{
    static const struct
    {
        double distance;
        uint32_t hops[2], settled;
        bool over;
    } row[] = {{2e-3, {9, 9}, 0, false}, {(double)NAN, {9, 9}, 0, false}, {1e-3, {0, 9}, 1, false},
               {5e-4, {3, 3}, 4, false}, {5e-4, {4, 4}, 5, true},         {5e-4, {9, 3}, 4, false}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct schedule_edge e[2] = {settled(150, row[i].hops[0]), settled(150, row[i].hops[1])};
        struct schedule_view v = settling(e);
        v.distance = row[i].distance;
        assert_int_equal(schedule_settled(&v), row[i].settled);
        assert_int_equal(schedule_next(&v).drain, row[i].over);
        /* While any peer still trains, the hop count of the consensus phase is 0. */
        v.trained = false;
        assert_int_equal(schedule_settled(&v), 0);
    }
}

/* If the worker of a neighbour hangs, the hop count that the neighbour announced in the consensus
 * phase is ignored. */
static void test_settled_without_the_stuck(void **state)
{
    struct schedule_edge e[2] = {settled(150, 0), settled(150, 3)};
    struct schedule_view v = settling(e);
    (void)state;
    v.distance = 0;
    assert_int_equal(schedule_settled(&v), 1);
    e[0].busy_us = LIMIT + 1;
    assert_int_equal(schedule_settled(&v), 4);
}

/* An exchange that began before this peer's consensus distance came under the target (`old`) may
 * move the model away from the mean again. The hop count is therefore 0 until that exchange is
 * done. */
static void test_settled_after_what_is_old(void **state)
{
    struct schedule_edge e[2] = {settled(150, 5), settled(150, 5)};
    struct schedule_view v = settling(e);
    (void)state;
    v.distance = 0;
    assert_int_equal(schedule_settled(&v), 6);
    e[0].old = true;
    assert_int_equal(schedule_settled(&v), 0);
    assert_false(schedule_next(&v).drain);
    /* The exchange `old` began before this peer's consensus distance came under the target. If the
     * neighbour's worker hangs, this peer does not wait for that exchange. */
    e[0].busy_us = LIMIT + 1;
    assert_int_equal(schedule_settled(&v), 6);
}

static void test_a_missing_edge_holds_the_end(void **state)
{
    struct schedule_edge e[2] = {settled(150, 5), lost(SCHEDULE_LOST_US)};
    struct schedule_view v = settling(e);
    (void)state;
    v.distance = 0;
    assert_int_equal(schedule_settled(&v), 0);
    expect(&v, SCHEDULE_WAIT, "at a low rate");
    assert_int_equal(schedule_next(&v).wait_us, SCHEDULE_SLOW_US);
    v.distance = 1;
    expect(&v, SCHEDULE_MIX, "there is something to do");
    v.distance = 0;
    /* The edge is lost for longer than SCHEDULE_LOST_US and is given up. Information now travels
     * the long way around the ring, over more hops than before. The consensus phase may therefore
     * end only at a larger hop count. */
    e[1].lost_us++;
    assert_int_equal(schedule_settled(&v), 6);
    assert_false(schedule_next(&v).drain);
    e[0].settled = 8;
    assert_true(schedule_next(&v).drain);
    e[1] = (struct schedule_edge){.state = SCHEDULE_EDGE_DONE, .lost_us = 1};
    e[0].settled = 4;
    assert_true(schedule_next(&v).drain);
}

/* A session that returns within SCHEDULE_BRIEF_US does not count as lost. The last hop count of
 * that neighbour remains valid. */
static void test_a_brief_loss_is_none(void **state)
{
    struct schedule_edge e[2] = {settled(150, 5), lost(SCHEDULE_BRIEF_US)};
    struct schedule_view v = settling(e);
    (void)state;
    v.distance = 0;
    e[1].settled = 5;
    assert_true(schedule_next(&v).drain);
    e[1].settled = 3;
    assert_false(schedule_next(&v).drain);
    e[1].settled = 5;
    e[1].lost_us++;
    assert_false(schedule_next(&v).drain);
}

static void test_draining_finishes_what_is_half_done(void **state)
{
    struct schedule_edge e[2] = {at(150), at(150)};
    struct schedule_view v = settling(e);
    (void)state;
    v.draining = true;
    expect(&v, SCHEDULE_WAIT, "half done");
    e[0].exchange = SCHEDULE_EXCHANGE_COMPLETE;
    expect(&v, SCHEDULE_MIX, "to be committed");
    /* The member has left, so its edge is not open any more. */
    e[0].state = SCHEDULE_EDGE_CLOSED;
    e[1].state = SCHEDULE_EDGE_DONE;
    expect(&v, SCHEDULE_MIX, "to be committed, although the edge is closed");
    e[0] = e[1] = (struct schedule_edge){.state = SCHEDULE_EDGE_OPEN, .beat = 150};
    expect(&v, SCHEDULE_LAST, "drained");
    e[0] = at(149); /* A neighbour whose worker hangs does not delay the end of the run. */
    e[0].busy_us = LIMIT + 1;
    expect(&v, SCHEDULE_LAST, "drained but for one that hangs");
}

static void test_the_end_without_progress(void **state)
{
    struct schedule_edge e[2] = {ready(150), ready(150)};
    struct schedule_view v = settling(e);
    (void)state;
    v.stalled_us = SCHEDULE_STALL_US;
    expect(&v, SCHEDULE_MIX, "still patient");
    v.stalled_us++;
    expect(&v, SCHEDULE_LAST, "no longer");
    assert_true(schedule_next(&v).late);
    v.stalled_us = 0;
    v.diverged = true;
    assert_true(schedule_next(&v).late);
    v.diverged = false;
    v.target = 0; /* Without a consensus phase only the exchanges that are complete are applied. */
    expect(&v, SCHEDULE_MIX, "ready still");
    assert_true(schedule_next(&v).drain);
    assert_false(schedule_next(&v).late);
}

/* A peer ends its consensus phase if all its neighbours have finished, or if it has no neighbour.
 * The peer waits for a neighbour whose session is lost. */
static void test_nobody_is_left_to_mix_with(void **state)
{
    struct schedule_edge e[2] = {{.state = SCHEDULE_EDGE_DONE}, {.state = SCHEDULE_EDGE_DONE}};
    struct schedule_view v = settling(e);
    (void)state;
    expect(&v, SCHEDULE_LAST, "all done");
    assert_false(schedule_next(&v).late);
    e[1] = lost(1);
    expect(&v, SCHEDULE_WAIT, "one is missing");
    assert_false(schedule_next(&v).drain);
    v.n_edges = 0;
    expect(&v, SCHEDULE_LAST, "alone");
}

/* A peer whose neighbours have all finished, but whose own consensus distance is not known, waits
 * for the finish protocol. The peer ends if the protocol can no longer succeed, or if it has made
 * no progress for SCHEDULE_STALL_US. */
static void test_stranded(void **state)
{
    struct schedule_edge e[2] = {{.state = SCHEDULE_EDGE_DONE}, {.state = SCHEDULE_EDGE_DONE}};
    struct schedule_view v = settling(e);
    (void)state;
    v.may_recover = true;
    expect(&v, SCHEDULE_WAIT, "stranded");
    assert_true(schedule_next(&v).stranded && !schedule_next(&v).left && !schedule_next(&v).drain);
    v.stalled_us = SCHEDULE_STALL_US + 1;
    expect(&v, SCHEDULE_LAST, "no progress");
    v.stalled_us = 0;
    v.may_recover = false;
    expect(&v, SCHEDULE_LAST, "the finish protocol cannot help");
    v.may_recover = true;
    e[1] = at(150);
    assert_false(schedule_next(&v).stranded);
}

/* A peer that was about to end continues to mix if its last exchanges moved it out of the target. If
 * no finish protocol can bring it back, it ends. */
static void test_the_last_exchanges_move_the_peer(void **state)
{
    struct schedule_edge e[2] = {at(150), at(150)};
    struct schedule_view v = settling(e);
    (void)state;
    e[0].exchange = e[1].exchange = SCHEDULE_EXCHANGE_EMPTY;
    v.draining = true;
    v.distance = 2 * v.target;
    expect(&v, SCHEDULE_LAST, "no finish protocol");
    v.may_recover = true;
    expect(&v, SCHEDULE_MIX, "mixes again");
    assert_true(schedule_next(&v).resumes && !schedule_next(&v).drain);
    e[0].exchange = SCHEDULE_EXCHANGE_COMPLETE;
    assert_false(schedule_next(&v).resumes);
}

/* In lock step a peer continues if a neighbour is ahead, even without a delta to apply. Otherwise
 * the two peers would wait for each other forever. */
static void test_the_last_phase_in_lock_step(void **state)
{
    struct schedule_edge e[2] = {at(152), at(150)};
    struct schedule_view v = settling(e);
    (void)state;
    expect(&v, SCHEDULE_MIX, "behind");
    e[0].beat = 150;
    expect(&v, SCHEDULE_WAIT, "nothing to mix");
    e[1].exchange = SCHEDULE_EXCHANGE_EMPTY;
    expect(&v, SCHEDULE_MIX, "a delta to make");
    v.draining = true;
    expect(&v, SCHEDULE_WAIT, "no delta is made any more");
}

/* With a graph that changes by round, an edge that is not used in this round (`idle`) makes no
 * delta. */
static void test_whose_turn_it_is_not(void **state)
{
    struct schedule_edge e[2] = {at(150), at(150)};
    struct schedule_view v = settling(e);
    (void)state;
    e[0].idle = true;
    e[0].exchange = SCHEDULE_EXCHANGE_EMPTY;
    expect(&v, SCHEDULE_MIX, "its end waits for our beat");
    e[0].flapping = true;
    expect(&v, SCHEDULE_WAIT, "of whom nothing is expected");
    v.draining = true;
    e[0] = at(151);
    expect(&v, SCHEDULE_MIX, "the graph stands still: others wait");
    e[0].idle = true;
    expect(&v, SCHEDULE_WAIT, "our last exchange comes without that");
}

/* A neighbour has announced that it finishes at a step that this peer has not reached yet
 * (`ends_later`). The neighbour's last hop count remains valid until this peer reaches that step,
 * so it does not matter how early the announcement arrives. */
static void test_who_ends_later(void **state)
{
    struct schedule_edge e[2] = {settled(150, 2), settled(150, 7)};
    struct schedule_view v = settling(e);
    (void)state;
    v.distance = 0;
    e[0].exchange = e[1].exchange = SCHEDULE_EXCHANGE_MADE;
    assert_int_equal(schedule_settled(&v), 3);
    e[0].state = SCHEDULE_EDGE_DONE;
    e[0].ends_later = true;
    assert_int_equal(schedule_settled(&v), 3);
    e[1] = e[0];
    expect(&v, SCHEDULE_MIX, "up to the beat behind their last");
    e[0].ends_later = e[1].ends_later = false;
    expect(&v, SCHEDULE_LAST, "nobody is left");
}

static void test_slow_trainers_are_waited_for_at_a_low_rate(void **state)
{
    struct schedule_edge e[2] = {ready(150), ready(150)};
    struct schedule_view v = settling(e);
    (void)state;
    v.lock_step = false, v.staleness = 0;
    v.idle_us = 1000;
    expect(&v, SCHEDULE_MIX, "all have trained");
    v.trained = false;
    expect(&v, SCHEDULE_WAIT, "somebody trains");
    assert_int_equal(schedule_next(&v).wait_us, SCHEDULE_SLOW_US - 1000);
    v.pace_us = SECOND;
    assert_int_equal(schedule_next(&v).wait_us, SECOND - 1000);
}

static void test_serving(void **state)
{
    struct schedule_edge e[2] = {{.state = SCHEDULE_EDGE_DONE}, at(150)};
    struct schedule_view v = settling(e);
    (void)state;
    v.phase = NODE_FINISHING;
    expect(&v, SCHEDULE_WAIT, "a neighbour mixes");
    v.idle_us = SCHEDULE_STALL_US + 1;
    expect(&v, SCHEDULE_LEAVE, "for too long");
    v.idle_us = 0;
    e[1] = lost(SCHEDULE_LOST_US);
    expect(&v, SCHEDULE_WAIT, "it may come back");
    e[1].lost_us++;
    expect(&v, SCHEDULE_LEAVE, "it does not");
    e[1] = e[0];
    expect(&v, SCHEDULE_LEAVE, "all are done");
    v.ends_pending = true;
    expect(&v, SCHEDULE_WAIT, "somebody has not said how it ended");
    v.idle_us = SCHEDULE_STALL_US + 1;
    expect(&v, SCHEDULE_LEAVE, "for too long");
    v.phase = NODE_LEFT;
    expect(&v, SCHEDULE_WAIT, "gone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_step_waits_for_the_slower),
        cmocka_unit_test(test_a_skew_is_corrected_once),
        cmocka_unit_test(test_beats_are_claimed_beyond_the_lead),
        cmocka_unit_test(test_stale_synchronous_waits_at_its_bound),
        cmocka_unit_test(test_nobody_waits_for_who_is_excused),
        cmocka_unit_test(test_who_is_alone_keeps_the_pace),
        cmocka_unit_test(test_in_step),
        cmocka_unit_test(test_who_gathers),
        cmocka_unit_test(test_async_waits_for_nobody),
        cmocka_unit_test(test_gathering),
        cmocka_unit_test(test_below_the_quorum_it_mixes_and_takes_no_steps),
        cmocka_unit_test(test_training_ends),
        cmocka_unit_test(test_settled_by_hops),
        cmocka_unit_test(test_settled_without_the_stuck),
        cmocka_unit_test(test_settled_after_what_is_old),
        cmocka_unit_test(test_a_missing_edge_holds_the_end),
        cmocka_unit_test(test_a_brief_loss_is_none),
        cmocka_unit_test(test_draining_finishes_what_is_half_done),
        cmocka_unit_test(test_the_end_without_progress),
        cmocka_unit_test(test_nobody_is_left_to_mix_with),
        cmocka_unit_test(test_stranded),
        cmocka_unit_test(test_the_last_exchanges_move_the_peer),
        cmocka_unit_test(test_the_last_phase_in_lock_step),
        cmocka_unit_test(test_whose_turn_it_is_not),
        cmocka_unit_test(test_who_ends_later),
        cmocka_unit_test(test_slow_trainers_are_waited_for_at_a_low_rate),
        cmocka_unit_test(test_serving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
