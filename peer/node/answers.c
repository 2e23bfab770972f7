/* peer/node/answers.c -- functions of node.h by which drivers read a node: figures, model, run,
 * message limits. */
#include "peer/node/node.h"

#include "peer/node/figure.h"
#include "peer/node/state.h"

#include <string.h>

/* Figures that a job computes have the values of the last job. All other figures are computed at
 * the call. They would otherwise be outdated below the quorum, where no job may run for a long
 * time. */
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
    const struct node_progress p = v.node;
    int64_t idle_us = n->env.now_us - phases_status(n->phases).idle_since_us;
    *s = (struct wire_status){.round = p.round,
                              .n_rounds = p.n_rounds,
                              .phase = p.phase,
                              .loss = p.loss,
                              .accuracy = p.accuracy,
                              .drift = p.drift,
                              .relative_drift = p.relative_drift,
                              .drift_round = p.drift_round,
                              .drift_age = p.drift_age,
                              .bytes_sent = p.bytes_sent,
                              .bytes_received = p.bytes_received,
                              .n_strangers = p.strangers,
                              .n_violations = p.violations,
                              .n_live = p.n_live,
                              .rounds_done = p.rounds_done,
                              .rounds_skipped = p.rounds_skipped,
                              .joined_round = p.joined_round,
                              .age_s = (double)idle_us * 1e-6,
                              .holds = p.holds,
                              .clock_ms = n->clock_ms};
    run_context_codec(&n->workshop, p.rung, p.phase == NODE_CONSENSUS, s->codec);
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
    v.age_s = s->age_s;
    v.has_run = n->workshop.has_run;
    figure_to_status(s, &v);
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
