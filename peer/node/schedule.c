/* peer/node/schedule.c -- the rules of phases, of lock step and of the run's end. */
#include "peer/node/schedule.h"

/* Lock step lets neighbours be one beat apart and others as many as there are hops
 * between them; a ring with a missing edge has twice the hops. The rest is for the way
 * of messages, and the cap keeps a large cluster from waiting for hundreds of rounds. */
enum { LEAD_HOPS = 64, LEAD_MORE = 16 };

/* Somebody of whom nothing new comes may itself wait for another whose worker hangs;
 * that one is named after one limit, so after this many it is the neighbour's fault. Or it may be at a
 * long evaluation, and say that this gets on: that is believed for longer, but not for ever. */
enum { MUTE_LIMITS = 3, MUTE_WORKS = 30 };

uint64_t schedule_lead(const struct schedule_view *v)
{
    uint64_t hops = 2 * (uint64_t)v->reach;
    return (hops < LEAD_HOPS ? hops : LEAD_HOPS) + LEAD_MORE;
}

bool schedule_stuck(const struct schedule_view *v, const struct schedule_edge *e)
{
    int64_t limits = e->busy_us > 0 ? MUTE_WORKS : MUTE_LIMITS;
    return e->busy_us > v->limit_us || e->mute_us / limits > v->limit_us;
}

bool schedule_excused(const struct schedule_view *v, const struct schedule_edge *e)
{
    return e->flapping || schedule_stuck(v, e);
}

/* ---- lock step ---- */

/* Who gathers beside a run in its middle will ask for a model, and need time for it. */
static bool joins(const struct schedule_view *v, const struct schedule_edge *e)
{
    return e->gathers && v->beat > e->beat + v->reach + 2;
}

static bool waits_for(const struct schedule_view *v, const struct schedule_edge *e)
{
    bool counts = v->lock_step || (v->staleness > 0 && v->phase == NODE_TRAINING);
    return counts && !joins(v, e) && e->open && e->beat + v->staleness <= v->beat
           && (!v->lock_step || v->beat - e->beat <= schedule_lead(v)) && !schedule_excused(v, e);
}

static bool awaits(const struct schedule_view *v, const struct schedule_edge *e)
{
    return v->lock_step && e->awaited && !schedule_excused(v, e);
}

/* It may make us wait, now or in one of the next beats. */
static bool binds(const struct schedule_view *v, const struct schedule_edge *e)
{
    return v->lock_step && !joins(v, e) && e->open && e->beat + schedule_lead(v) >= v->beat
           && !schedule_excused(v, e);
}

bool schedule_alone(const struct schedule_view *v)
{
    bool any = false;
    for (size_t i = 0; i < v->n_edges; i++) {
        if (binds(v, &v->edge[i]))
            return false;
        any |= !v->edge[i].done;
    }
    return v->lock_step && any;
}

bool schedule_in_step(const struct schedule_view *v)
{
    bool any = false;
    for (size_t i = 0; i < v->n_edges; i++) {
        any |= binds(v, &v->edge[i]);
        if (v->edge[i].open && v->edge[i].beat > v->beat + 1)
            return false;
    }
    return any;
}

/* The beat that we have to claim, as we were away for too long; 0: none. */
static uint64_t claim(const struct schedule_view *v)
{
    uint64_t most = 0;
    if (v->phase == NODE_TRAINING && v->completed > v->round)
        return v->completed;
    for (size_t i = 0; i < v->n_edges; i++)
        if (v->edge[i].open && v->edge[i].beat > most)
            most = v->edge[i].beat;
    return v->lock_step && most > v->beat + schedule_lead(v) ? most : 0;
}

/* Without local steps a job is of use where it mixes or makes a delta. In lock step
 * it is, too, where others are ahead: they wait for our beat; and where an edge has not its turn,
 * as its end waits for our beat, too, but for somebody of whom nothing is expected. */
static bool has_work(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool behind = v->lock_step && !v->held && e->beat > v->beat && !(v->draining && e->idle);
        bool next = !e->made && !v->draining && !(e->idle && schedule_excused(v, e));
        if ((e->open && (e->ready || behind || next)) || (e->ends_later && !v->draining))
            return true;
    }
    return false;
}

/* The job that the phase is made of, or waiting for a reason that is named. */
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

/* Lost a moment ago: it will be back, and stands where it last said. */
static bool briefly_lost(const struct schedule_edge *e)
{
    return !e->open && !e->done && e->lost_us <= SCHEDULE_BRIEF_US;
}

/* Is the graph incomplete, so that somebody may still be apart? An edge that cannot be
 * had for long is given up: others speak with that member. */
static bool incomplete(const struct schedule_view *v, int64_t patience_us)
{
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        if (!e->open && !e->done && !briefly_lost(e) && e->lost_us <= patience_us)
            return true;
    }
    return false;
}

/* Until it is known whether somebody is dead, passes without it are not worth their bytes. */
static bool passes_in_vain(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if (v->edge[i].missing && !v->edge[i].done && v->edge[i].lost_us <= SCHEDULE_LOST_US)
            return true;
    return false;
}

