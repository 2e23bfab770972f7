/* peer/node/inspect.c -- reads internal state of a node, for tests and traces. */
#include "peer/node/inspect.h"

#include "peer/node/state.h"

#include <math.h>
#include <string.h>

size_t node_n_edges(const struct node *n)
{
    return n->workshop.ready ? edges_count(n->edges) : 0;
}

/* Returns the running job's task for the edge. NULL: no job runs, or the job has no task for this
 * edge. */
static const struct mixing_task *task_of(const struct node *n, const struct edge *e)
{
    for (size_t i = 0; job_is_running(n->job) && i < n->workshop.mixing.n_tasks; i++)
        if (n->workshop.mixing.task[i].edge == e)
            return &n->workshop.mixing.task[i];
    return NULL;
}

/* The job moves the model by c * (b - a), where a and b are the replicas of this peer's and the
 * neighbour's model. Returns c for this task. NaN: the mixer uses no such coefficient.
 * correction_mix() stores the coefficients in the order of the tasks that commit an exchange. */
static float coefficient_of(const struct node *n, const struct mixing_task *task)
{
    size_t k = 0;
    for (const struct mixing_task *t = n->workshop.mixing.task; t < task; t++)
        k += t->commit;
    const struct correction *term = &n->workshop.mixing.term[k];
    return term->task == task && !n->workshop.mixing.mixer->updates ? term->coefficient : NAN;
}

void node_edge(const struct node *n, size_t i, struct node_edge *out)
{
    const struct neighbour *b = edges_at(n->edges, i);
    const struct edge *e = &b->edge;
    const struct mixing_task *t = task_of(n, e);
    *out = (struct node_edge){.state = e->state,
                              .wanted = b->wanted,
                              .linked = b->link != NULL,
                              .barred = edges_bars(n->edges, b),
                              .epoch = t != NULL ? t->epoch : e->epoch,
                              .round = t != NULL ? t->round + t->commit : e->round,
                              .coefficient = NAN,
                              .n_resets = e->n_resets};
    memcpy(out->id, e->id, WIRE_ID_BYTES);
    bool stands = e->a != NULL && out->epoch != 0 && (t != NULL || !e->reset);
    out->a = stands ? e->a->v : NULL;
    out->b = stands ? e->b : NULL;
    out->commits = t != NULL && t->commit;
    if (out->commits)
        out->coefficient = coefficient_of(n, t);
}

void node_edge_state(const struct node *n, size_t i, struct node_edge_state *out)
{
    const struct edge *e = &edges_at(n->edges, i)->edge;
    *out = (struct node_edge_state){.id = e->id, .state = e->state, .round = e->round};
}

void node_size(const struct node *n, struct node_size *s)
{
    *s = (struct node_size){.n_members = members_count(n->env.members),
                            .n_edges = node_n_edges(n),
                            .n_packets = n->workshop.ready ? n->workshop.mixing.packets.live : 0,
                            .beat = phases_beat(n->phases),
                            .trains = job_is_running(n->job) && job_takes_steps(n->job)
                                      && !job_is_ahead(n->job),
                            .ahead = job_is_ahead(n->job),
                            .n_steps = job_n_steps(n->job)};
    size_t self;
    uint32_t at[WIRE_MEMBERS_MAX];
    s->n_vertices = members_vertices(n->env.members, at, &self);
    for (size_t i = 0; i < sessions_slots(n->sessions); i++)
        s->n_links += sessions_at(n->sessions, i)->used;
}

bool node_counts(const struct node *n, const uint8_t id[WIRE_ID_BYTES])
{
    size_t self;
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t count = members_vertices(n->env.members, at, &self);
    for (size_t i = 0; i < count; i++)
        if (env_same_id(members_at(n->env.members, at[i])->record->id, id))
            return true;
    return false;
}
