/* peer/node/step/phases.c -- collects what this peer knows for the schedule, and carries out the
 * schedule's decisions. */
#include "peer/node/step/phases.h"

#include "nn/math/state.h"
#include "peer/node/finish/finish.h"
#include "peer/node/mark.h"
#include "peer/node/membership/quorum.h"
#include "peer/node/step/phases_state.h"
#include "peer/node/step/run_ended.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The target of the consensus phase is --final-drift times this factor. The factor is below 1,
 * because estimates of the distance have an error. */
static const double final_margin = 0.8;

/* A distance counts as progress if it is below this factor times its value at earlier progress. For
 * the distances of edges, the factor applies to the square. */
static const double better_factor = 0.9;

enum {
    /* The consensus phase counts as stalled only after STALL_WINDOWS drift windows (measurements of
     * the consensus distance) and STALL_ROUNDS rounds without progress. A time limit alone would be
     * too short on a slow network. */
    STALL_WINDOWS = 3,
    STALL_ROUNDS = 64,
    /* Least number of rounds of the consensus phase after the first aborted attempt of the finish
     * protocol. */
    PHASES_AGAIN_ROUNDS = 32,
    /* The consensus phase counts as stalled even if no drift window (period of measurement) has
     * ended, after the lesser of two numbers of rounds without progress: STALL_MOST, and
     * STALL_ROUNDS * (1 + number of vertices of the graph). */
    STALL_MOST = 5000,
    /* A link that carries fewer bytes per second counts as broken in the consensus phase: 100
     * kbit/s. */
    SLOWEST_LINK = 12500
};

struct phases *phases_open(struct env *env, const struct sessions *s, struct run_context *w,
                           struct edges *es, struct join *j, struct checkpoint *c, struct quorum *q,
                           const struct round_protocol *p)
{
    struct phases *ph = calloc(1, sizeof *ph);
    if (ph != NULL)
        *ph = (struct phases){.env = env,
                              .sessions = s,
                              .workshop = w,
                              .edges = es,
                              .join = j,
                              .checkpoint = c,
                              .quorum = q,
                              .round_protocol = p,
                              .past = env->config.past,
                              .phase = NODE_JOINING,
                              .bound = (double)INFINITY,
                              .chain.bound = (double)INFINITY,
                              .wake_us = INT64_MAX};
    return ph;
}

void phases_close(struct phases *ph)
{
    if (ph != NULL)
        free(ph->seen);
    free(ph);
}

void phases_forget(struct phases *ph)
{
    assert(ph->phase == NODE_JOINING);
    ph->round = ph->joined = ph->done = ph->skipped = 0;
    ph->resumed = ph->taken = ph->final = false;
}

void phases_start(struct phases *ph)
{
    ph->idle_since_us = ph->told_us = ph->env->now_us;
}

static bool lock_step(const struct phases *ph)
{
    return ph->workshop->run.policy == RUN_SYNC;
}

static bool held(const struct phases *ph)
{
    return quorum_is_held(ph->quorum);
}

/* Checks the invariants of *ph by assertions. Relations between the numbers of rounds are not
 * checked, because these numbers may come from a checkpoint. O(1). */
static void phases_check(const struct phases *ph)
{
    bool settles = ph->phase == NODE_CONSENSUS || ph->phase == NODE_FINISHING;
    assert(settles || (ph->settle_rounds == 0 && ph->mix_until == 0 && !ph->draining));
    assert(ph->phase == NODE_FINISHING || ph->n_ended == 0);
    assert(!ph->final || ph->phase == NODE_JOINING || ph->phase == NODE_FINISHING);
    assert(!ph->steps || (ph->phase != NODE_JOINING && ph->phase != NODE_FINISHING));
    assert(!ph->ahead || (ph->steps && ph->phase == NODE_TRAINING));
    assert(ph->phase == NODE_JOINING || join_has_model(ph->join));
}

/* ---- rounds ---- */

uint64_t phases_beat(const struct phases *ph)
{
    return ph->round + ph->settle_rounds;
}

uint64_t phases_next_beat(const struct phases *ph)
{
    return phases_beat(ph) + (ph->steps || (ph->phase == NODE_CONSENSUS && !held(ph)));
}

/* Replaces all measurements of this peer's distance from the mean by `bound`. Drift windows that
 * end later do not count until begin_bound() is called. */
static void set_bound(struct phases *ph, double bound)
{
    ph->bound = bound;
    ph->chain.bound = (double)INFINITY;
    ph->settling_window = UINT64_MAX;
}

/* Called when this peer's final model is one that this process has not mixed: a fetched model, or
 * the stored model of an earlier process. `bound`: bound on the distance of the model. Earlier
 * drift figures are about other models, so they do not count. */
static void begin_final(struct phases *ph, double bound)
{
    ph->final = true;
    set_bound(ph, bound);
}

/* Makes the fetched model this peer's final model. Called if the certificate covers the model, or
 * if all other live members have ended their run. */
static void take_final(struct phases *ph)
{
    bool sole = member_counts_vertices(ph->env) == 2;
    MARK("phases: joins with the final model");
    begin_final(ph, sole ? 0 : join_fetched(ph->join)->apart);
    env_note(ph->env, NOTE_INFO,
             "the other peers have finished: this peer takes their model unchanged");
}

