/* tests/unit/node_lone_phases.c -- tests of waiting for neighbours, skipped rounds, hung workers,
 * the quorum, and the end of the consensus phase. */
#include "tests/unit/node_lone_world.h"

enum { LOW_ID = 0x10, ROUNDS = 1000000, MS = 1000 };

static struct lone *new_world(uint32_t n_actors, uint64_t rounds)
{
    struct lone *w = lone_new(n_actors, LOW_ID, rounds);
    w->config.worker_limit_us = 3 * SECOND;
    w->config.patience_us = 600 * (int64_t)SECOND;
    return w;
}

static struct lone *training_with(uint32_t n_actors)
{
    struct lone *w = new_world(n_actors, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    return w;
}

/* Returns the number of rounds by which the node advances in the next `us` microseconds. */
static uint64_t rounds_in(struct lone *w, int64_t us)
{
    uint64_t before = lone_progress(w).round;
    lone_run(w, us);
    return lone_progress(w).round - before;
}

/* ---- step announcements ---- */

/* Neighbours claim to be 500 rounds ahead, so the node advances without doing these rounds. Such
 * rounds count as skipped if the node was training, but not if it has just joined (at_once). */
static void test_rounds_add_up(void **state)
{
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        struct lone *w = at_once ? new_world(1, ROUNDS) : training_with(2);
        uint64_t round = at_once ? 0 : lone_progress(w).round;
        /* Two neighbours claim to be ahead, because the node would not believe a single claim. */
        w->actor[0].ahead = w->actor[1].ahead = 500;
        if (at_once)
            lone_open(w);
        while (lone_progress(w).round < round + 500)
            lone_run(w, LONE_STEP_US);
        w->actor[0].ahead = w->actor[1].ahead = 0;
        lone_run(w, SECOND);
        struct node_progress p = lone_progress(w);
        assert_int_equal(p.joined_round + p.rounds_done + p.rounds_skipped, p.round);
        assert_int_equal(p.rounds_done, w->n_steps - (w->work_us != 0));
        if (at_once)
            assert_true(p.joined_round >= 500);
        else
            assert_true(p.joined_round == 0 && p.rounds_skipped > 400);
        /* The node announced its new step in a BEAT message. */
        assert_true(w->actor[0].beat >= 500);
        lone_close(w);
    }
}

/* The node waits for a neighbour that is behind, until a BEAT or EDGE names a higher step. */
static void test_beats_let_us_go_on(void **state)
{
    (void)state;
    for (int by_edge = 0; by_edge < 2; by_edge++) {
        struct lone *w = training_with(1);
        struct lone_actor *a = &w->actor[0];
        a->follows = false;
        lone_run(w, SECOND);
        uint64_t round = lone_progress(w).round;
        assert_int_equal(rounds_in(w, SECOND), 0);
        if (by_edge) {
            lone_edge(w, 0,
                      (struct wire_edge){.epoch = a->delta.epoch,
                                         .round = a->delta.round,
                                         .nonce = ++a->nonce,
                                         .run_round = round + 10});
        } else {
            lone_beat(w, 0, round + 10);
            /* A BEAT message with a lower step than the previous one has no effect. */
            lone_beat(w, 0, round - 5);
        }
        lone_run(w, 500 * MS);
        /* The node may already be one step past the step that its neighbours announced. */
        uint64_t now = lone_progress(w).round;
        assert_true(now == round + 10 || now == round + 11);
        lone_close(w);
    }
}

/* A waiting node sends its step about twice per second, and also when it opens an edge. A lost
 * message therefore cannot block a wait. */
static void test_waiting_is_said(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    a->follows = false;
    lone_run(w, 500 * MS);
    uint32_t n = a->n_beat;
    lone_run(w, 2 * SECOND);
    assert_true(a->n_beat >= n + 3 && a->n_beat <= n + 6);
    assert_int_equal(a->beat, lone_progress(w).round);
    lone_disconnect(w, a->link, false);
    (void)lone_connect(w, 0, false, 0);
    lone_hello(w, 0);
    lone_flush(w);
    assert_int_equal(a->edge.run_round, a->beat);
    lone_close(w);
}

