/* peer/node/edge/edges_last.c -- edges of a consensus phase with its own topology
 * (--final-topology).
 *
 * A peer that has finished training asks for the edges of the new topology. Edges that both
 * topologies contain continue. The other edges of training stay open, with `aside` set. No new
 * exchange begins on them. Their pending exchanges are completed, also after a session was lost and
 * restored. A peer that closed an edge with a pending exchange could not know whether its neighbour
 * has committed the exchange. The two ends continue to send each other BEATs, so that peers in the
 * consensus phase stay in lock step with neighbours that still train.
 *
 * An edge with `aside` set is dropped if it has not been open for SCHEDULE_LOST_US: a neighbour
 * that was cut off may have dropped its end while this peer counted as dead, and then never opens
 * the edge again. As long as one end holds a pending exchange, no averaging pass is exact.
 */
#include "peer/node/edge/edges_state.h"

const char *edges_topology(const struct edges *es)
{
    const struct run *run = &es->workshop->run;
    return es->last ? run_final_topology(run) : run->topology;
}

static bool is_vertex(const struct edges *es, const struct neighbour *b, size_t count)
{
    const struct members *all = es->env->members;
    for (size_t i = 0; i < count; i++)
        if (env_same_id(members_at(all, es->env->vertices[i])->record->id, b->edge.id))
            return true;
    return false;
}

bool edges_gave_up(const struct edges *es, const struct neighbour *b)
{
    return es->env->now_us - b->open_us > SCHEDULE_LOST_US;
}

void edges_set_aside(struct edges *es, size_t n_vertices)
{
    bool changes = es->last && run_changes_graph(&es->workshop->run);
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        bool held = !b->wanted && is_vertex(es, b, n_vertices);
        b->aside = changes && held && !edges_gave_up(es, b);
    }
}

void edges_settle(struct edges *es)
{
    const struct run *run = &es->workshop->run;
    if (es->last || !(run->final_drift > 0))
        return;
    es->last = true;
    if (!run_changes_graph(run))
        return;
    edges_rebuild(es);
    if (!es->env->over)
        edges_update(es);
}

/* ---- BEATs and lagging replicas ---- */

void edges_hear_word(struct neighbour *b, const struct wire_beat *m)
{
    struct neighbour_word *w = &b->said[m->run_round % 2];
    if (m->run_round >= w->beat)
        *w = (struct neighbour_word){.beat = m->run_round, .settled = m->settled};
}

uint32_t neighbour_settled(const struct neighbour *b, uint64_t beat)
{
    const struct edge *e = &b->edge;
    const struct neighbour_word *now = &b->said[beat % 2], *before = &b->said[(beat + 1) % 2];
    const struct neighbour_word *w = now->beat == beat ? now : before;
    return w->beat <= beat && w->beat > e->run_round ? w->settled : e->settled;
}

bool edges_lag(const struct edges *es, double most)
{
    for (size_t i = 0; i < es->n; i++)
        if (mixing_lags(&es->workshop->mixing, &es->at[i]->edge, most))
            return true;
    return false;
}