uint32_t schedule_settled(const struct schedule_view *v)
{
    uint32_t least = SCHEDULE_FAR;
    if (v->phase != NODE_CONSENSUS || !v->trained || !(v->distance <= v->target)
        || incomplete(v, SCHEDULE_LOST_US))
        return 0;
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool counts = e->open || briefly_lost(e) || e->ends_later;
        if (!counts || schedule_stuck(v, e))
            continue;
        if (e->old)
            return 0;
        least = e->settled < least ? e->settled : least;
    }
    return least + 1;
}

bool schedule_confirmed(const struct schedule_view *v, bool left)
{
    size_t near = 0, n = 0;
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        bool asked = left ? e->done : e->open;
        n += asked;
        near += asked && e->settled > 0;
    }
    return 2 * near >= n;
}

/* Is nobody left to mix with, now or later? */
static bool lonely(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if ((!v->edge[i].done && !(schedule_stuck(v, &v->edge[i]) && v->edge[i].open))
            || v->edge[i].ends_later)
            return false;
    return true;
}

/* With an edge missing, the way to the farthest member may lead around the graph. */
static bool all_settled(const struct schedule_view *v)
{
    bool whole = !incomplete(v, INT64_MAX);
    return schedule_settled(v) > (whole ? v->reach : v->n_live);
}

/* Is something to come of this beat that may yet say otherwise? */
static bool awaits_word(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if (waits_for(v, &v->edge[i]))
            return true;
    return false;
}

/* The model may be final when no exchange of ours is half done; one with somebody who
 * is stuck never will be. */
static bool drained(const struct schedule_view *v)
{
    for (size_t i = 0; i < v->n_edges; i++) {
        const struct schedule_edge *e = &v->edge[i];
        if (e->ready || (e->open && e->made && !schedule_stuck(v, e)))
            return false;
    }
    return true;
}

static struct schedule_decision settle(const struct schedule_view *v)
{
    if (v->waits_round && !v->diverged && !v->away)
        return (struct schedule_decision){.act = SCHEDULE_WAIT};
    bool late = v->diverged || v->away || (v->stalled_us > SCHEDULE_STALL_US && !v->held);
    bool left = v->target > 0 && lonely(v) && !v->held;
    bool over = v->target <= 0 || left || (all_settled(v) && !awaits_word(v) && !v->held);
    bool drain = v->draining || late || over;
    if (drain && (drained(v) || late))
        return (struct schedule_decision){
            .act = SCHEDULE_LAST, .drain = true, .late = late, .left = left};
    int64_t pace_us = v->pace_us;
    if (v->held && pace_us < SCHEDULE_HOLD_US)
        pace_us = SCHEDULE_HOLD_US;
    bool waits = !v->trained || passes_in_vain(v)
                 || (v->distance <= v->target && incomplete(v, SCHEDULE_LOST_US));
    if (waits && pace_us < SCHEDULE_SLOW_US)
        pace_us = SCHEDULE_SLOW_US;
    struct schedule_decision d = job(v, SCHEDULE_MIX, pace_us);
    d.drain = drain;
    d.late = late;
    d.left = left;
    return d;
}

/* ---- the other phases ---- */

static struct schedule_decision gather(const struct schedule_view *v)
{
    struct schedule_decision d = {.act = SCHEDULE_WAIT};
    if (!v->has_model || v->behind)
        d.act = SCHEDULE_GET_MODEL;
    else if (v->final)
        d.act = SCHEDULE_LAST;
    else if (v->complete && (v->quiet || v->gathered_us >= SCHEDULE_OPENING_US))
        d.act = SCHEDULE_BEGIN;
    return d;
}

static struct schedule_decision train(const struct schedule_view *v)
{
    if (v->round >= v->rounds)
        return (struct schedule_decision){.act = SCHEDULE_SETTLE};
    if (v->away || v->diverged)
        return (struct schedule_decision){.act = SCHEDULE_LAST, .drain = true};
    if (v->writes || v->waits_round)
        return (struct schedule_decision){.act = SCHEDULE_WAIT};
    if (v->held)
        return job(v, SCHEDULE_MIX, SCHEDULE_HOLD_US);
    return job(v, SCHEDULE_TRAIN, schedule_alone(v) ? v->usual_us : 0);
}

/* Neighbours that still mix need our last deltas; those that are mute do not. And who ended
 * together is known only once the others have said so: it is part of our verdict. */
static struct schedule_decision serve(const struct schedule_view *v)
{
    struct schedule_decision d = {.act = SCHEDULE_LEAVE};
    if (v->member_counts_end && v->idle_us <= SCHEDULE_STALL_US)
        d.act = SCHEDULE_WAIT;
    for (size_t i = 0; i < v->n_edges && v->idle_us <= SCHEDULE_STALL_US; i++)
        if (!v->edge[i].done && (v->edge[i].open || v->edge[i].lost_us <= SCHEDULE_LOST_US))
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
    return v->phase < NODE_LEFT ? of_phase[v->phase](v)
                                : (struct schedule_decision){.act = SCHEDULE_WAIT};
}