/* A step announcement (BEAT) never overtakes the delta of its round. Otherwise the receiver would
 * assume that no delta is coming, and would continue without the exchange. */
static void test_beats_overtake_no_delta(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    w->actor[0].n_early = w->actor[1].n_early = 0;
    for (int i = 0; i < 20; i++) {
        w->actor[1].follows = i % 2;
        lone_run(w, 300 * MS);
        if (w->actor[1].follows)
            lone_answer(w, 1);
    }
    assert_true(w->actor[0].n_beat > 4);
    /* Each BEAT message came after the delta of its round. */
    assert_int_equal(w->actor[0].n_early, 0);
    lone_close(w);
}

/* When a silent neighbour is heard again, the node announces its step to it. */
static void test_beat_after_silence(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    struct lone_actor *a = &w->actor[1];
    a->follows = false;
    lone_run(w, 4 * SECOND);
    a->beat = 0;
    lone_ping(w, 1, 1, 0);
    lone_flush(w);
    assert_true(a->beat > 0);
    assert_true(a->beat <= lone_progress(w).round && a->beat + 2 >= lone_progress(w).round);
    lone_close(w);
}

/* ---- workers that hang ---- */

/* Simulated peer 1 still responds, but its worker runs one job for longer than the straggler
 * timeout (busy), or it sends no deltas for three times as long. In both cases the node continues
 * without it, and waits for it again after it has recovered. */
static void test_stuck_neighbour(void **state)
{
    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        struct lone *w = training_with(2);
        int64_t least_us = (busy ? 1 : 3) * w->config.worker_limit_us;
        w->actor[1].follows = false;
        lone_run(w, 200 * MS);
        for (int64_t t = 0; t < least_us - SECOND; t += 250 * MS) {
            lone_ping(w, 1, 1, busy ? (uint32_t)(t / 1000) + 1 : 0);
            assert_true(rounds_in(w, 250 * MS) <= 1);
        }
        for (int64_t t = least_us - SECOND; t < least_us + SECOND; t += 250 * MS) {
            lone_ping(w, 1, 1, busy ? (uint32_t)(t / 1000) : 0);
            lone_run(w, 250 * MS);
        }
        lone_ping(w, 1, 1, busy ? (uint32_t)(least_us / 1000) + 1000 : 0);
        assert_true(rounds_in(w, SECOND) >= 30);
        w->actor[1].follows = true; /* The neighbour has recovered. */
        lone_ping(w, 1, 1, 0);
        lone_answer(w, 1);
        lone_run(w, SECOND);
        assert_true(w->actor[1].delta.run_round + 2 >= lone_progress(w).round);
        w->actor[1].follows = false;
        lone_run(w, 200 * MS);
        assert_int_equal(rounds_in(w, SECOND), 0);
        lone_close(w);
    }
}

/* While a long job of the node itself runs, a neighbour does not count as silent. */
static void test_own_job_is_no_silence(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    w->step_us = 20 * SECOND;
    lone_run(w, SECOND);
    w->actor[0].follows = false;
    w->step_us = LONE_STEP_US;
    for (int i = 0; i < 80; i++) {
        lone_ping(w, 0, 1, 0);
        lone_run(w, 250 * MS);
    }
    assert_true(rounds_in(w, SECOND) <= 1);
    lone_close(w);
}

/* Runs jobs of `job_us` (0: none), one job of `once_us` (0: none), and a last job of `long_us`. The
 * time limit for the last job depends on the jobs before it. stalls: the last job exceeds its
 * limit, so the node must announce that its worker hangs, until the job is done. */
