/* peer/node/scheduler_view.c -- from a neighbour's state to what the schedule goes by. */
#include "peer/node/scheduler_view.h"

#include "peer/node/job_watchdog.h"
#include "peer/node/rounds.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What they said of their worker before the edge opened, or their last delta came, is over. */
static int64_t busy_us(const struct phases *ph, const struct neighbour *b)
{
    const struct link *l = b->link;
    return l != NULL && l->told_busy_us > b->stale.came_us ? link_busy_us(l, ph->env->now_us) : 0;
}

/* Whoever was found out is given up at once: nothing that it may still do is worth a wait. */
static int64_t lost_us(const struct phases *ph, const struct neighbour *b)
{
    return edges_found_out(ph->edges, b) ? INT64_MAX : ph->env->now_us - b->open_us;
}

/* A pass is worth a wait for sessions that break, and for who is not there yet but on its way. */
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
    return ph->env->now_us - ph->idle_since_us <= most_us;
}

/* How far around it all are near. In lock step nobody goes on before the deltas of a beat are here:
 * that of the exchange to come counts, and news takes one round a hop. Else the moment at which it
 * comes would decide, and what counts is what was said with the last exchange. */
static uint32_t settled(const struct phases *ph, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    bool words =
        b->aside || averaging_pass_counts(ph->edges); /* Then deltas are not all that is said. */
    bool here = ph->workshop->run.policy == RUN_SYNC && edge_ready(e);
    return words  ? neighbour_settled(b, phases_beat(ph))
           : here ? edge_theirs(e)->head.settled
                  : e->settled;
}

struct schedule_edge scheduler_view_edge(const struct phases *ph, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    int64_t now = ph->env->now_us;
    uint32_t staleness = run_staleness(&ph->workshop->run);
    /* It cannot keep us waiting before we wait, nor in training where it is not behind. But
     * once it is not waited for, that lasts until something new comes: each of our jobs would
     * begin the wait anew. */
    bool behind = ph->phase != NODE_TRAINING || neighbour_beat(b) + staleness <= phases_beat(ph);
    bool turns = ph->edges->n_rounds > 0;
    bool idle =
        b->aside || (turns && (ph->draining || !rounds_turn(ph->edges, b, phases_beat(ph) + 1)));
    bool left = b->aside && e->state != EDGE_OPEN && e->cur.payload == NULL;
    int64_t came_us = later(b->beat_us, b->coming_us);
    int64_t mute_since = b->excused ? came_us : later(came_us, ph->idle_since_us);
    return (struct schedule_edge){
        .open = e->state == EDGE_OPEN,
        .done = e->state == EDGE_DONE || left,
        .awaited = awaited(ph, b),
        .missing = averaging_pass_counts(ph->edges) && b->wanted && e->state != EDGE_OPEN,
        .lost_us = lost_us(ph, b),
        .ready = edge_ready(e),
        .made = e->cur.payload != NULL,
        .idle = idle,
        .ends_later = turns && e->state == EDGE_DONE && neighbour_beat(b) >= phases_beat(ph),
        .old = ph->near && e->cur.payload != NULL && e->cur.head.run_round < ph->near_round,
        .gathers = b->link != NULL && !b->link->started,
        .flapping = b->absence.flapping,
        .busy_us = busy_us(ph, b),
        .mute_us = staleness > 0 && behind ? now - mute_since : 0,
        .beat = neighbour_beat(b),
        .settled = settled(ph, b)};
}