void phases_join(struct phases *ph)
{
    uint64_t last = ph->workshop->run.rounds, round = join_fetched(ph->join)->round;
    assert(ph->phase == NODE_JOINING && join_has_model(ph->join));
    ph->round = ph->joined = round < last ? round : last;
    ph->done = ph->skipped = 0;
    ph->resumed = false;
    ph->taken = true;
    if (round >= last && (join_fetched(ph->join)->certified || member_counts_finished(ph->env)))
        take_final(ph);
    phases_check(ph);
}

void phases_restore_final(struct phases *ph)
{
    uint64_t last = ph->workshop->run.rounds;
    assert(ph->phase == NODE_JOINING && ph->round <= last);
    /* Without the counters of a checkpoint, this process has joined at the end of the run. */
    if (ph->round == 0)
        ph->joined = last;
    else
        ph->done += last - ph->round;
    ph->round = last;
    ph->resumed = false;
    /* The distance from the mean that the earlier process measured is lost. The finish protocol
     * measures it again. */
    begin_final(ph, (double)INFINITY);
    phases_check(ph);
}

/* Returns whether an attempt of the finish protocol was aborted so recently that the distance of
 * the models does not count yet. */
static bool mixes_again(const struct phases *ph)
{
    return ph->settle_rounds < ph->mix_until;
}

static void say_beat(struct phases *ph)
{
    ph->say_us = ph->env->now_us + STEP_ANNOUNCE_US;
    edges_say_beat(ph->edges, phases_beat(ph), checkpoint_due(ph->checkpoint), ph->settled);
}

/* Moves this peer to step counter `beat`, because the other peers are so far ahead that they do not
 * wait for this peer. A peer that has done no round yet joins the run at `beat`. Any other peer
 * skips the rounds up to `beat`, with a warning. */
static void claim(struct phases *ph, uint64_t beat)
{
    uint64_t last = ph->workshop->run.rounds, to = beat < last ? beat : last;
    /* Each claim moves this peer forward, so the loop in update() ends. */
    assert(beat > phases_beat(ph));
    /* In the consensus phase only rounds of that phase can be skipped, so settle_rounds grows. */
    assert(ph->phase == NODE_TRAINING || (ph->phase == NODE_CONSENSUS && ph->round >= last));
    if (ph->done + ph->skipped == 0) {
        MARK("phases: joins at a later round");
        if (to > ph->joined)
            env_note(ph->env, NOTE_INFO, "joining at round %llu, which the run has reached",
                     (unsigned long long)to);
        ph->joined = to;
    } else if (to > ph->round) {
        MARK("phases: skips rounds");
        ph->skipped += to - ph->round;
        if (ph->env->now_us >= ph->skip_us) {
            env_note(ph->env, NOTE_WARNING,
                     "skipped rounds %llu to %llu, because the run was ahead; %llu skipped so far",
                     (unsigned long long)ph->round + 1, (unsigned long long)to,
                     (unsigned long long)ph->skipped);
            ph->skip_us = ph->env->now_us + SKIP_WARNING_US;
        }
    }
    ph->round = to;
    /* Skipped rounds mix nothing, so they do not count towards mix_until, the round in which the
     * distance of the models counts again. */
    if (mixes_again(ph))
        ph->mix_until += beat - to - ph->settle_rounds;
    if (ph->phase == NODE_CONSENSUS)
        ph->settle_rounds = beat - to;
    say_beat(ph);
}

bool phases_take_window(struct phases *ph)
{
    bool due = ph->window_due && ph->phase == NODE_CONSENSUS;
    ph->window_due = false;
    return due;
}

/* ---- jobs ---- */

static struct checkpoint_view see_checkpoint(const struct phases *ph)
{
    return (struct checkpoint_view){.beat = phases_beat(ph),
                                    .rounds = ph->workshop->run.rounds,
                                    .reach = edges_status(ph->edges).eccentricity,
                                    .lock_step = lock_step(ph)};
}

/* Decides whether a checkpoint is due after this job. The consensus phase has no checkpoints,
 * because a restart repeats it from the checkpoint at the end of training. */
static void look_at_checkpoint(struct phases *ph, bool steps)
{
    const struct edges_status es = edges_status(ph->edges);
    struct checkpoint_view v = see_checkpoint(ph);
    checkpoint_hear(ph->checkpoint, es.heard_due, es.heard_any, &v);
    ph->copies = steps && ph->phase == NODE_TRAINING && checkpoint_now(ph->checkpoint, &v);
    if (ph->copies)
        checkpoint_taken(ph->checkpoint, v.beat);
    checkpoint_members(ph->checkpoint, es.n_members);
}

/* The deltas of this round carry the next step counter already, so BEAT messages are sent only to
 * neighbours that get no delta. */
void phases_ahead(struct phases *ph)
{
    assert(!ph->ahead);
    ph->ahead = true;
    ph->ahead_us = ph->env->now_us;
    edges_say_beat(ph->edges, phases_next_beat(ph), checkpoint_due(ph->checkpoint), ph->settled);
    phases_check(ph);
}

