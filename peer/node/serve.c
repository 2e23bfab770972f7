/* peer/node/serve.c -- what others ask of us: our model, our status, whether we are done. */
#include "peer/node/state.h"

#include <string.h>

static void send_model(struct node *n, struct link *l, struct packet *model)
{
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_model m = {.round = n->round};
    m.payload.p = packet_bytes(model, &m.payload.n);
    l->model_wanted = false;
    node_send(n, l, true, head, wire_put_model(head, sizeof head, &m), model);
}

/* To all who want the model at this round or one before; the round of the
 * snapshot is that before the job's local steps. */
void serve_models(struct node *n, struct packet *model)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (n->links[i].used && n->links[i].model_wanted
            && (n->links[i].model_round <= n->round
                || (n->links[i].model_round == WIRE_ROUND_WINDOW
                    && mixing_window_began(&n->mixing))))
            send_model(n, &n->links[i], model);
    n->held = model;
}

void serve_model_req(struct node *n, struct link *l, const struct wire_message *m)
{
    l->model_wanted = true;
    l->model_round = m->model_req.round;
    /* The next job takes it. (Before the first one our run may still give way
     * to the cluster's, and its packets with it.) */
    if (n->working || !n->has_model || n->phase <= NODE_TRAINING)
        return;
    struct packet *now = packet_get(&n->models);
    if (now == NULL)
        return;
    mixing_copy_model(&n->mixing, now);
    send_model(n, l, now);
    n->held = now;
}

void serve_status_req(struct node *n, struct link *l, const struct wire_message *m)
{
    (void)m;
    const struct node_progress *p = &n->progress;
    struct wire_status s = {.round = n->round,
                            .n_rounds = n->has_run ? n->run.rounds : 0,
                            .phase = n->phase,
                            .loss = p->loss,
                            .accuracy = p->accuracy,
                            .drift = p->drift,
                            .relative_drift = p->relative_drift,
                            .drift_round = p->drift_round,
                            .bytes_sent = p->bytes_sent,
                            .bytes_received = p->bytes_received,
                            .n_strangers = p->strangers,
                            .n_violations = p->violations,
                            .n_live = p->n_live};
    for (size_t i = 0; i < n->n_edges && s.n_edges < WIRE_EDGES_MAX; i++) {
        const struct neighbour *b = n->edges[i];
        const struct edge *e = &b->edge;
        struct wire_status_edge *out = &s.edges[s.n_edges++];
        memcpy(out->id, e->id, WIRE_ID_BYTES);
        out->state = e->state;
        out->round = e->round;
        out->gamma = (float)b->gamma;
        out->resets = e->n_resets;
    }
    node_send(n, l, false, n->scratch, wire_put_status(n->scratch, sizeof n->scratch, &s), NULL);
}

/* In the bulk lane, so that it comes after our last delta. */
void serve_say_finished(struct node *n, struct link *l)
{
    uint8_t out[64];
    if (n->phase != NODE_SERVING || n->working)
        return;
    struct wire_ping ping = {.round = n->round, .finished = true};
    node_send(n, l, true, out, wire_put_ping(out, sizeof out, &ping), NULL);
}
