/* peer/node/schedule.c -- the rules that decide when a peer waits, changes its phase and ends.
 *
 * Each phase has one function that looks at a snapshot (struct schedule_view) and returns a
 * decision. The functions keep no state, so that tests can check each rule with a table. */
#include "peer/node/schedule.h"

#include "peer/node/mark.h"

#include <assert.h>

/* Constants of schedule_lead(). LEAD is twice the hops from this peer to the farthest vertex, plus
 * LEAD_MORE rounds for messages on their way. The hops are doubled, because a ring that loses one
 * edge has twice the hops. In a large cluster, LEAD_HOPS limits the doubled hops. */
enum { LEAD_HOPS = 64, LEAD_MORE = 16 };

/* A neighbour counts as stuck if it sends no news for MUTE_LIMITS times the time limit of one job.
 * MUTE_LIMITS is above 1, because a neighbour that waits for a stuck peer sends no news until it
 * stops waiting, after one limit. MUTE_WORKS replaces MUTE_LIMITS if the neighbour has announced
 * that its worker is busy, for example in a long evaluation. */
enum { MUTE_LIMITS = 3, MUTE_WORKS = 30 };

uint64_t schedule_lead(const struct schedule_view *v)
{
    uint64_t hops = 2 * (uint64_t)v->reach;
    return (hops < LEAD_HOPS ? hops : LEAD_HOPS) + LEAD_MORE;
}

bool schedule_stuck(const struct schedule_view *v, const struct schedule_edge *e)
{
    int64_t limits = e->busy_us > 0 ? MUTE_WORKS : MUTE_LIMITS;
    MARK_IF(e->busy_us > v->limit_us, "schedule: a neighbour hangs");
    MARK_IF(e->mute_us / limits > v->limit_us, "schedule: a neighbour sends nothing for long");
    return e->busy_us > v->limit_us || e->mute_us / limits > v->limit_us;
}

static bool is_open(const struct schedule_edge *e)
{
    return e->state == SCHEDULE_EDGE_OPEN;
}

bool schedule_excused(const struct schedule_view *v, const struct schedule_edge *e)
{
    return e->flapping || schedule_stuck(v, e);
}

/* ---- lock step ---- */

/* Returns whether a neighbour is joining a run that is under way. Such a neighbour needs time to
 * fetch the model, so no peer waits for it. */
static bool joins(const struct schedule_view *v, const struct schedule_edge *e)
{
    MARK_IF(e->gathers && v->beat > e->beat + v->reach + 2,
            "schedule: a neighbour joins a run under way");
    return e->gathers && v->beat > e->beat + v->reach + 2;
}

/* Returns whether this peer waits now for a neighbour that is behind. If the neighbour is behind by
 * more than schedule_lead() rounds, this peer does not wait, because the neighbour will skip
 * rounds. */
static bool waits_for(const struct schedule_view *v, const struct schedule_edge *e)
{
    bool counts = v->lock_step || (v->staleness > 0 && v->phase == NODE_TRAINING);
    MARK_IF(v->lock_step && is_open(e) && v->beat > e->beat + schedule_lead(v),
            "schedule: a neighbour is too far behind");
    return counts && !joins(v, e) && is_open(e) && e->beat + v->staleness <= v->beat
           && (!v->lock_step || v->beat - e->beat <= schedule_lead(v)) && !schedule_excused(v, e);
}

/* Returns whether this peer waits for an exchange that an exact averaging pass needs. */
static bool awaits(const struct schedule_view *v, const struct schedule_edge *e)
{
    MARK_IF(v->lock_step && e->awaited, "schedule: an averaging pass needs an edge");
    return v->lock_step && e->awaited && !schedule_excused(v, e);
}

/* Returns whether a neighbour may make this peer wait, now or in one of the next rounds. */
static bool binds(const struct schedule_view *v, const struct schedule_edge *e)
{
    return v->lock_step && !joins(v, e) && is_open(e) && e->beat + schedule_lead(v) >= v->beat
           && !schedule_excused(v, e);
}

