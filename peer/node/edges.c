/* peer/node/edges.c -- which edges there are, and what is said over each. */
#include "peer/node/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- which edges there are ---- */

static struct neighbour *find(struct node *n, const uint8_t *id)
{
    for (size_t i = 0; i < n->n_edges; i++)
        if (memcmp(n->edges[i]->edge.id, id, WIRE_ID_BYTES) == 0)
            return n->edges[i];
    return NULL;
}

struct neighbour *edges_of(struct node *n, const struct link *l)
{
    return find(n, l->id);
}

static struct neighbour *add(struct node *n, const uint8_t *id)
{
    if (n->n_edges == n->cap_edges) {
        size_t cap = 2 * n->cap_edges + 4;
        struct neighbour **grown = realloc(n->edges, cap * sizeof(struct neighbour *));
        if (grown == NULL)
            return NULL;
        n->edges = grown;
        n->cap_edges = cap;
    }
    struct neighbour *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    if (mixing_edge_open(&n->mixing, &b->edge, n->config.id, id) != 0) {
        free(b);
        return NULL;
    }
    b->lost_us = n->now_us;
    b->must_ask = true;
    n->edges[n->n_edges++] = b;
    return b;
}

static void drop(struct node *n, size_t i)
{
    struct neighbour *b = n->edges[i];
    mixing_edge_close(&n->mixing, &b->edge);
    free(b);
    memmove(n->edges + i, n->edges + i + 1, (n->n_edges - i - 1) * sizeof(struct neighbour *));
    n->n_edges--;
}

void edges_close_all(struct node *n)
{
    while (n->n_edges > 0)
        drop(n, n->n_edges - 1);
    free(n->edges);
    n->edges = NULL;
    n->cap_edges = 0;
}

/* Deltas are applied in the order of the members: sort by place. */
static void sort_edges(struct node *n)
{
    for (size_t i = 1; i < n->n_edges; i++)
        for (size_t j = i; j > 0; j--) {
            const struct record *x = members_find(n->members, n->edges[j - 1]->edge.id)->record;
            const struct record *y = members_find(n->members, n->edges[j]->edge.id)->record;
            if (record_compare(x, y) <= 0)
                break;
            struct neighbour *t = n->edges[j];
            n->edges[j] = n->edges[j - 1];
            n->edges[j - 1] = t;
        }
}

/* The members changed: the graph is a function of who lives. Edges that stay
 * keep their state; those that go are closed at both ends. */
static void rebuild(struct node *n)
{
    struct graph g;
    size_t self = 0, count = members_vertices(n->members, n->vertices, &self);
    if (graph_build(&g, n->run.topology, (uint32_t)count, n->run.seed) != 0) {
        node_note(n, NOTE_ERROR, "out of memory for the topology");
        node_end(n, 1);
        return;
    }
    for (size_t i = 0; i < n->n_edges; i++)
        n->edges[i]->wanted = false;
    for (uint32_t k = g.first[self]; k < g.first[self + 1]; k++) {
        const struct member *m = members_at(n->members, n->vertices[g.neighbour[k]]);
        struct neighbour *b = find(n, m->record->id);
        if (b == NULL && (b = add(n, m->record->id)) == NULL) {
            node_note(n, NOTE_ERROR, "out of memory for an edge");
            node_end(n, 1);
            break;
        }
        b->wanted = true;
    }
    n->eccentricity = graph_eccentricity(&g, (uint32_t)self);
    n->reach = self == 0 ? n->eccentricity : graph_eccentricity(&g, 0);
    if (n->by_drift)
        n->spread = graph_spread(&g, (uint32_t)self);
    graph_close(&g);
    for (size_t i = n->n_edges; i-- > 0;) {
        struct neighbour *b = n->edges[i];
        uint8_t out[16];
        if (b->wanted)
            continue;
        if (b->link != NULL)
            node_send(n, b->link, true, out, wire_put_edge_close(out, sizeof out), NULL);
        drop(n, i);
    }
    sort_edges(n);
}

