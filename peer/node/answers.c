/* peer/node/answers.c -- what drivers read of a node: figures, model, run, limits of messages. */
#include "peer/node/node.h"

#include "peer/node/state.h"

/* Who lives and what is held is told as it is: below the quorum no job may come for long. */
void node_progress(const struct node *n, struct node_progress *p)
{
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t self;
    *p = n->job.figures;
    p->n_live = (uint32_t)members_vertices(n->env.members, at, &self);
    p->n_edges = (uint32_t)edges_open(&n->edges);
    p->holds = n->phases.quorum.state == QUORUM_HELD;
    p->phase = n->env.over ? NODE_LEFT : n->phases.phase;
    p->round = n->resume.waits ? n->env.config.resume[0].beat : n->phases.round;
    p->n_rounds = n->workshop.has_run ? n->workshop.run.rounds : 0;
    p->settle_rounds = n->phases.settle_rounds;
    p->drift_age = phases_beat(&n->phases) - p->drift_round;
    p->joined_round = n->phases.joined;
    p->rounds_done = n->phases.done;
    p->rounds_skipped = n->phases.skipped;
    p->bytes_sent = n->bytes_sent;
    p->bytes_received = n->bytes_received;
    p->strangers = n->n_strangers;
    p->resets = n->edges.n_resets;
    p->distrusted = n->edges.n_distrusted;
    p->bytes_ahead = n->edges.bytes_ahead;
    p->violations = n->sessions.n_violations;
}

const float *node_model(const struct node *n, const struct segment **segments, size_t *n_segments,
                        size_t *n_params)
{
    if (!n->workshop.ready)
        return NULL;
    *segments = n->workshop.trainer.segments;
    *n_segments = n->workshop.trainer.n_segments;
    *n_params = n->workshop.trainer.n_params;
    return n->workshop.mixing.x;
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