void phases_job_done(struct phases *ph, bool steps)
{
    int64_t took = phases_busy_us(ph);
    assert(ph->phase != NODE_JOINING && steps == ph->steps);
    assert(!steps || (ph->phase == NODE_TRAINING && ph->round < ph->workshop->run.rounds));
    ph->settle_rounds += ph->phase == NODE_CONSENSUS && !held(ph);
    ph->round += steps;
    ph->done += steps;
    ph->worked_us += steps ? took : 0;
    if (steps)
        round_quorum_worked(&ph->believe, took);
    ph->idle_since_us = ph->told_us = ph->env->now_us;
    ph->job_us = 0;
    job_watchdog_done(ph, took);
    /* The consensus phase could make no progress during such a long job, so the duration of the job
     * does not count as time without progress. */
    if (took > SCHEDULE_STALL_US)
        ph->better_us = ph->env->now_us;
    averaging_pass_done(ph->edges);
    look_at_checkpoint(ph, steps);
    /* If an edge opened after the early announcement of the step counter, its neighbour may not
     * have received the announcement. */
    if (!ph->ahead || edges_status(ph->edges).opened_us >= ph->ahead_us)
        say_beat(ph);
    ph->say_us = ph->env->now_us + STEP_ANNOUNCE_US;
    ph->ahead = false;
    phases_check(ph);
}

/* ---- the consensus phase ---- */

/* Returns the least known bound on this peer's distance from the mean in the consensus phase. The
 * bound stays valid, because mixing alone only reduces distances. A later, larger estimate must not
 * replace it, because other peers may have ended on the evidence of the least bound. */
static double measured(const struct phases *ph)
{
    /* The model of the only member is the mean of all models, so its distance is 0. */
    if (members_count(ph->env->members) == 1)
        return 0;
    double known = fmin(ph->bound, ph->chain.bound);
    return fmin(known, run_context_distance(ph->workshop, ph->settling_window));
}

/* With --byzantine B: returns whether more than B neighbours have ended without being near the
 * mean. At least one of them is honest, so some final models are far from the mean. The remaining
 * peers can still agree with each other, and their sketches then show only the mean of their own
 * models. Without --byzantine the check is not needed, because the certificate is computed from the
 * sketches of all members that are within the target by their own measurement. */
static bool others_ended_apart(const struct phases *ph)
{
    uint32_t tolerate = ph->workshop->run.tolerate;
    return tolerate > 0 && distance_bound_ended_apart(ph->edges) > tolerate;
}

double phases_own_distance(const struct phases *ph)
{
    if (mixes_again(ph) || (ph->near && run_context_vanished(ph->workshop)))
        return (double)INFINITY;
    MARK_IF(others_ended_apart(ph), "phases: more neighbours than B ended outside the target");
    if (others_ended_apart(ph))
        return (double)INFINITY;
    /* The lower bound `apart` does not limit the result of an exact averaging pass, because
     * replicas can be older than the pass. */
    return fmin(averaging_pass_bound(ph->edges), fmax(measured(ph), ph->apart));
}

/* Returns whether the finish protocol can still bring this peer within --final-drift, see
 * schedule_view.may_recover. The protocol needs another member for that. */
static bool may_recover(const struct phases *ph)
{
    return ph->prospect != CERTIFICATE_CLOSED && member_counts_vertices(ph->env) > 1
           && !(phases_own_distance(ph) <= ph->workshop->run.final_drift);
}

/* Returns whether all live members have finished training. In lock step the result is always true,
 * because peers wait for neighbours with a lower step counter. */
static bool all_trained(const struct phases *ph)
{
    return lock_step(ph) || !member_counts_some(ph->env, RECORD_RUNNING);
}

/* Returns whether this peer's distance from the mean was measured in the consensus phase and is
 * above the target. */
static bool known_apart(const struct phases *ph)
{
    return run_context_known(ph->workshop, ph->settling_window)
           && !(phases_own_distance(ph) <= final_margin * ph->workshop->run.final_drift);
}

/* Records that the consensus phase has made progress. Stores the values with which later values are
 * compared. */
static void better(struct phases *ph)
{
    ph->better_us = ph->env->now_us;
    ph->best_window = run_context_window(ph->workshop);
    ph->best = fmin(ph->best, phases_own_distance(ph));
    ph->best_settled = ph->settled;
    ph->best_view = edges_status(ph->edges).view;
    ph->best_rounds = ph->settle_rounds;
}

/* Restarts the detection of progress. The earlier least distances no longer count, because the
 * members have changed, or because training still changed the models. */
static void begin_anew(struct phases *ph)
{
    ph->best = (double)INFINITY;
    edges_forget_distances(ph->edges);
    (void)edges_came_closer(ph->edges, better_factor);
    better(ph);
}

/* Detects progress in the consensus phase. One of these signs is enough:
 *
 *   - the distance to the mean fell below better_factor times its least value at earlier progress
 *   - an edge, or with --byzantine each edge, came closer (edges_came_closer()). Edges are compared
 *     one by one, because a job may exchange with some of the neighbours only, and the distance of
 *     a hung neighbour does not change
 *   - the number of hops around this peer within which all peers are near the mean increased
 *   - the graph changed
 *   - a member still trains, because this peer may be waiting for it through other peers
 *   - a round was done before mix_until: after an aborted attempt of the finish protocol, this peer
 *     mixes until then whatever its distance is
 *
 * A value that only varies is no progress, because the noise of a Byzantine member must not delay
 * the end. */