bool schedule_alone(const struct schedule_view *v)
{
    bool any = false;
    for (size_t i = 0; i < v->n_edges; i++) {
        if (binds(v, &v->edge[i]))
            return false;
        any |= v->edge[i].state != SCHEDULE_EDGE_DONE;
    }
    return v->lock_step && any;
}

bool schedule_in_step(const struct schedule_view *v)
{
    bool any = false;
    for (size_t i = 0; i < v->n_edges; i++) {
        any |= binds(v, &v->edge[i]);
        if (is_open(&v->edge[i]) && v->edge[i].beat > v->beat + 1)
            return false;
    }
    return any;
}

/* Returns the step counter to which this peer must skip, because the run is too far ahead of it. 0:
 * the peer need not skip. A result of the round protocol for a later round also makes the peer skip
 * to that round. */
static uint64_t claim(const struct schedule_view *v)
{
    uint64_t most = 0;
    MARK_IF(v->phase == NODE_TRAINING && v->completed > v->round,
            "schedule: skips to a result of the round protocol");
    if (v->phase == NODE_TRAINING && v->completed > v->round)
        return v->completed;
    for (size_t i = 0; i < v->n_edges; i++)
        if (is_open(&v->edge[i]) && v->edge[i].beat > most)
            most = v->edge[i].beat;
    MARK_IF(v->lock_step && most > v->beat + schedule_lead(v), "schedule: skips rounds");
    return v->lock_step && most > v->beat + schedule_lead(v) ? most : 0;
}

/* Returns whether a job without local steps is useful. One edge with one of these reasons is
 * enough:
 *
 *   - The edge has both deltas, so the job mixes them, even if the edge is closed.
 *   - The edge is open and lacks this peer's delta, which the job makes. A peer that is draining
 *     makes only deltas that it owes. An idle edge gets no delta, but its neighbour waits for this
 *     peer's step counter, unless the neighbour is excused (schedule_excused()).
 *   - Lock step, the edge is open, and its neighbour has a higher step counter, so the neighbour
 *     waits for this peer. Not a reason if this peer is held, or is draining and the edge is idle.
 *   - The neighbour ended at a step counter that this peer has not passed yet (`ends_later`). Not a
 *     reason if this peer is draining.
 */
static bool has_work(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool behind = v->lock_step && !v->held && e->beat > v->beat && !(v->draining && e->idle);
        bool owed = e->exchange == SCHEDULE_EXCHANGE_OWED;
        bool next = (e->exchange == SCHEDULE_EXCHANGE_EMPTY && !v->draining) || owed;
        bool mixes = e->exchange == SCHEDULE_EXCHANGE_COMPLETE;
        next &= !(e->idle && schedule_excused(v, e));
        if (mixes || (is_open(e) && (behind || next)) || (e->ends_later && !v->draining))
            return true;
    }
    return false;
}

/* Returns the decision to skip rounds if this peer must (claim()). Otherwise returns the job `act`,
 * or the decision to wait, for one of three reasons: (1) the peer waits for a neighbour (never if
 * it is held), (2) pace_us have not passed since the last job, (3) a job without local steps would
 * do nothing. */
static struct schedule_decision job(const struct schedule_view *v, enum schedule_act act,
                                    int64_t pace_us)
{
    struct schedule_decision d = {.act = act, .claim = claim(v)};
    if (d.claim != 0)
        return d;
    for (size_t i = 0; i < v->n_edges && d.for_whom == NULL; i++)
        if (!v->held && (waits_for(v, &v->edge[i]) || awaits(v, &v->edge[i])))
            d.for_whom = &v->edge[i];
    if (v->idle_us < pace_us)
        d.wait_us = pace_us - v->idle_us;
    if (d.for_whom != NULL || d.wait_us > 0 || (act == SCHEDULE_MIX && !has_work(v)))
        d.act = SCHEDULE_WAIT;
    return d;
}

/* ---- the consensus phase ---- */

