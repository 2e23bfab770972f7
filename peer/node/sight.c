/* peer/node/sight.c -- from a neighbour's state to what the schedule goes by. */
#include "peer/node/sight.h"

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

struct schedule_edge sight_edge(const struct phases *ph, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    int64_t now = ph->env->now_us;
    uint32_t staleness = run_staleness(&ph->workshop->run);
    /* It cannot keep us waiting before we wait, nor in training where it is not behind. But
     * once it is not waited for, that lasts until something new comes: each of our jobs would
     * begin the wait anew. */
    bool behind = ph->phase != NODE_TRAINING || neighbour_beat(b) + staleness <= phases_beat(ph);
    bool turns = ph->edges->n_rounds > 0;
    bool idle = turns && (ph->draining || !rounds_turn(ph->edges, b, phases_beat(ph) + 1));
    int64_t came_us = later(b->beat_us, b->coming_us);
    int64_t mute_since = b->excused ? came_us : later(came_us, ph->idle_since_us);
    return (struct schedule_edge){
        .open = e->state == EDGE_OPEN,
        .done = e->state == EDGE_DONE,
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
        .settled = e->settled};
}