static void look_for_progress(struct phases *ph)
{
    const struct edges_status es = edges_status(ph->edges);
    bool closer = phases_own_distance(ph) < better_factor * ph->best;
    closer |= edges_came_closer(ph->edges, better_factor);
    closer |= ph->settle_rounds <= ph->mix_until && ph->settle_rounds > ph->best_rounds;
    if (es.view != ph->best_view || member_counts_some(ph->env, RECORD_RUNNING))
        begin_anew(ph);
    else if (closer || ph->settled > ph->best_settled)
        better(ph);
}

/* Returns the longest time without an exchange that is still normal in the consensus phase, in
 * microseconds: a neighbour may have a slow processor, and the deltas of this peer share one slow
 * link. */
static int64_t exchange_limit_us(const struct phases *ph)
{
    int64_t job_us = job_watchdog_limit_us(ph) < INT64_MAX ? job_watchdog_limit_us(ph) : 0;
    int64_t link_us = (int64_t)edges_delta_bytes(ph->edges) * 1000000 / SLOWEST_LINK;
    return (job_us > SCHEDULE_STALL_US ? job_us : SCHEDULE_STALL_US) + link_us;
}

/* Returns how long the consensus phase has made no progress, in microseconds. 0: too early to
 * judge. */
static int64_t stalled_us(const struct phases *ph)
{
    const struct edges_status es = edges_status(ph->edges);
    uint64_t rounds = ph->settle_rounds - ph->best_rounds;
    bool windows = run_context_window(ph->workshop) - ph->best_window >= STALL_WINDOWS;
    bool mute = ph->env->now_us - es.exchange_us > exchange_limit_us(ph);
    /* After a member has ended, no drift window (measurement by all members) can be completed, so
     * none is required. */
    bool last =
        member_counts_some(ph->env, RECORD_FINISHED) || member_counts_some(ph->env, RECORD_FAILED);
    bool long_ago = rounds >= STALL_ROUNDS && (windows || last);
    uint64_t most = STALL_ROUNDS * (1 + (uint64_t)es.n_members);
    bool tried = long_ago || rounds >= STALL_MOST || rounds >= most;
    /* Waiting for a stuck neighbour (its worker hangs) does not count as lack of progress. If such
     * a wait ended after the last progress, the time without progress begins at the end of the
     * wait. */
    int64_t since_us = ph->better_us > es.excused_us ? ph->better_us : es.excused_us;
    return tried || mute ? ph->env->now_us - since_us : 0;
}

/* Discards the bound on this peer's distance. From now on, only drift windows (periods of
 * measurement) that begin later count. `anew`: the next job begins a drift window. */
static void begin_bound(struct phases *ph, bool anew)
{
    const struct edges_status es = edges_status(ph->edges);
    ph->settling_window = run_context_begun(ph->workshop, anew);
    ph->bound = (double)INFINITY;
    ph->bound_view = es.view;
    ph->bound_members = es.n_members;
    ph->bound_resets = es.n_resets;
}

/* Starts the measurements of the consensus phase. In lock step all peers begin a drift window (a
 * measurement of the consensus distance) with their next job. With other policies, only drift
 * windows that begin from now on count. Called again when the last member has finished training:
 * its local steps changed the models until then, so earlier measurements do not count. */
static void begin_settling(struct phases *ph)
{
    ph->window_due = lock_step(ph);
    begin_bound(ph, ph->window_due);
    distance_bound_begin(&ph->chain);
    ph->apart = 0;
    begin_anew(ph);
}

static void enter_settling(struct phases *ph)
{
    enum record_state state = members_self(ph->env->members)->state;
    /* The record of a peer that has ended its run or whose worker hangs must not be replaced. */
    assert(state == RECORD_RUNNING || state == RECORD_TRAINED);
    ph->phase = NODE_CONSENSUS;
    edges_settle(ph->edges);
    ph->trained = all_trained(ph);
    begin_settling(ph);
    members_set_state(ph->env->members, RECORD_TRAINED);
}

/* Discards the bounds after an event that may move models apart: new members, reset edges, delayed
 * exchanges, or replicas that lag behind their models. A removal of members is no such event: no
 * model moves, and the distance (root mean square) of the remaining models to their own mean is at
 * most their distance to the former mean. */
static void forget_outdated(struct phases *ph)
{
    struct edges *es = ph->edges;
    double most = final_margin * ph->workshop->run.final_drift;
    bool stale = edges_stale(es, most * most * ph->workshop->mixing.sketch.at.q);
    const struct edges_status now = edges_status(es);
    bool resets = now.n_resets != ph->bound_resets, others = now.view != ph->bound_view;
    bool fewer = others && now.n_members < ph->bound_members;
    bool moved = resets || (others && !fewer) || stale || edges_lag(es, most);
    MARK_IF(stale, "phases: a delayed exchange discards the bound");
    MARK_IF(fewer && !moved, "phases: fewer members, bounds kept");
    MARK_IF(moved, "phases: bounds discarded");
    ph->bound_view = now.view;
    ph->bound_members = now.n_members;
    if (!moved)
        return;
    MARK_IF(ph->draining, "phases: mixes again, the bounds were discarded");
    /* Not all peers are known to be near the mean any more, so a peer that was about to end mixes
     * again. */
    ph->draining = false;
    distance_bound_begin(&ph->chain);
    begin_bound(ph, false);
}