/* Returns whether an edge was lost at most SCHEDULE_BRIEF_US ago. The neighbour will probably
 * return, so schedule_settled() still uses its last announcement. */
static bool briefly_lost(const struct schedule_edge *e)
{
    MARK_IF(e->state == SCHEDULE_EDGE_CLOSED && e->lost_us <= SCHEDULE_BRIEF_US,
            "schedule: an edge is lost briefly");
    return e->state == SCHEDULE_EDGE_CLOSED && e->lost_us <= SCHEDULE_BRIEF_US;
}

/* Returns whether an edge is missing, so that the neighbour at its other end may still be far from
 * the mean. An edge is missing if it was lost more than SCHEDULE_BRIEF_US and at most patience_us
 * ago. An edge that was lost earlier is ignored, because its neighbour mixes with other peers by
 * now. */
static bool incomplete(const struct schedule_view *v, int64_t patience_us)
{
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        if (e->state == SCHEDULE_EDGE_CLOSED && !briefly_lost(e) && e->lost_us <= patience_us)
            return true;
    }
    return false;
}

/* Returns whether no averaging pass can be exact now, because an edge was lost recently. An inexact
 * pass also sends whole models, so the peer slows down until it is known whether the neighbour is
 * dead. */
static bool passes_in_vain(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if (v->edge[i].missing && v->edge[i].state != SCHEDULE_EDGE_DONE
            && v->edge[i].lost_us <= SCHEDULE_LOST_US)
            return true;
    return false;
}

/* The result is also 0 while a delta is pending that was made before this peer was near the mean
 * (schedule_edge.old): the exchange of this delta may move this peer away from the mean. */
uint32_t schedule_settled(const struct schedule_view *v)
{
    uint32_t least = SCHEDULE_FAR;
    if (v->phase != NODE_CONSENSUS || !v->trained || !(v->distance <= v->target)
        || incomplete(v, SCHEDULE_LOST_US))
        return 0;
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool counts = is_open(e) || briefly_lost(e) || e->ends_later;
        if (!counts || schedule_stuck(v, e))
            continue;
        MARK_IF(e->old, "schedule: a delayed exchange is pending");
        if (e->old)
            return 0;
        least = e->settled < least ? e->settled : least;
    }
    return least + 1;
}

bool schedule_confirmed(const struct schedule_view *v)
{
    size_t near = 0, n = 0;
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool counts = e->state != SCHEDULE_EDGE_CLOSED;
        n += counts;
        near += counts && e->settled > 0;
    }
    return 2 * near >= n;
}

/* Returns whether this peer can mix with no neighbour, now or later. A stuck neighbour (its worker
 * hangs) does not count, because no exchange with it will complete. */
static bool lonely(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if ((v->edge[i].state != SCHEDULE_EDGE_DONE
             && !(schedule_stuck(v, &v->edge[i]) && is_open(&v->edge[i])))
            || v->edge[i].ends_later)
            return false;
    return true;
}

/* Returns whether all peers are known to be near the mean. If an edge is missing, the farthest
 * member may be more hops away than the eccentricity, but never more than n_live. */
static bool all_settled(const struct schedule_view *v)
{
    bool whole = !incomplete(v, INT64_MAX);
    return schedule_settled(v) > (whole ? v->reach : v->n_live);
}

/* Returns whether this peer must wait for the step counter of a neighbour before it ends the
 * consensus phase. The message with the step counter may say that some model is not near the mean
 * any more. */
static bool awaits_word(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if (waits_for(v, &v->edge[i]))
            return true;
    return false;
}

/* Returns whether the model may become final: no exchange of this peer is half done, or complete
 * and not mixed yet. A half-done exchange is ignored if the edge is not open, or if the neighbour
 * is stuck (its worker hangs), because the exchange will not complete. */
static bool drained(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool half_done = is_open(e) && e->exchange != SCHEDULE_EXCHANGE_EMPTY;
        if (e->exchange == SCHEDULE_EXCHANGE_COMPLETE || (half_done && !schedule_stuck(v, e)))
            return false;
    }
    return true;
}