/* --shard auto: the samples are shared out among who lives. */
static void tell_trainer(struct node *n)
{
    struct node_job *j = &n->job;
    size_t self, count = members_vertices(n->members, n->vertices, &self);
    if (count > j->cap_keys) {
        uint64_t *keys = realloc(j->keys, count * sizeof *keys);
        if (keys == NULL)
            return; /* The old shares stay: every sample has an owner still. */
        j->keys = keys;
        j->cap_keys = count;
    }
    for (size_t i = 0; i < count; i++) {
        const struct record *r = members_at(n->members, n->vertices[i])->record;
        j->keys[i] = rng_hash(r->name, strlen(r->name));
    }
    j->n_keys = count;
    j->members = true;
}

/* ---- EDGE: both ends open ---- */

static void agree(struct node *n, struct neighbour *b)
{
    uint64_t theirs = b->edge.theirs.round, ours = b->edge.round;
    uint64_t resets = b->edge.n_resets;
    if (!edge_agree(&b->edge, n->config.boot))
        return;
    n->progress.resets += b->edge.n_resets - resets;
    b->edge.ending = false;
    n->opened_us = n->now_us;
    b->grace = n->phase != NODE_GATHERING;
    b->grace_round = theirs > ours ? theirs : ours;
    if (b->edge.reset)
        b->grace_round = 0;
    n->exchange_us = n->now_us;
    b->redial.backoff_us = 0;
    if (b->link == NULL)
        return;
    b->link->opened = true;
    serve_say_finished(n, b->link);
}

static void ask(struct node *n, struct neighbour *b)
{
    uint8_t out[64];
    struct wire_edge m;
    b->must_ask = false;
    edge_ask(&b->edge, rng_u64(&n->rng), n->config.boot, false, &m);
    /* In the bulk lane: behind every delta of before. */
    node_send(n, b->link, true, out, wire_put_edge(out, sizeof out, &m), NULL);
}

void edges_edge(struct node *n, struct link *l, const struct wire_message *m)
{
    struct neighbour *b = edges_of(n, l);
    if (b == NULL || b->link != l) {
        l->edge_heard = true; /* We may come to want it, too. */
        l->edge = m->edge;
        return;
    }
    if (edge_hear(&b->edge, &m->edge))
        ask(n, b);
    agree(n, b);
}

void edges_edge_close(struct node *n, struct link *l, const struct wire_message *m)
{
    struct neighbour *b = edges_of(n, l);
    (void)m;
    l->edge_heard = false;
    if (b == NULL || b->link != l)
        return;
    edge_pause(&b->edge, true);
    b->must_ask = true;
}

/* ---- DELTA ---- */

static bool copy_sketch(const struct node *n, const struct wire_delta *d,
                        struct sketch_message *out)
{
    *out = (struct sketch_message){
        .tag = d->sketch_generation, .u = d->mean_dist2, .q = d->mean_norm2, .n = d->sketch.n};
    if (d->sketch.n > SKETCH_BYTES_MAX)
        return false;
    if (d->sketch.n > 0)
        memcpy(out->bytes, d->sketch.p, d->sketch.n);
    return mixing_sketch_valid(&n->mixing, out);
}

/* It has been read; verify it, and only then keep it. */
void edges_delta(struct node *n, struct link *l, const struct wire_message *m)
{
    const struct wire_delta *d = &m->delta;
    struct sketch_message sketch;
    struct neighbour *b = edges_of(n, l);
    if (b == NULL || b->link != l)
        return; /* We have closed the edge meanwhile. */
    switch (edge_check(&b->edge, d)) {
    case EDGE_REPEAT:
    case EDGE_STALE:
        return;
    case EDGE_VIOLATION:
        node_violation(n, l, "DELTA out of its round");
        return;
    case EDGE_ACCEPT:
        break;
    }
    if (d->run_round > n->run.rounds + SETTLE_ROUNDS_MAX + 1) {
        node_violation(n, l, "DELTA from after the run's end");
        return;
    }
    if (!mixing_valid(&n->mixing, d->codec, d->payload.p, d->payload.n)
        || !copy_sketch(n, d, &sketch)) {
        node_violation(n, l, "DELTA does not decode");
        return;
    }
    edge_store(&b->edge, d, &sketch);
    b->grace &= d->round <= b->grace_round;
    n->exchange_us = n->now_us;
    if (d->run_round > l->round)
        l->round = d->run_round;
}