/* Updates `near`: whether the bound on this peer's distance is under the target. When `near`
 * becomes true, stores in `near_round` the step counter of the models for which the bound was
 * measured. */
static void look_for_nearness(struct phases *ph)
{
    bool was = ph->near;
    double bound = fmin(ph->bound, ph->chain.bound);
    ph->near = bound <= final_margin * ph->workshop->run.final_drift;
    bool known = ph->bound <= bound;
    uint64_t then = known ? ph->bound_round : run_context_measured(ph->workshop);
    ph->near_round = ph->near && !was ? then : ph->near_round;
    MARK_IF(ph->near && run_context_vanished(ph->workshop), "phases: a member vanished while near");
}

static void look_at_last_phase(struct phases *ph)
{
    bool trained = all_trained(ph);
    MARK_IF(trained && !ph->trained, "phases: the last member has trained");
    if (trained && !ph->trained)
        begin_settling(ph);
    ph->trained = trained;
    run_context_settle(ph->workshop, known_apart(ph));
    averaging_pass_look(ph->edges, phases_beat(ph));
    edges_measure_gap(ph->edges);
    forget_outdated(ph);
    double most = final_margin * ph->workshop->run.final_drift;
    bool asked = distance_bound_at_once(ph->edges) && !member_counts_ended(ph->env);
    bool false_bound =
        asked && run_context_refutes(ph->workshop, ph->settling_window, ph->bound, ph->bound_round);
    MARK_IF(false_bound, "phases: a sketch refutes the bound");
    double was = false_bound ? (double)INFINITY : ph->bound;
    ph->bound = fmin(was, run_context_distance(ph->workshop, ph->settling_window));
    if (ph->bound < was)
        ph->bound_round = run_context_measured(ph->workshop);
    ph->apart = distance_bound_apart(ph->edges);
    distance_bound_look(&ph->chain, ph->edges, ph->settle_rounds, ph->bound, most);
    if (ph->chain.bound < ph->bound && distance_bound_at_once(ph->edges)) {
        ph->bound = ph->chain.bound;
        ph->bound_round = phases_beat(ph);
    }
    look_for_nearness(ph);
    look_for_progress(ph);
}

/* A neighbour announces its end after its last delta. If this announcement was lost with a session,
 * the member record of the neighbour also shows the end. The record may arrive before the last
 * delta, so this peer waits before it uses the record. */
bool phases_has_ended(const struct phases *ph, const struct neighbour *b)
{
    int64_t since = ph->env->now_us - edges_status(ph->edges).exchange_us;
    bool quiet = b->link == NULL || since > QUIET_END_US;
    const struct member *m = quiet ? members_find(ph->env->members, b->edge.id) : NULL;
    return b->edge.ending || (m != NULL && record_state_is_final(m->record->state));
}

/* Ends each edge to a neighbour with a final model, unless a complete exchange on the edge must
 * still be mixed. */
static void end_edges(struct phases *ph)
{
    for (size_t i = 0; i < edges_count(ph->edges); i++) {
        const struct neighbour *b = edges_at(ph->edges, i);
        bool half_done = edge_ready(&b->edge) && ph->phase != NODE_FINISHING;
        if (!half_done && phases_has_ended(ph, b))
            edges_finish(ph->edges, i);
    }
}

/* ---- what the schedule sees ---- */

/* Updates the list of initial members. If memory is exhausted, the node ends. */
static void follow_members(struct phases *ph)
{
    if (quorum_follow(ph->quorum, ph->env->members, ph->workshop->run.min_peers) == 0)
        return;
    env_note(ph->env, NOTE_ERROR, "out of memory for the quorum");
    env_end(ph->env, 1);
}

/* Returns whether enough members are present for this peer to begin. Always true if the run has
 * begun. Otherwise two conditions must hold in turn:
 *
 *   (1) --min-peers members are present, and no member still fetches the initial model. This peer
 *       then becomes an initial member.
 *   (2) This peer knows --min-peers initial members, so that all of them know the voters of the run
 *       (quorum.h).
 *
 * A peer whose earlier process has stored its final model does not start a run, so it waits until a
 * member has begun. */
static bool enough_members(struct phases *ph, uint32_t n_live)
{
    uint32_t needed = ph->workshop->run.min_peers;
    bool joining = ph->round > 0 || sessions_run_begun(ph->sessions);
    bool begins = ph->past != NODE_PAST_FINAL;
    if (!joining && (!begins || n_live < needed || join_awaits(ph->join) != NULL))
        return false;
    if (!joining) {
        members_set_initial(ph->env->members);
        follow_members(ph);
    }
    MARK_IF(!joining && quorum_status(ph->quorum).n_initial < needed,
            "phases: waits for initial members");
    return joining || quorum_status(ph->quorum).n_initial >= needed;
}

static bool is_late(const struct phases *ph, const struct schedule_view *v,
                    const struct link *ahead)
{
    return (ph->round == 0 || ph->resumed) && ahead->round > ph->round + v->reach + 2;
}

