/* peer/node/answers.c -- functions of node.h and inspect.h that read a node: figures, model, run,
 * message limits, and internal state for tests and traces. */
#include "peer/node/inspect.h"

#include "peer/node/figure.h"
#include "peer/node/state.h"

#include <math.h>
#include <string.h>

/* Figures that a job computes have the values of the last job. All other figures are computed at
 * the call. They would otherwise be outdated below the quorum, where the last job may have ended
 * long ago. */
void node_progress(const struct node *n, struct node_progress *p)
{
    const struct edges_status edges = edges_status(n->edges);
    const struct phases_status phases = phases_status(n->phases);
    *p = *job_figures(n->job);
    p->n_live = members_tally(n->env.members)->n_vertices;
    p->n_edges = (uint32_t)edges_count_open(n->edges);
    p->holds = quorum_is_held(n->quorum);
    p->phase = n->env.over ? NODE_LEFT : phases.phase;
    p->round = resume_is_waiting(n->resume) ? n->env.config.resume[0].beat : phases.round;
    p->n_rounds = n->workshop.has_run ? n->workshop.run.rounds : 0;
    p->settle_rounds = phases.settle_rounds;
    p->drift_age = phases_beat(n->phases) - p->drift_round;
    p->joined_round = phases.joined;
    p->rounds_done = phases.done;
    p->rounds_skipped = phases.skipped;
    p->bytes_sent = n->bytes_sent;
    p->bytes_received = n->bytes_received;
    p->strangers = n->n_strangers;
    p->resets = edges.n_resets;
    p->distrusted = edges.n_distrusted;
    p->bytes_ahead = edges.bytes_ahead;
    p->violations = sessions_violations(n->sessions);
}

void node_status(const struct node *n, struct wire_status *s)
{
    struct figure_values v;
    figure_init(&v);
    node_progress(n, &v.node);
    v.age_s = (double)(n->env.now_us - phases_status(n->phases).idle_since_us) * 1e-6;
    v.has_run = n->workshop.has_run;
    *s = (struct wire_status){.clock_ms = n->clock_ms};
    figure_to_status(s, &v);
    run_context_codec(&n->workshop, v.node.rung, v.node.phase == NODE_CONSENSUS, s->codec);
    for (size_t i = 0; i < edges_count(n->edges) && s->n_edges < WIRE_EDGES_MAX; i++) {
        const struct neighbour *b = edges_at(n->edges, i);
        const struct edge *e = &b->edge;
        struct wire_status_edge *out = &s->edges[s->n_edges++];
        memcpy(out->id, e->id, WIRE_ID_BYTES);
        out->state = e->state;
        out->round = e->round;
        out->gamma = (float)b->gamma;
        out->resets = e->n_resets;
    }
}

size_t node_vertices(const struct node *n, uint32_t at[WIRE_MEMBERS_MAX])
{
    size_t self;
    return members_vertices(n->env.members, at, &self);
}

const char *node_topology(const struct node *n)
{
    return n->workshop.has_run ? edges_topology(n->edges) : NULL;
}

size_t node_members(const struct node *n)
{
    return members_count(n->env.members);
}

void node_member(const struct node *n, size_t i, struct node_member *m)
{
    const struct member *e = members_at(n->env.members, i);
    const struct link *l = sessions_to(n->sessions, e->record->id);
    bool own = env_same_id(e->record->id, n->env.config.id);
    bool says = l != NULL && l->same_run && l->said_us != 0;
    *m = (struct node_member){.id = e->record->id,
                              .name = e->record->name,
                              .state = e->state,
                              .own = own,
                              .connected = e->connected,
                              .has_round = says,
                              .round = says ? l->round : 0};
}

const char *node_violation(const struct node *n, size_t i, uint64_t *count)
{
    return sessions_violation_kind(n->sessions, i, count);
}

const float *node_model(const struct node *n, const struct segment **segments, size_t *n_segments,
                        size_t *n_params)
{
    if (!n->workshop.ready || n->workshop.lacks)
        return NULL;
    *segments = n->workshop.trainer.segments;
    *n_segments = n->workshop.trainer.n_segments;
    *n_params = n->workshop.trainer.n_params;
    return mixing_held_model(&n->workshop.mixing);
}

const struct run *node_run(const struct node *n)
{
    return n->workshop.has_run ? &n->workshop.run : NULL;
}

size_t node_control_max(const struct node *n)
{
    (void)n;
    return WIRE_CONTROL_MAX;
}

size_t node_bulk_max(const struct node *n)
{
    if (!n->workshop.ready)
        return WIRE_HEAD_MAX + WIRE_SKETCH_MAX;
    size_t model = mixing_model_bytes(&n->workshop.mixing);
    size_t most = n->workshop.mixing.cap > model ? n->workshop.mixing.cap : model;
    return most + WIRE_HEAD_MAX + WIRE_SKETCH_MAX;
}

/* ---- internal state (inspect.h) ---- */

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
    uint32_t at[WIRE_MEMBERS_MAX];
    s->n_vertices = node_vertices(n, at);
    for (size_t i = 0; i < sessions_slots(n->sessions); i++)
        s->n_links += sessions_at(n->sessions, i)->used;
}

bool node_counts(const struct node *n, const uint8_t id[WIRE_ID_BYTES])
{
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t count = node_vertices(n, at);
    for (size_t i = 0; i < count; i++)
        if (env_same_id(members_at(n->env.members, at[i])->record->id, id))
            return true;
    return false;
}