static void send_delta(struct node *n, struct neighbour *b, struct edge_sent *sent)
{
    uint8_t head[WIRE_HEAD_MAX + SKETCH_BYTES_MAX];
    struct wire_delta d = sent->head;
    size_t len;
    d.sketch_generation = sent->sketch.tag;
    d.mean_dist2 = sent->sketch.u;
    d.mean_norm2 = sent->sketch.q;
    d.sketch = (struct bytes){sent->sketch.bytes, sent->sketch.n};
    d.payload.p = packet_bytes(sent->payload, &d.payload.n);
    len = wire_put_delta(head, sizeof head, &d);
    assert(len > 0);
    node_send(n, b->link, true, head, len, sent->payload);
}

/* ---- links come and go ---- */

void edges_link_lost(struct node *n, struct link *l)
{
    struct neighbour *b = edges_of(n, l);
    if (b == NULL || b->link != l)
        return;
    edge_pause(&b->edge, true);
    b->link = NULL;
    b->lost_us = n->now_us;
    if (l->opened && !l->violated)
        b->redial.next_us = 0;
}

void edges_heard(struct node *n, struct link *l)
{
    struct neighbour *b = edges_of(n, l);
    if (b != NULL && b->link == l && b->edge.state == EDGE_PAUSED && !b->must_ask)
        b->edge.state = EDGE_OPEN;
}

void edges_finished(struct node *n, struct link *l)
{
    struct neighbour *b = edges_of(n, l);
    l->finished = true;
    if (b != NULL)
        b->edge.ending = true;
}

static void attach(struct neighbour *b, struct link *l)
{
    b->link = l;
    b->must_ask = true;
    b->edge.ending = l->finished;
}

void edges_tick(struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++) {
        struct neighbour *b = n->edges[i];
        bool done = b->edge.state == EDGE_DONE;
        if (b->link == NULL && !done && n->now_us - b->lost_us > SILENT_US)
            members_accuse(n->members, b->edge.id, n->now_us);
        if (b->link == NULL || n->now_us - b->link->heard_us <= SILENT_US)
            continue;
        edge_pause(&b->edge, false);
        if (!done)
            members_accuse(n->members, b->edge.id, n->now_us);
    }
}

void edges_update(struct node *n)
{
    if (!n->ready || !n->has_model || n->over)
        return;
    if (!n->working && n->view != members_view(n->members)) {
        n->view = members_view(n->members);
        rebuild(n);
        tell_trainer(n);
    }
    for (size_t i = 0; i < n->n_edges && !n->over; i++) {
        struct neighbour *b = n->edges[i];
        struct link *l = b->link != NULL ? b->link : links_to(n, b->edge.id);
        if (l == NULL || l->doomed || !l->same_run) {
            dial_neighbour(n, b);
            continue;
        }
        if (b->link == NULL)
            attach(b, l);
        if (b->must_ask)
            ask(n, b);
        if (l->edge_heard) {
            l->edge_heard = false;
            (void)edge_hear(&b->edge, &l->edge);
            agree(n, b);
        }
        if (b->edge.state != EDGE_OPEN)
            continue;
        if (b->edge.resend_prev && b->edge.prev.payload != NULL)
            send_delta(n, b, &b->edge.prev);
        if (b->edge.resend_cur && b->edge.cur.payload != NULL)
            send_delta(n, b, &b->edge.cur);
        b->edge.resend_prev = b->edge.resend_cur = false;
    }
}

size_t edges_open(const struct node *n)
{
    size_t open = 0;
    for (size_t i = 0; i < n->n_edges; i++)
        open += n->edges[i]->edge.state == EDGE_OPEN;
    return open;
}