/* The consensus phase. The phase ends for one of these reasons:
 *
 *   - The run diverged, or ended without this peer.
 *   - There was no progress for SCHEDULE_STALL_US, and the peer is not held.
 *   - No neighbour is left to mix with, and the peer is neither held nor stranded.
 *   - All peers are known to be near the mean, and the peer is not held and waits for no step
 *     counter of a neighbour (awaits_word()).
 *   - The run has no consensus phase (--final-drift 0).
 *
 * For the first two reasons the peer ends at once, with `late` set in the decision. For the others
 * it first completes the exchanges that are half done. If these exchanges move its model out of the
 * target again, it continues to mix (`resumes`) if `may_recover` is true.
 *
 * A held peer is below the quorum and continues to mix at a slow pace. A stranded peer has no
 * neighbour left to mix with and is not known to be within the target. It waits for the finish
 * protocol, which makes all peers mix again or provides a certified model. */
static struct schedule_decision settle(const struct schedule_view *v)
{
    MARK_IF(v->waits_round, "schedule: consensus phase waits for the round protocol");
    MARK_IF(v->away, "schedule: consensus phase ends, run ended without this peer");
    MARK_IF(v->stalled_us > SCHEDULE_STALL_US && !v->held,
            "schedule: consensus phase ends, no progress");
    MARK_IF(v->stalled_us > SCHEDULE_STALL_US && v->held,
            "schedule: consensus phase continues below the quorum");
    if (v->waits_round && !v->diverged && !v->away)
        return (struct schedule_decision){.act = SCHEDULE_WAIT};
    bool late = v->diverged || v->away || (v->stalled_us > SCHEDULE_STALL_US && !v->held);
    bool alone = v->target > 0 && lonely(v) && !v->held;
    MARK_IF(alone && v->may_recover, "schedule: stranded, waits for the finish protocol");
    if (alone && v->may_recover && !late)
        return (struct schedule_decision){.act = SCHEDULE_WAIT, .stranded = true};
    bool left = alone && !v->may_recover;
    bool over = v->target <= 0 || left || (all_settled(v) && !awaits_word(v) && !v->held);
    if (v->draining && v->may_recover && !late && !over && drained(v)) {
        MARK("schedule: mixes again, the last exchanges moved this peer");
        struct schedule_view mixing = *v;
        mixing.draining = false;
        struct schedule_decision d = settle(&mixing);
        d.resumes = true;
        return d;
    }
    bool drain = v->draining || late || over;
    MARK_IF(left, "schedule: consensus phase ends, no neighbour is left");
    MARK_IF(over && !left, "schedule: consensus phase ends, all are near");
    MARK_IF(drain && !late && !drained(v), "schedule: completes exchanges before the end");
    if (drain && (drained(v) || late))
        return (struct schedule_decision){
            .act = SCHEDULE_LAST, .drain = true, .late = late, .left = left};
    int64_t pace_us = v->pace_us;
    if (v->held && pace_us < SCHEDULE_HOLD_US)
        pace_us = SCHEDULE_HOLD_US;
    bool waits = !v->trained || passes_in_vain(v)
                 || (v->distance <= v->target && incomplete(v, SCHEDULE_LOST_US));
    MARK_IF(!v->trained, "schedule: consensus phase waits for members that train");
    MARK_IF(passes_in_vain(v), "schedule: no averaging pass can be exact");
    MARK_IF(v->distance <= v->target && incomplete(v, SCHEDULE_LOST_US),
            "schedule: near, but an edge is missing");
    if (waits && pace_us < SCHEDULE_SLOW_US)
        pace_us = SCHEDULE_SLOW_US;
    struct schedule_decision d = job(v, SCHEDULE_MIX, pace_us);
    d.drain = drain;
    d.late = late;
    d.left = left;
    return d;
}

/* ---- the other phases ---- */