/* Returns whether the run is over for this peer: another member has ended, and this peer has not
 * fetched a model. Once a member has ended, training cannot change the result. */
static bool is_over(const struct phases *ph)
{
    return !ph->taken && member_counts_ended(ph->env);
}

static void see_gathering(struct phases *ph, struct schedule_view *v)
{
    int64_t now = ph->env->now_us;
    const struct link *ahead = join_donor(ph->join);
    v->has_model = join_has_model(ph->join);
    v->complete = enough_members(ph, v->n_live);
    v->behind = ahead != NULL && (is_late(ph, v, ahead) || is_over(ph));
    v->final = ph->final;
    /* Members that wait to resume from their checkpoints do not begin either. Therefore
     * --quorum-timeout of this peer begins after their wait. */
    bool others_resume = ph->round == 0 && join_others_resume(ph->join);
    run_ended_gathers(ph, v->complete || others_resume);
    v->complete &= !others_resume;
    if (!v->has_model || !v->complete)
        ph->gathered_us = 0;
    else if (ph->gathered_us == 0)
        ph->gathered_us = now;
    v->gathered_us = ph->gathered_us > 0 ? now - ph->gathered_us : 0;
    bool all_open = edges_count_open(ph->edges) == edges_count(ph->edges);
    v->quiet = all_open && now - edges_status(ph->edges).opened_us > QUIET_US;
}

bool phases_writes(const struct phases *ph)
{
    struct checkpoint_view v = see_checkpoint(ph);
    return ph->phase == NODE_TRAINING && checkpoint_blocks(ph->checkpoint, &v);
}

/* Returns whether the certificate names a member that is missing in the member table. Members that
 * the certificate lists as dead or failed are ignored. O(members log members). */
static bool names_unknown_member(const struct phases *ph)
{
    uint32_t n_named = 0, n_known = 0;
    for (uint32_t i = 0; i < ph->certificate->n; i++)
        n_named += ph->certificate->member[i].status < FINISH_FAILED;
    for (size_t i = 0; i < members_count(ph->env->members); i++) {
        const struct record *r = members_at(ph->env->members, i)->record;
        n_known += finish_status_of(ph->certificate, r->id) < FINISH_FAILED;
    }
    return n_known < n_named;
}

/* Returns whether a session with a peer is so new that it may be a duplicate. The other end ignores
 * messages on a duplicate. */
static bool has_new_session(const struct phases *ph)
{
    for (size_t i = 0; i < sessions_slots(ph->sessions); i++) {
        const struct link *l = sessions_at(ph->sessions, i);
        if (link_open(l) && ph->env->now_us - l->up_us < CALLBACK_US)
            return true;
    }
    return false;
}

/* Returns whether this process restarted with its final model and the certificate, and may have to
 * give the certificate to other members: its earlier process may have ended before it sent the
 * certificate to any of them. This peer sends the certificate on each session, and waits until the
 * record of each live member says that it has ended. The member table may be older than the end of
 * the run, or empty. The wait for members that are missing in the table has a limit: the time after
 * which an unreachable member counts as dead. */
static bool owes_certificate(const struct phases *ph)
{
    if (!ph->final || ph->taken || ph->certificate == NULL)
        return false;
    int64_t idle_us = ph->env->now_us - ph->idle_since_us;
    bool unknown = idle_us <= SILENT_US + SUSPECT_US && names_unknown_member(ph);
    MARK("phases: restarted with the certificate");
    return member_counts_there(ph->env) || unknown || has_new_session(ph);
}

static struct schedule_view see(struct phases *ph, bool diverged)
{
    const struct run *run = &ph->workshop->run;
    struct schedule_view v = {.phase = ph->phase,
                              .lock_step = lock_step(ph),
                              .staleness = run_staleness(run),
                              .round = ph->round,
                              .rounds = run->rounds,
                              .beat = phases_beat(ph),
                              .idle_us = ph->env->now_us - ph->idle_since_us,
                              .usual_us =
                                  ph->n_paced > 0 || !ph->resumed ? ph->usual_us : SCHEDULE_SLOW_US,
                              .limit_us = job_watchdog_limit_us(ph),
                              .n_live = member_counts_vertices(ph->env),
                              .reach = edges_status(ph->edges).eccentricity,
                              .held = held(ph) || job_watchdog_awaits(ph),
                              .writes = phases_writes(ph),
                              .trained = ph->trained,
                              .distance = phases_own_distance(ph),
                              .target = final_margin * run->final_drift,
                              .stalled_us = stalled_us(ph),
                              .draining = ph->draining,
                              .diverged = diverged,
                              .completed = round_protocol_completed(ph->round_protocol),
                              .waits_round = round_protocol_waits(ph->round_protocol, ph->round),
                              .edge = ph->seen,
                              .n_edges = edges_count(ph->edges)};
    /* Until all members have finished training, the time between two jobs of the consensus phase is
     * at least the mean duration of a job with local steps. */
    if (!v.lock_step && !ph->trained)
        v.pace_us = job_watchdog_mean_us(ph);
    v.away = ph->away = run_ended_left_behind(ph);
    if (ph->phase == NODE_JOINING)
        see_gathering(ph, &v);
    /* Only a peer that claims consensus needs to know how the other members ended. */
    if (ph->phase == NODE_FINISHING && phases_own_distance(ph) <= run->final_drift)
        v.ends_pending = member_counts_end(ph->env);
    if (ph->phase == NODE_FINISHING)
        v.ends_pending |= owes_certificate(ph);
    v.certificate_awaited = ph->prospect == CERTIFICATE_AWAITED;
    v.may_recover = may_recover(ph);
    return v;
}