static void own_job(int64_t job_us, int64_t once_us, int64_t long_us, bool stalls)
{
    struct lone *w = new_world(1, ROUNDS);
    struct lone_actor *a = &w->actor[0];
    w->step_us = job_us > 0 ? job_us : long_us;
    lone_open(w);
    if (job_us > 0)
        lone_run(w, 10 * SECOND + 20 * job_us);
    if (once_us > 0) {
        w->step_us = once_us;
        lone_run(w, job_us);
        w->step_us = job_us;
        lone_run(w, 2 * once_us);
    }
    assert_false(a->told_stalled);
    w->step_us = long_us;
    while (w->work_us < w->now_us + long_us - SECOND / 2)
        lone_run(w, LONE_STEP_US);
    w->step_us = LONE_STEP_US;
    uint32_t n_notes = w->n_notes;
    lone_run(w, w->work_us - w->now_us - SECOND / 4);
    assert_int_equal(a->told_stalled, stalls);
    assert_int_equal(w->n_notes > n_notes, stalls);
    assert_true(a->busy_ms > long_us / 2000);
    lone_run(w, 2 * SECOND);
    assert_int_equal(a->told.state, RECORD_RUNNING);
    assert_true(a->busy_ms < 1000);
    lone_close(w);
}

static void test_own_worker_hangs(void **state)
{
    (void)state;
    own_job(LONE_STEP_US, 0, 2500 * MS, false);
    own_job(LONE_STEP_US, 0, 5 * SECOND, true);
    /* The time limit of the last job is 4 x the longest job duration. */
    own_job(LONE_STEP_US, 2500 * MS, 8 * SECOND, false);
    own_job(LONE_STEP_US, 2500 * MS, 12 * SECOND, true);
    /* The time limit of the last job is 20 x the mean job duration. */
    own_job(SECOND, 0, 15 * SECOND, false);
    own_job(SECOND, 0, 25 * SECOND, true);
    own_job(0, 0, 12 * SECOND, false); /* The time limit of the first job is 6 x worker_limit_us. */
    own_job(0, 0, 20 * SECOND, true);
}

/* The last evaluation uses the whole test set. No peer waits for it, so the job watchdog does not
 * report it as hanging. */
static void test_last_evaluation_may_take_long(void **state)
{
    (void)state;
    struct lone *w = new_world(1, 50);
    lone_open(w);
    while (lone_progress(w).phase != NODE_FINISHING) {
        lone_run(w, LONE_STEP_US / 4);
        if (lone_progress(w).round == 50)
            w->step_us = 30 * SECOND;
    }
    lone_run(w, 60 * SECOND);
    assert_true(w->over);
    assert_int_equal(w->exit_code, 0);
    assert_false(w->actor[0].told_stalled);
    lone_close(w);
}

/* ---- members that come and go ---- */

static void leave(struct lone *w, uint32_t who, bool session)
{
    w->actor[who].follows = false;
    if (session)
        lone_disconnect(w, w->actor[who].link, false);
}

static void come_back(struct lone *w, uint32_t who, bool session)
{
    w->actor[who].follows = true;
    if (session) {
        (void)lone_connect(w, who, false, 0);
        lone_hello(w, who);
    } else {
        lone_ping(w, who, 1, 0);
        lone_answer(w, who);
    }
}

static void absence(struct lone *w, uint32_t who, bool session, int64_t us)
{
    leave(w, who, session);
    lone_run(w, us);
    come_back(w, who, session);
    lone_run(w, SECOND);
}

/* Returns whether the node continues its rounds while simulated peer 1 does not answer. */
static bool goes_on(struct lone *w)
{
    w->actor[1].follows = false;
    lone_run(w, 100 * MS);
    bool on = rounds_in(w, 700 * MS) >= 20;
    w->actor[1].follows = true;
    lone_ping(w, 1, 1, 0);
    lone_answer(w, 1);
    lone_run(w, SECOND);
    return on;
}

/* Simulated peer 1 is away again and again, either without a session or silent. The node then
 * does not wait for it until it has been stable for a while. A single short absence has no such
 * effect. */
static void test_flapping(void **state)
{
    (void)state;
    for (int session = 0; session < 2; session++) {
        struct lone *w = training_with(2);
        w->actor[1].answers = false;
        absence(w, 1, session, 1500 * MS);
        assert_false(goes_on(w));
        for (int i = 0; i < 12; i++)
            absence(w, 1, session, 1500 * MS);
        assert_true(goes_on(w));
        assert_int_equal(lone_said(w, "disconnects repeatedly"), 1);
        lone_run(w, 60 * SECOND);
        assert_false(goes_on(w));
        lone_close(w);
    }
}