/* Joining. Edges get at most SCHEDULE_OPENING_US to open, because an unreachable neighbour must not
 * stop the run from beginning. */
static struct schedule_decision gather(const struct schedule_view *v)
{
    MARK_IF(v->has_model && v->behind, "schedule: the run passed a joining peer");
    MARK_IF(v->final, "schedule: a joining peer takes the final model");
    MARK_IF(v->complete && !v->quiet && v->gathered_us >= SCHEDULE_OPENING_US,
            "schedule: begins although an edge is closed");
    struct schedule_decision d = {.act = SCHEDULE_WAIT};
    if (!v->has_model || v->behind)
        d.act = SCHEDULE_GET_MODEL;
    else if (v->final)
        d.act = SCHEDULE_LAST;
    else if (v->complete && (v->quiet || v->gathered_us >= SCHEDULE_OPENING_US))
        d.act = SCHEDULE_BEGIN;
    return d;
}

/* Training. Below the quorum the peer takes no local steps, because a model that was trained only
 * on a small part of the data would harm the models of the other peers later. */
static struct schedule_decision train(const struct schedule_view *v)
{
    if (v->round >= v->rounds)
        return (struct schedule_decision){.act = SCHEDULE_SETTLE};
    if (v->away || v->diverged)
        return (struct schedule_decision){.act = SCHEDULE_LAST, .drain = true};
    MARK_IF(v->writes, "schedule: training waits for a checkpoint");
    MARK_IF(v->waits_round, "schedule: training waits for the round protocol");
    MARK_IF(v->held, "schedule: training stops below the quorum");
    MARK_IF(schedule_alone(v), "schedule: trains alone at the usual pace");
    if (v->writes || v->waits_round)
        return (struct schedule_decision){.act = SCHEDULE_WAIT};
    if (v->held)
        return job(v, SCHEDULE_MIX, SCHEDULE_HOLD_US);
    return job(v, SCHEDULE_TRAIN, schedule_alone(v) ? v->usual_us : 0);
}

/* Finishing. The peer waits for three things:
 *
 *   - Neighbours that still mix, because they need its last deltas.
 *   - The announcements of how the other members ended (`ends_pending`), because a member that has
 *     restarted needs a model.
 *   - The certificate of the run's success. certificate_awaited() limits this wait.
 *
 * The first two waits end SCHEDULE_STALL_US after the last job. */
static struct schedule_decision serve(const struct schedule_view *v)
{
    MARK_IF(v->ends_pending, "schedule: waits for how the others ended");
    MARK_IF(v->idle_us > SCHEDULE_STALL_US, "schedule: leaves while neighbours still mix");
    struct schedule_decision d = {.act = SCHEDULE_LEAVE};
    if (v->certificate_awaited || (v->ends_pending && v->idle_us <= SCHEDULE_STALL_US))
        d.act = SCHEDULE_WAIT;
    for (size_t i = 0; i < v->n_edges && v->idle_us <= SCHEDULE_STALL_US; i++)
        if (v->edge[i].state != SCHEDULE_EDGE_DONE
            && (is_open(&v->edge[i]) || v->edge[i].lost_us <= SCHEDULE_LOST_US))
            d.act = SCHEDULE_WAIT;
    return d;
}

struct schedule_decision schedule_next(const struct schedule_view *v)
{
    static struct schedule_decision (*const of_phase[])(const struct schedule_view *) = {
        [NODE_JOINING] = gather,
        [NODE_TRAINING] = train,
        [NODE_CONSENSUS] = settle,
        [NODE_FINISHING] = serve};
    struct schedule_decision d = {.act = SCHEDULE_WAIT};
    if (v->phase < NODE_LEFT)
        d = of_phase[v->phase](v);
    assert(d.act == SCHEDULE_WAIT || (d.for_whom == NULL && d.wait_us == 0 && !d.stranded));
    assert(d.wait_us >= 0 && (d.claim == 0 || d.for_whom == NULL));
    assert((!d.late && !d.left) || d.drain);
    return d;
}
