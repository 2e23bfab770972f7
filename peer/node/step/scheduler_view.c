/* peer/node/step/scheduler_view.c -- derives the schedule's view of one neighbour from its edge. */

#include "peer/node/edge/rounds.h"
#include "peer/node/step/phases_state.h"

#include <stdlib.h>

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns how long the neighbour's worker has run its current job, in microseconds. 0: the worker
 * is idle, or not known. A report that is older than the neighbour's last delta, or than the
 * opening of the edge, is outdated. */
static int64_t busy_us(const struct phases *ph, const struct neighbour *b)
{
    const struct link *l = b->link;
    return l != NULL && l->told_busy_us > b->stale.came_us ? link_busy_us(l, ph->env->now_us) : 0;
}

/* Returns the time since the edge was last open or done, in microseconds. INT64_MAX: the neighbour
 * is proven Byzantine, so no rule may wait for it. */
static int64_t lost_us(const struct phases *ph, const struct neighbour *b)
{
    return edges_found_out(ph->edges, b) ? INT64_MAX : ph->env->now_us - b->open_us;
}

/* Returns whether this peer waits for the delta or BEAT that an exact averaging pass needs from the
 * neighbour. The wait ends after SCHEDULE_LOST_US, so that a lost session can come back. If the
 * neighbour still trains and the time limit of a job is longer, the wait ends after that limit.
 * This peer does not wait for an edge that has been closed for even longer, for example because one
 * of its ends distrusts the other. */
static bool awaited(const struct phases *ph, const struct neighbour *b)
{
    if (ph->phase != NODE_CONSENSUS || ph->draining
        || !averaging_pass_needs(ph->edges, b, phases_beat(ph)))
        return false;
    const struct member *m = members_find(ph->env->members, b->edge.id);
    int64_t most_us = SCHEDULE_LOST_US, limit_us = job_watchdog_limit_us(ph);
    bool trains = m != NULL && m->record->state == RECORD_RUNNING && b->link != NULL;
    if (trains && limit_us > most_us)
        most_us = limit_us;
    bool lost = b->edge.state != EDGE_OPEN && lost_us(ph, b) > most_us;
    return !lost && ph->env->now_us - ph->idle_since_us <= most_us;
}

/* Returns the number of hops around the neighbour within which all peers are near the mean. The
 * first case that applies decides:
 *
 *   - The edge belongs to the graph of training only, or the run has exact averaging passes: the
 *     number in the neighbour's last applied delta, or in a later BEAT message. BEAT messages for
 *     step counters above this peer's are ignored.
 *   - Lock step, and the next exchange is complete: the number in the neighbour's delta of that
 *     exchange. Every peer has all deltas of a round before it continues, so the number of hops can
 *     grow by one per round.
 *   - Otherwise: the number in the last exchange that was applied. A number from the next exchange
 *     would depend on the time at which the delta arrives.
 */
static uint32_t settled(const struct phases *ph, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    /* BEAT messages count like deltas, because the edge makes no delta in some rounds. */
    bool words = b->aside || averaging_pass_counts(ph->edges);
    bool here = ph->workshop->run.policy == RUN_SYNC && edge_ready(e);
    return words  ? neighbour_settled(b, phases_beat(ph))
           : here ? edge_theirs(e)->head.settled
                  : e->settled;
}

bool scheduler_view_owed(const struct phases *ph, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    return ph->workshop->run.policy != RUN_SYNC && e->state == EDGE_OPEN && edge_wants_delta(e)
           && edge_theirs(e)->full && !e->reset;
}

static enum schedule_exchange exchange(const struct phases *ph, const struct neighbour *b)
{
    if (edge_ready(&b->edge))
        return SCHEDULE_EXCHANGE_COMPLETE;
    if (b->edge.cur.payload != NULL)
        return SCHEDULE_EXCHANGE_MADE;
    return scheduler_view_owed(ph, b) ? SCHEDULE_EXCHANGE_OWED : SCHEDULE_EXCHANGE_EMPTY;
}

static struct schedule_edge view_of(const struct phases *ph, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    int64_t now = ph->env->now_us;
    uint32_t staleness = run_staleness(&ph->workshop->run);
    /* `mute_us`, the time without news from the neighbour, starts at its last message or at the end
     * of this peer's last job, whichever is later. In training, mute_us is 0 while the neighbour is
     * not behind. For a neighbour that this peer no longer waits for, mute_us starts at the last
     * message: otherwise each job would restart the wait. */
    bool behind = ph->phase != NODE_TRAINING || neighbour_beat(b) + staleness <= phases_beat(ph);
    bool turns = edges_status(ph->edges).n_rounds > 0;
    bool idle =
        b->aside || (turns && (ph->draining || !rounds_turn(ph->edges, b, phases_beat(ph) + 1)));
    bool left = b->aside && e->state != EDGE_OPEN && e->cur.payload == NULL;
    /* An edge to a neighbour that has ended stays open until its complete exchange is mixed. The
     * neighbour's step counter no longer grows, so lock step must not wait for it. */
    uint64_t beat = neighbour_beat(b);
    if (e->state == EDGE_OPEN && beat < phases_beat(ph) && phases_has_ended(ph, b))
        beat = phases_beat(ph);
    int64_t came_us = later(b->beat_us, b->coming_us);
    int64_t mute_since = b->excused ? came_us : later(came_us, ph->idle_since_us);
    return (struct schedule_edge){
        .state = e->state == EDGE_OPEN           ? SCHEDULE_EDGE_OPEN
                 : left || e->state == EDGE_DONE ? SCHEDULE_EDGE_DONE
                                                 : SCHEDULE_EDGE_CLOSED,
        .exchange = exchange(ph, b),
        .awaited = awaited(ph, b),
        .missing = averaging_pass_counts(ph->edges) && b->wanted && e->state != EDGE_OPEN,
        .lost_us = lost_us(ph, b),
        .idle = idle,
        .ends_later = turns && e->state == EDGE_DONE && neighbour_beat(b) >= phases_beat(ph),
        .old = ph->near && e->cur.payload != NULL && e->cur.head.run_round < ph->near_round,
        .gathers = b->link != NULL && !b->link->started,
        .flapping = b->absence.flapping,
        .busy_us = busy_us(ph, b),
        .mute_us = staleness > 0 && behind ? now - mute_since : 0,
        .beat = beat,
        .settled = settled(ph, b)};
}

bool scheduler_view_edges(struct phases *ph)
{
    if (edges_count(ph->edges) > ph->cap_seen) {
        struct schedule_edge *grown = realloc(ph->seen, edges_count(ph->edges) * sizeof *grown);
        if (grown == NULL) {
            env_note(ph->env, NOTE_ERROR, "out of memory for the schedule");
            env_end(ph->env, 1);
            return false;
        }
        ph->seen = grown;
        ph->cap_seen = edges_count(ph->edges);
    }
    for (size_t i = 0; i < edges_count(ph->edges); i++)
        ph->seen[i] = view_of(ph, edges_at(ph->edges, i));
    return true;
}