/* One absence of 5 s is reported as a single absence, not as repeated disconnects. */
static void test_one_long_absence(void **state)
{
    (void)state;
    for (int session = 0; session < 2; session++) {
        struct lone *w = training_with(2);
        w->actor[1].answers = false;
        absence(w, 1, session, 5 * SECOND);
        assert_int_equal(lone_said(w, "was away for"), 1);
        assert_int_equal(lone_said(w, "disconnects repeatedly"), 0);
        assert_true(goes_on(w)); /* The neighbour is back, but is not waited for yet. */
        lone_close(w);
    }
}

/* All neighbours are absent at the same time, as if the network of the node failed. The node does not
 * take them for flapping: it still waits for them when they are back. */
static void test_all_neighbours_absent(void **state)
{
    (void)state;
    for (int session = 0; session < 2; session++) {
        struct lone *w = training_with(2);
        w->actor[1].answers = false;
        for (int i = 0; i < 3; i++) {
            leave(w, 0, session);
            leave(w, 1, session);
            lone_run(w, 4 * SECOND);
            come_back(w, 0, session);
            come_back(w, 1, session);
            lone_run(w, SECOND);
        }
        assert_false(goes_on(w));
        lone_close(w);
    }
}

/* The process is suspended for 60 s. The node reports this, and blames no worker or neighbour. */
static void test_own_standstill(void **state)
{
    (void)state;
    struct lone *w = new_world(2, ROUNDS);
    w->config.worker_limit_us = 10 * SECOND;
    lone_open(w);
    lone_run(w, 5 * SECOND);
    w->step_us = SECOND;
    while (w->work_us <= w->now_us + SECOND / 2)
        lone_run(w, LONE_STEP_US);
    w->now_us += 60 * SECOND;
    lone_run(w, 5 * SECOND);
    assert_int_equal(lone_said(w, "this process was paused for 60 s"), 1);
    assert_int_equal(lone_said(w, "the worker"), 0);
    assert_int_equal(lone_said(w, "this peer does not wait for it"), 0);
    assert_false(w->actor[0].told_stalled);
    assert_int_equal(lone_progress(w).n_edges, 2);
    lone_close(w);
}

/* ---- the quorum ---- */

/* Below the quorum the node takes no local steps, until the quorum timeout ends. */
static void test_quorum(void **state)
{
    (void)state;
    struct lone *w = new_world(3, ROUNDS);
    w->config.patience_us = 100 * (int64_t)SECOND;
    lone_open(w);
    lone_run(w, 15 * SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        w->actor[i].answers = false;
        lone_disconnect(w, w->actor[i].link, false);
    }
    lone_run(w, 40 * SECOND);
    assert_true(lone_progress(w).holds);
    assert_int_equal(lone_progress(w).n_live, 1);
    assert_int_equal(lone_progress(w).n_edges, 0);
    assert_int_equal(rounds_in(w, 20 * SECOND), 0);
    lone_run(w, 70 * SECOND);
    assert_false(lone_progress(w).holds);
    assert_true(rounds_in(w, SECOND) > 10);
    lone_close(w);
}

/* Below the quorum a node continues to mix at a low rate with the neighbours that are there. The
 * mixing does not count as rounds, neither in training nor in the consensus phase. */
static void test_held_peer_mixes(void **state)
{
    (void)state;
    for (int settles = 0; settles < 2; settles++) {
        struct lone *w = new_world(4, settles ? 100 : ROUNDS);
        w->run.final_drift = 1e-3;
        /* Simulated peer 0 sends no sketches, without which the consensus phase cannot end. */
        w->actor[0].blind = true;
        lone_open(w);
        lone_run(w, 15 * SECOND);
        assert_int_equal(lone_progress(w).phase, settles ? NODE_CONSENSUS : NODE_TRAINING);
        for (uint32_t i = 1; i < 4; i++) {
            w->actor[i].answers = false;
            lone_disconnect(w, w->actor[i].link, false);
        }
        lone_run(w, 20 * SECOND);
        assert_true(lone_progress(w).holds);
        struct node_progress before = lone_progress(w);
        uint32_t n = w->actor[0].n_delta;
        lone_run(w, 10 * SECOND);
        assert_true(w->actor[0].n_delta > n + 5 && w->actor[0].n_delta < n + 30);
        assert_int_equal(lone_progress(w).round, before.round);
        assert_int_equal(lone_progress(w).settle_rounds, before.settle_rounds);
        lone_close(w);
    }
}

