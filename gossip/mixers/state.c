/* gossip/mixers/state.c -- saves and restores a peer's exchange state in a checkpoint.
 *
 * Edges share replicas and payloads. Which edges share an object decides how sums are rounded, so
 * a restored run must share in the same way. Each shared object is therefore written once, and an
 * edge stores the indices of its objects:
 *
 *   replica.0, replica.1, ...   delta.0, delta.1, ...   edge.0: "replica 0, cur 1, prev 0"
 */
#include "nn/math/state.h"
#include "gossip/mixers/mixing.h"

#include <stdlib.h>

/* ---- the model ---- */

static void statistics_state(struct statistics *t, const float *x, struct state *s)
{
    if (t->n == 0)
        return;
    state_section(s, "statistics");
    state_f64(s, &t->apart2);
    state_f64(s, &t->size2);
    state_floats(s, t->owed, t->n, "statistics.owed");
    state_expect(s, !s->reading || statistics_proper(t, x),
                 "a running statistic is not finite or out of range");
    for (size_t i = 0; s->reading && i < t->n; i++)
        state_expect(s, t->owed[i] >= 0, "a stored correction of a running statistic is negative");
}

void mixing_state(struct mixing *m, struct state *s)
{
    state_floats(s, m->x, m->n_floats, "model");
    state_section(s, "mixing");
    state_f64(s, &m->local2);
    if (m->pull > 0 || m->trigger > 0)
        state_f64(s, &m->step2);
    statistics_state(&m->statistics, m->x + m->dim, s);
    sketch_state(&m->sketch, s);
    if (m->mixer->state != NULL)
        m->mixer->state(m, s);
}

/* ---- objects that edges share ---- */

struct shared
{
    struct replica **replica;
    /* Distinct payloads of the own deltas of all edges, at most two per edge. */
    struct packet **payload;
    uint64_t n_replicas, n_payloads;
};

static uint64_t replica_place(const struct shared *h, const struct replica *r)
{
    uint64_t at = 0;
    while (at < h->n_replicas && h->replica[at] != r)
        at++;
    return at;
}

static void share_payload(struct shared *h, struct packet *p)
{
    uint64_t at = 0;
    while (at < h->n_payloads && h->payload[at] != p)
        at++;
    if (at == h->n_payloads && p != NULL)
        h->payload[h->n_payloads++] = p;
}

/* Collects the distinct replicas and payloads of all edges, before a checkpoint is written. */
static void collect(struct shared *h, struct edge *const *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (e[i]->a != NULL && replica_place(h, e[i]->a) == h->n_replicas)
            h->replica[h->n_replicas++] = e[i]->a;
        share_payload(h, e[i]->cur.payload);
        share_payload(h, e[i]->prev.payload);
    }
}

static void replica_state(struct mixing *m, struct replica *r, uint64_t i, struct state *s)
{
    state_floats(s, r->v, m->replicas.dim, "replica.%llu", (unsigned long long)i);
    if (m->replicas.with_memory)
        state_floats(s, r->memory, m->dim, "replica.%llu.memory", (unsigned long long)i);
}

static void payload_state(struct mixing *m, struct packet *p, uint64_t i, struct state *s)
{
    state_section(s, "delta.%llu", (unsigned long long)i);
    state_size(s, &p->len);
    state_expect(s, p->len <= m->cap, "a delta too long");
    if (!s->failed)
        state_bytes(s, p->bytes, p->len);
}

/* Saves or restores the replicas and payloads that edges share. After a restore, *h holds one
 * reference to each replica and payload. The caller drops these references when the edges hold
 * references of their own. */
static void shared_state(struct mixing *m, struct shared *h, size_t n, struct state *s)
{
    uint64_t n_replicas = h->n_replicas, n_payloads = h->n_payloads;
    state_section(s, "edges");
    state_u64(s, &n_replicas);
    state_u64(s, &n_payloads);
    state_expect(s, n_replicas <= n && n_payloads <= 2 * n,
                 "more replicas or deltas than the edges can have");
    for (uint64_t i = 0; i < n_replicas && !s->failed; i++) {
        if (s->reading && (h->replica[i] = replica_get(&m->replicas)) == NULL) {
            state_no_memory(s);
            return;
        }
        h->n_replicas = i + 1 > h->n_replicas ? i + 1 : h->n_replicas;
        replica_state(m, h->replica[i], i, s);
    }
    for (uint64_t i = 0; i < n_payloads && !s->failed; i++) {
        if (s->reading && (h->payload[i] = packet_get(&m->packets)) == NULL) {
            state_no_memory(s);
            return;
        }
        h->n_payloads = i + 1 > h->n_payloads ? i + 1 : h->n_payloads;
        payload_state(m, h->payload[i], i, s);
    }
}

static void release(struct mixing *m, struct shared *h)
{
    for (uint64_t i = 0; i < h->n_replicas; i++)
        replica_release(&m->replicas, h->replica[i]);
    for (uint64_t i = 0; i < h->n_payloads; i++)
        packet_release(h->payload[i]);
}

/* ---- edges ---- */

/* This peer's own deltas are later applied without a further check, so they are validated here. */
static void check_sent(const struct mixing *m, const struct edge_sent *d, struct state *s)
{
    if (!s->failed && d->payload != NULL)
        state_expect(s, mixing_valid(m, d->head.codec, d->payload->bytes, d->payload->len),
                     "a delta that cannot be decoded");
}

static void velocity_state(struct mixing *m, struct edge *e, size_t i, struct state *s)
{
    bool moves = e->velocity != NULL;
    state_section(s, "edge.%zu.momentum", i);
    state_bool(s, &moves);
    if (moves && e->velocity == NULL && !s->failed
        && (e->velocity = calloc(m->dim, sizeof *e->velocity)) == NULL)
        state_no_memory(s);
    if (moves && !s->failed)
        state_floats(s, e->velocity, m->dim, "edge.%zu.velocity", i);
}

static void one_edge(struct mixing *m, struct edge *e, size_t i, struct shared *h, struct state *s)
{
    uint64_t at = replica_place(h, e->a);
    state_section(s, "edge.%zu", i);
    state_u64(s, &at);
    state_expect(s, at <= h->n_replicas, "no such replica");
    edge_fields(e, h->payload, h->n_payloads, s);
    check_sent(m, &e->cur, s);
    check_sent(m, &e->prev, s);
    if (s->reading && !s->failed && at < h->n_replicas) {
        e->a = h->replica[at];
        e->a->refs++;
    }
    state_expect(s, e->reset || e->epoch == 0 || e->a != NULL, "an edge without a replica");
    if (e->a != NULL && !s->failed)
        state_floats(s, e->b, m->replicas.dim, "edge.%zu.replica", i);
    velocity_state(m, e, i, s);
    if (e->flow != NULL && !s->failed)
        state_floats(s, e->flow, m->dim, "edge.%zu.flow", i);
}

void mixing_edges_state(struct mixing *m, struct edge *const *e, size_t n, struct state *s)
{
    struct shared h = {.replica = calloc(n + 1, sizeof(struct replica *)),
                       .payload = calloc(2 * n + 1, sizeof(struct packet *))};
    if (h.replica == NULL || h.payload == NULL) {
        state_no_memory(s);
    } else {
        if (!s->reading)
            collect(&h, e, n);
        shared_state(m, &h, n, s);
        for (size_t i = 0; i < n && !s->failed; i++)
            one_edge(m, e[i], i, &h, s);
        if (s->reading)
            release(m, &h);
    }
    free(h.replica);
    free(h.payload);
}