/* ---- what follows ---- */

/* Returns whether this peer, which begins now, becomes an initial member (quorum.h). With
 * --min-peers 1 the peers do not start together, so each peer that joins before the last round
 * becomes an initial member. With a higher --min-peers, enough_members() has already marked the
 * peers that start together, and a peer that joins later is no initial member: initial members that
 * are cut off may not know it, and the two sides of the cut would count different voters. */
static bool begins_as_initial(const struct phases *ph)
{
    const struct run *run = &ph->workshop->run;
    const struct link *ahead = join_donor(ph->join);
    return run->min_peers == 1 && ph->round < run->rounds && !ph->away && !ph->resumed
           && (ahead == NULL || ahead->round < run->rounds);
}

static enum phases_next begin(struct phases *ph)
{
    assert(ph->phase == NODE_JOINING && join_has_model(ph->join) && !ph->final);
    ph->phase = NODE_TRAINING;
    /* The run is over if a member has finished, but no member could provide its model. */
    ph->away |= is_over(ph);
    if (begins_as_initial(ph))
        members_set_initial(ph->env->members);
    follow_members(ph);
    checkpoint_start(ph->checkpoint);
    edges_begin(ph->edges);
    ph->idle_since_us = ph->told_us = ph->env->now_us;
    quorum_begin(ph->quorum, ph->env->now_us);
    return PHASES_BEGUN;
}

static enum phases_next last(struct phases *ph)
{
    assert(ph->phase != NODE_FINISHING && join_has_model(ph->join));
    ph->phase = NODE_FINISHING;
    ph->n_ended = member_counts_vertices(ph->env);
    ph->steps = false;
    ph->job_us = ph->env->now_us;
    return PHASES_LAST_JOB;
}

static enum phases_next start_job(struct phases *ph, bool steps)
{
    assert(ph->phase == NODE_TRAINING || (ph->phase == NODE_CONSENSUS && !steps));
    assert(!steps || (!held(ph) && ph->round < ph->workshop->run.rounds));
    ph->steps = steps;
    ph->job_us = ph->env->now_us;
    return PHASES_JOB;
}

/* Continues to obtain the model with which this peer joins. If this peer has a model, but the run
 * is too far ahead of it, drops the model first. */
static enum phases_next get_model(struct phases *ph, const struct schedule_view *v)
{
    assert(ph->phase == NODE_JOINING); /* A later phase must not drop the model. */
    if (v->has_model)
        join_again(ph->join);
    else if (join_update(ph->join, ph->certificate))
        phases_join(ph);
    return PHASES_WAIT;
}

/* Returns the identity of the neighbour for which this peer must wait by decision d. NULL: there is
 * none. */
static const uint8_t *named(const struct phases *ph, const struct schedule_decision *d)
{
    const struct schedule_edge *e = d->for_whom;
    return e != NULL ? edges_at(ph->edges, (size_t)(e - ph->seen))->edge.id : NULL;
}

static enum phases_next update(struct phases *ph, bool diverged);

static enum phases_next follow(struct phases *ph, const struct schedule_view *v,
                               const struct schedule_decision *d)
{
    if (d->late && !ph->draining && !v->away) {
        MARK("phases: no consensus");
        /* Some peers are far from the mean, or a Byzantine member pulls models away. Earlier bounds
         * on the distance are then wrong, and only the last drift figure counts. */
        ph->bound = ph->chain.bound = (double)INFINITY;
        env_note(ph->env, NOTE_WARNING, "the consensus phase ended without reaching --final-drift");
    }
    /* With --byzantine there is no certificate. If most neighbours were not near the mean, a bound
     * from sketches may come from a Byzantine member, so the distance is not known. */
    if ((d->late || d->left) && !ph->draining && ph->workshop->run.tolerate > 0
        && !schedule_confirmed(v)) {
        MARK("phases: most neighbours did not confirm the bound");
        set_bound(ph, (double)INFINITY);
    }
    phase_log_decided(ph, v, d);
    ph->draining = (ph->draining && !d->resumes) || d->drain;
    ph->wake_us = d->wait_us > 0 ? ph->env->now_us + d->wait_us : INT64_MAX;
    waits_decided(&ph->waits, d, named(ph, d));
    run_ended_waits(ph);
    switch (d->act) {
    case SCHEDULE_WAIT:
        ph->told_us = wait_log_wait(ph, d);
        if (v->staleness > 0 && ph->phase != NODE_JOINING && ph->env->now_us >= ph->say_us)
            say_beat(ph);
        break;
    case SCHEDULE_GET_MODEL:
        return get_model(ph, v);
    case SCHEDULE_BEGIN:
        return begin(ph);
    case SCHEDULE_SETTLE:
        enter_settling(ph);
        return ph->env->over ? PHASES_WAIT : update(ph, v->diverged);
    case SCHEDULE_TRAIN:
        job_watchdog_learn_pace(ph, v);
        return start_job(ph, true);
    case SCHEDULE_MIX:
        return start_job(ph, false);
    case SCHEDULE_LAST:
        return last(ph);
    case SCHEDULE_LEAVE:
        return PHASES_END;
    }
    return PHASES_WAIT;
}