/* ---- the consensus phase ---- */

/* Without lock step, the consensus phase runs at a low rate while a neighbour still trains, however
 * long that takes, and then at full speed. */
static void test_slow_trainer(void **state)
{
    (void)state;
    struct lone *w = new_world(1, 200);
    struct lone_actor *a = &w->actor[0];
    w->run.policy = RUN_ASYNC;
    w->run.final_drift = 1e-3;
    lone_open(w);
    lone_run(w, 30 * SECOND);
    assert_true(a->told_trained);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    uint32_t n = a->n_delta;
    /* The consensus phase lasts less than 1600 s after all peers have finished training. Here a
     * neighbour still trains, so the phase must last longer. */
    lone_run(w, 1600 * (int64_t)SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    assert_true(a->n_delta > n + 1600 && a->n_delta < n + 8000);
    a->record.state = RECORD_TRAINED;
    a->record.incarnation++;
    lone_tell(w, 0, a->record);
    n = a->n_delta;
    lone_run(w, 10 * SECOND);
    assert_true(a->n_delta > n + 350); /* Exchanges run at full speed again. */
    lone_close(w);
}

static void say_state(struct lone *w, uint32_t who, uint32_t teller, enum record_state state)
{
    struct record *r = &w->actor[who].record;
    r->state = state;
    r->incarnation++;
    lone_tell(w, teller, *r);
}

static void finish(struct lone *w, uint32_t who, uint32_t teller)
{
    say_state(w, who, teller, RECORD_FINISHED);
}

/* Returns a node in the consensus phase, with neighbours that send no sketches of their models. */
static struct lone *settling_with_blind(uint32_t n_actors)
{
    struct lone *w = new_world(n_actors, 100);
    w->run.final_drift = 1e-3;
    for (uint32_t i = 0; i < n_actors; i++)
        w->actor[i].blind = true;
    lone_open(w);
    lone_run(w, 60 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    return w;
}

/* The consensus distance cannot be measured, so consensus is not claimed. When no peer trains any
 * more, the consensus phase continues for a few minutes. The run then ends with an exit code other
 * than 0. */
static void test_end_without_figures(void **state)
{
    (void)state;
    struct lone *w = settling_with_blind(1);
    lone_run(w, 1000 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    say_state(w, 0, 0, RECORD_TRAINED);
    lone_run(w, 500 * SECOND);
    assert_true(w->over && w->wrote_model);
    assert_int_not_equal(w->exit_code, 0);
    lone_close(w);
}

/* The neighbour hangs and then opens its edge again, so it has recovered. The consensus phase must
 * therefore continue. */
static void test_no_end_by_old_word(void **state)
{
    (void)state;
    struct lone *w = settling_with_blind(1);
    uint8_t out[16];
    w->actor[0].follows = false;
    lone_says(w, 0, out, wire_put_edge_close(out, sizeof out));
    lone_ping(w, 0, 100, 300 * 1000);
    lone_run(w, SECOND / 10);
    lone_follow_edge(w, 0);
    lone_run(w, SECOND / 10);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    /* The only neighbour hangs again. The node waits for the finish protocol, which does not
     * answer, until it has made no progress for SCHEDULE_STALL_US. */
    lone_ping(w, 0, 100, 300 * 1000);
    lone_run(w, SECOND / 10);
    assert_int_equal(lone_progress(w).phase, NODE_CONSENSUS);
    lone_run(w, 2 * SCHEDULE_STALL_US);
    assert_int_not_equal(lone_progress(w).phase, NODE_CONSENSUS);
    lone_close(w);
}

/* Simulated peer 1 has finished, so a distance over all members can no longer be measured. The node
 * ends its consensus phase at once and does not wait for minutes. */
static void test_end_after_another(void **state)
{
    (void)state;
    struct lone *w = settling_with_blind(2);
    say_state(w, 0, 0, RECORD_TRAINED);
    finish(w, 1, 1);
    lone_run(w, 60 * SECOND);
    /* The node has finished its model and knows that there is no consensus. */
    assert_true(w->wrote_model);
    finish(w, 0, 0);
    lone_run(w, 60 * SECOND);
    assert_true(w->over);
    assert_int_not_equal(w->exit_code, 0);
    lone_close(w);
}

static uint32_t state_with(struct lone *w, uint32_t who)
{
    const struct wire_status_edge *e = lone_edge_to(w, who);
    return e != NULL ? e->state : EDGE_CLOSED;
}

/* A relayed record says that simulated peer 1 has finished. If peer 1 has no session, the edge to
 * it ends at once. Otherwise the node waits for an announcement of peer 1 itself while deltas still
 * arrive. */
static void test_finished_by_record(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    finish(w, 1, 0);
    lone_run(w, 500 * MS);
    assert_int_equal(state_with(w, 1), EDGE_OPEN);
    w->actor[0].follows = w->actor[1].follows = false;
    for (int i = 0; i < 12; i++) {
        lone_run(w, 250 * MS);
        lone_ping(w, 0, 1, 0);
        lone_ping(w, 1, 1, 0);
    }
    assert_int_equal(state_with(w, 1), EDGE_DONE);
    lone_close(w);
    w = training_with(2);
    w->actor[1].answers = false;
    lone_disconnect(w, w->actor[1].link, false);
    lone_run(w, 100 * MS);
    finish(w, 1, 0);
    lone_run(w, 100 * MS);
    const struct wire_status *s = &w->actor[0].status;
    (void)lone_edge_to(w, 0);
    bool done = false;
    for (uint32_t i = 0; i < s->n_edges; i++)
        done |= memcmp(s->edges[i].id, w->actor[1].id, WIRE_ID_BYTES) == 0
                && s->edges[i].state == EDGE_DONE;
    assert_true(done);
    lone_run(w, 30 * SECOND);
    assert_int_equal(w->actor[0].n_accusations, 0);
    lone_close(w);
}

/* ---- joining ---- */

/* A node may join a run under way, although fewer members than --min-peers are connected. */
static void test_joins_below_min_peers(void **state)
{
    (void)state;
    uint8_t out[8192];
    static const float x[LONE_DIM] = {1, 2, 3};
    struct lone *w = new_world(1, ROUNDS);
    w->run.min_peers = 4;
    w->actor[0].started = 1;
    w->config.found = false;
    lone_open(w);
    if (w->actor[0].link == NO_LINK)
        (void)lone_connect(w, 0, false, 0);
    lone_hello(w, 0);
    lone_run(w, SECOND);
    assert_int_equal(w->actor[0].n_model_req, 1);
    struct wire_model m = {.round = 0, .payload = {(const uint8_t *)x, sizeof x}};
    size_t n = wire_put_model(out, sizeof out, &m);
    memcpy(out + n, x, sizeof x);
    lone_says(w, 0, out, n + sizeof x);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    lone_close(w);
}

/* ---- the initial members ---- */

/* A node that knows enough members becomes an initial member. It must begin training only when
 * --min-peers members have announced that they are initial members. */
static void test_waits_for_initial_members(void **state)
{
    (void)state;
    struct lone *w = new_world(2, ROUNDS);
    w->run.min_peers = 3;
    for (uint32_t i = 0; i < 2; i++) {
        w->actor[i].record.initial = i == 0;
        w->actor[i].record = w->known[i] = signed_record(w->actor[i].record);
    }
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_true(w->actor[0].told.initial);
    assert_int_equal(lone_progress(w).phase, NODE_JOINING);
    w->actor[1].record.initial = true;
    w->actor[1].record.incarnation++;
    lone_tell(w, 0, w->actor[1].record);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    lone_close(w);
}

/* As simulated peer 0, sends the node a model that belongs to round `round`. */
static void send_model(struct lone *w, uint64_t round)
{
    uint8_t out[8192];
    static const float x[LONE_DIM] = {1, 2, 3};
    struct wire_model m = {.round = round, .payload = {(const uint8_t *)x, sizeof x}};
    size_t n = wire_put_model(out, sizeof out, &m);
    memcpy(out + n, x, sizeof x);
    lone_says(w, 0, out, n + sizeof x);
}

/* A node that joins a run under way must not become an initial member, even in the first round. */
static void test_joiner_is_not_initial(void **state)
{
    (void)state;
    for (uint64_t round = 0; round <= 500; round += 500) {
        struct lone *w = new_world(1, ROUNDS);
        w->actor[0].started = round + 1;
        w->config.found = false;
        lone_open(w);
        if (w->actor[0].link == NO_LINK)
            (void)lone_connect(w, 0, false, 0);
        lone_hello(w, 0);
        lone_run(w, SECOND);
        assert_int_equal(w->actor[0].n_model_req, 1);
        assert_false(w->actor[0].told.initial);
        send_model(w, round);
        lone_run(w, 15 * SECOND);
        assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
        assert_true(lone_progress(w).joined_round >= round);
        assert_false(w->actor[0].told.initial);
        lone_close(w);
    }
}

/* The neighbour has fetched a model of round 8, but all members that have begun are gone. The run is
 * under way, so the node must not become an initial member. */
static void test_joiner_after_a_joiner_is_not_initial(void **state)
{
    (void)state;
    for (uint64_t fetched = 0; fetched <= 8; fetched += 8) {
        struct lone *w = new_world(1, ROUNDS);
        w->run.min_peers = 2;
        w->actor[0].fetched = fetched;
        w->actor[0].record.initial = true;
        w->actor[0].record = signed_record(w->actor[0].record);
        w->config.found = false;
        lone_open(w);
        if (w->actor[0].link == NO_LINK)
            (void)lone_connect(w, 0, false, 0);
        lone_hello(w, 0);
        lone_run(w, 15 * SECOND);
        assert_int_equal(w->actor[0].told.initial, fetched == 0);
        assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
        lone_close(w);
    }
}

/* An initial member restarts without its checkpoint. The node must send it the record of its former
 * process. */
static void test_reminds_an_initial_member(void **state)
{
    (void)state;
    for (int initial = 0; initial < 2; initial++) {
        struct lone *w = training_with(2);
        struct lone_actor *a = &w->actor[0];
        lone_disconnect(w, a->link, true);
        a->record.boot++;
        a->record.incarnation += 1 << 20;
        a->record.initial = initial;
        a->record = signed_record(a->record);
        a->reminded = false;
        a->n_hello = 0;
        (void)lone_connect(w, 0, false, 0);
        lone_hello(w, 0);
        lone_flush(w);
        assert_int_equal(a->reminded, !initial);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_initial_members),
        cmocka_unit_test(test_joiner_is_not_initial),
        cmocka_unit_test(test_joiner_after_a_joiner_is_not_initial),
        cmocka_unit_test(test_reminds_an_initial_member),
        cmocka_unit_test(test_rounds_add_up),
        cmocka_unit_test(test_beats_let_us_go_on),
        cmocka_unit_test(test_waiting_is_said),
        cmocka_unit_test(test_beats_overtake_no_delta),
        cmocka_unit_test(test_beat_after_silence),
        cmocka_unit_test(test_stuck_neighbour),
        cmocka_unit_test(test_own_job_is_no_silence),
        cmocka_unit_test(test_own_worker_hangs),
        cmocka_unit_test(test_last_evaluation_may_take_long),
        cmocka_unit_test(test_flapping),
        cmocka_unit_test(test_one_long_absence),
        cmocka_unit_test(test_all_neighbours_absent),
        cmocka_unit_test(test_own_standstill),
        cmocka_unit_test(test_quorum),
        cmocka_unit_test(test_held_peer_mixes),
        cmocka_unit_test(test_slow_trainer),
        cmocka_unit_test(test_end_without_figures),
        cmocka_unit_test(test_end_after_another),
        cmocka_unit_test(test_no_end_by_old_word),
        cmocka_unit_test(test_finished_by_record),
        cmocka_unit_test(test_joins_below_min_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