/* Called in the consensus phase if the run has a certificate, and a connected member has a model
 * that it covers. Fetches such a model and takes it as the final model. This peer keeps its own
 * model until the fetched one is complete. */
static enum phases_next take_certified(struct phases *ph)
{
    if (!join_update(ph->join, ph->certificate))
        return PHASES_WAIT;
    ph->taken = true;
    take_final(ph);
    return last(ph);
}

void phases_uncovered(struct phases *ph)
{
    assert(ph->phase == NODE_CONSENSUS || ph->phase == NODE_FINISHING);
    ph->draining = ph->final = false;
    ph->n_ended = 0;
    ph->idle_since_us = ph->told_us = ph->env->now_us;
    enter_settling(ph);
    phases_check(ph);
}

void phases_reopen(struct phases *ph, uint32_t attempt)
{
    assert(attempt > 0);
    ph->mix_until = ph->settle_rounds + ((uint64_t)PHASES_AGAIN_ROUNDS << (attempt - 1));
    phases_uncovered(ph);
}

/* Does the work of phases_update() with the inputs that are stored in *ph. */
static enum phases_next update(struct phases *ph, bool diverged)
{
    end_edges(ph);
    if (ph->phase == NODE_CONSENSUS && join_has_covered(ph->join, ph->certificate))
        return take_certified(ph);
    if (ph->phase == NODE_CONSENSUS)
        look_at_last_phase(ph);
    follow_members(ph);
    if (ph->phase != NODE_FINISHING /* The finishing phase does not depend on the quorum. */
        && quorum_look(ph->quorum, ph->env->members, ph->workshop->run.quorum,
                       ph->env->config.patience_us, ph->env->now_us))
        ph->told_us = wait_log_quorum(ph);
    for (;;) {
        if (!scheduler_view_edges(ph))
            return PHASES_WAIT;
        struct schedule_view v = see(ph, diverged);
        /* After an aborted attempt of the finish protocol, members that had a final model may be
         * far behind members that continued to mix, and must skip rounds to reach them.
         * round_quorum_look() believes only step counters that most members confirm. It is not
         * called in this case, because the members that are behind may be the majority. */
        if (!mixes_again(ph))
            round_quorum_look(&ph->believe, ph->sessions, &v, ph->seen);
        ph->settled = schedule_settled(&v);
        struct schedule_decision d = schedule_next(&v);
        wait_log_excused(ph, &v);
        if (d.claim == 0)
            return follow(ph, &v, &d);
        claim(ph, d.claim);
    }
}

enum phases_next phases_update(struct phases *ph, const struct phases_input *in)
{
    assert(ph->job_us == 0 && !ph->env->over);
    enum node_phase was = ph->phase;
    ph->certificate = in->certificate;
    ph->prospect = in->prospect;
    enum phases_next next = update(ph, in->diverged);
    phases_check(ph);
    assert(ph->phase >= was);
    assert((next == PHASES_LAST_JOB) == (was != NODE_FINISHING && ph->phase == NODE_FINISHING));
    assert(next != PHASES_END || ph->phase == NODE_FINISHING);
    return next;
}

/* ---- checkpoints ---- */

void phases_state(struct phases *ph, struct state *s)
{
    state_section(s, "phases");
    state_u64(s, &ph->round);
    state_u64(s, &ph->joined);
    state_u64(s, &ph->done);
    state_u64(s, &ph->skipped);
}

void phases_resumed(struct phases *ph, bool is_old)
{
    assert(ph->phase == NODE_JOINING);
    ph->resumed = is_old;
}

void phases_lost_checkpoint(struct phases *ph)
{
    assert(ph->phase == NODE_JOINING);
    if (ph->past == NODE_PAST_NONE)
        ph->past = NODE_PAST_MEMBER;
    ph->missed_us = 0; /* The time limit for too few members begins again. */
}

/* ---- questions ---- */

struct phases_status phases_status(const struct phases *ph)
{
    return (struct phases_status){.phase = ph->phase,
                                  .round = ph->round,
                                  .joined = ph->joined,
                                  .done = ph->done,
                                  .skipped = ph->skipped,
                                  .settle_rounds = ph->settle_rounds,
                                  .idle_since_us = ph->idle_since_us,
                                  .wake_us = ph->wake_us,
                                  .n_ended = ph->n_ended,
                                  .copies = ph->copies,
                                  .stalled = ph->stalled,
                                  .away = ph->away,
                                  .final = ph->final,
                                  .taken = ph->taken,
                                  .stranded = ph->waits.what == WAITS_FOR_FINISH,
                                  .edge_bound = ph->chain.bound};
}

enum node_phase phases_phase(const struct phases *ph)
{
    return ph->phase;
}

uint64_t phases_round(const struct phases *ph)
{
    return ph->round;
}
