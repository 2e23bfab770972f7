/* gossip/exchange/state.c -- saves and restores edges, sketches and codec levels in a checkpoint.
 *
 * Received deltas that are not applied yet are not saved, because the neighbour sends them again
 * (edge.h, rule 3).
 */
#include "nn/math/state.h"
#include "gossip/exchange/edge.h"

#include <string.h>

/* ---- gamma, outlier filter and codec levels ---- */

static void gamma_fields(struct gamma *g, struct state *s)
{
    state_f64(s, &g->value);
    state_bool(s, &g->fixed);
    state_bool(s, &g->begun);
    state_u32(s, &g->codecs);
    state_f64(s, &g->e2);
    state_f64(s, &g->d2);
    state_f64(s, &g->delta);
    state_f64(s, &g->most);
    state_f64(s, &g->mark);
    state_u32(s, &g->age);
    state_u32(s, &g->grown);
    state_u32(s, &g->n_runaways);
}

static void trust_fields(struct outlier_filter *t, struct state *s)
{
    state_f64(s, &t->most2);
    state_f64(s, &t->last2);
    state_f64(s, &t->pull);
    state_f64(s, &t->from2);
    state_bool(s, &t->warned);
}

void codec_levels_state(struct codec_levels *l, struct state *s)
{
    state_section(s, "ladder");
    state_u32(s, &l->rung);
    state_expect(s, l->rung < CODEC_LEVELS_RUNGS, "no such rung");
    state_u32(s, &l->n_low);
    state_u32(s, &l->n_far);
    state_u64(s, &l->after);
    state_f64(s, &l->motion2);
    state_f64(s, &l->lag2);
    state_f64(s, &l->excess);
    for (size_t i = 0; i < CODEC_LEVELS_MARKS; i++) {
        state_u64(s, &l->mark[i].round);
        state_f64(s, &l->mark[i].motion2);
        state_f64(s, &l->mark[i].lag2);
    }
    state_u32(s, &l->n_marks);
}

/* ---- sketch ---- */

static void place_fields(struct tree_aggregation_place *p, struct state *s)
{
    state_u64(s, &p->built);
    state_u32(s, &p->n);
    state_u32(s, &p->depth);
    state_u32(s, &p->reach);
    for (size_t t = 0; t < TREE_AGGREGATION_TREES; t++) {
        state_u32(s, &p->n_children[t]);
        state_bool(s, &p->root[t]);
    }
    state_bool(s, &p->lock_step);
    state_u64(s, &p->n_rounds);
    state_u64(s, &p->pace);
}

static void slot_fields(struct tree_aggregation_slot *p, struct state *s)
{
    state_u64(s, &p->index);
    state_bool(s, &p->began);
    state_u64(s, &p->round);
    state_f64(s, &p->local2);
    state_f32s(s, p->s, SKETCH_K);
    state_u32(s, &p->n_children);
    state_bool(s, &p->done);
    state_bool(s, &p->sharp);
    state_u32(s, &p->sum.n);
    state_bool(s, &p->sum.settling);
    state_f32s(s, p->sum.mean, SKETCH_K);
    state_f64(s, &p->sum.dist2);
    state_f64(s, &p->sum.norm2);
}

static void survey_fields(struct tree_aggregation *v, struct state *s)
{
    place_fields(&v->place, s);
    state_u64(s, &v->clock);
    state_u64(s, &v->heard);
    state_u64(s, &v->round);
    state_f64(s, &v->before2);
    state_u64(s, &v->before_round);
    for (size_t i = 0; i < TREE_AGGREGATION_SLOTS; i++)
        slot_fields(&v->slot[i], s);
}

static void average_fields(struct sketch_average *a, struct state *s)
{
    state_f32s(s, a->m, SKETCH_K);
    state_f64(s, &a->u);
    state_f64(s, &a->q);
}

static void figures_fields(struct sketch_figures *f, struct state *s)
{
    state_f64(s, &f->xi);
    state_f64(s, &f->relative);
    state_u64(s, &f->round);
    state_f64(s, &f->own);
    state_f64(s, &f->own_relative);
    state_u64(s, &f->own_round);
    state_u64(s, &f->own_window);
    state_u64(s, &f->own_begun);
    state_f64(s, &f->own_local2);
    state_f64(s, &f->rounding);
}

static void window_fields(struct sketch *k, struct state *s)
{
    state_bool(s, &k->open);
    state_bool(s, &k->began);
    state_u64(s, &k->view);
    state_u64(s, &k->round);
    state_u32(s, &k->window);
    state_f32s(s, k->s, SKETCH_K);
    state_f64(s, &k->local2);
    average_fields(&k->at, s);
    average_fields(&k->before[0], s);
    average_fields(&k->before[1], s);
    state_size(s, &k->mixed);
    state_u32(s, &k->beats);
    state_u32(s, &k->n_beats);
    state_f64(s, &k->momentum);
}

void sketch_state(struct sketch *k, struct state *s)
{
    state_section(s, "sketch");
    state_bool(s, &k->disturbed);
    state_bool(s, &k->beaten);
    state_u64(s, &k->last);
    state_u64(s, &k->surveyed);
    state_u64(s, &k->own_base);
    survey_fields(&k->survey, s);
    window_fields(k, s);
    state_f64(s, &k->v);
    state_f64(s, &k->q_done);
    state_u64(s, &k->round_done);
    figures_fields(&k->figures, s);
    /* Older checkpoints lack this section. */
    if (state_has(s, "sketch.mean")) {
        state_section(s, "sketch.mean");
        state_f64(s, &k->mean2_done);
    }
}

static void survey_pair_fields(struct tree_aggregation_pair *p, struct state *s)
{
    for (size_t t = 0; t < TREE_AGGREGATION_TREES; t++) {
        uint32_t role = p->role[t];
        state_u32(s, &role);
        state_expect(s, role <= TREE_AGGREGATION_CHILD,
                     "unknown role of a neighbour in a spanning tree");
        if (role <= TREE_AGGREGATION_CHILD)
            p->role[t] = (enum tree_aggregation_role)role;
    }
    state_u64(s, &p->built);
    for (size_t i = 0; i < TREE_AGGREGATION_SLOTS; i++) {
        state_u64(s, &p->got[i]);
        state_u64(s, &p->sent[i]);
    }
    state_u64(s, &p->told);
    state_u64(s, &p->quiet);
}

static void pair_fields(struct sketch_pair *p, struct state *s)
{
    state_f32s(s, p->a, SKETCH_K);
    state_f32s(s, p->b, SKETCH_K);
    state_u32(s, &p->window);
    state_u32(s, &p->round);
    survey_pair_fields(&p->survey, s);
}

/* ---- edge ---- */

static void head_fields(struct wire_delta *h, struct state *s)
{
    state_u64(s, &h->epoch);
    state_u64(s, &h->round);
    state_u64(s, &h->run_round);
    /* The weights `more` and `degree` of a delta are stored as one number, as in a DELTA
     * message. */
    uint32_t share = h->more << WIRE_MORE_BITS | h->degree;
    state_u32(s, &share);
    h->degree = share & ((1u << WIRE_MORE_BITS) - 1);
    h->more = share >> WIRE_MORE_BITS;
    state_u32(s, &h->codec);
    state_expect(s, h->codec < DELTA_CODECS, "no such codec");
    state_f32(s, &h->x2);
    state_f32(s, &h->e2);
    state_u32(s, &h->momentum);
    state_expect(s, h->momentum < WIRE_MOMENTUM_ONE, "an invalid momentum");
    state_u64(s, &h->hash);
    state_u32(s, &h->settled);
}

static void message_fields(struct sketch_message *m, struct state *s)
{
    state_u64(s, &m->tag);
    state_f32(s, &m->u);
    state_f32(s, &m->q);
    state_size(s, &m->n);
    state_expect(s, m->n <= SKETCH_BYTES_MAX, "a sketch too long");
    if (!s->failed)
        state_bytes(s, m->bytes, m->n);
}

/* Returns the index in payload[0..n) of the payload of this delta. n: the delta has no payload. */
static uint64_t place_of(const struct edge_sent *d, struct packet *const *payload, size_t n)
{
    uint64_t at = 0;
    while (at < n && payload[at] != d->payload)
        at++;
    return at;
}

static void sent_fields(struct edge_sent *d, struct packet *const *payload, size_t n,
                        struct state *s)
{
    uint64_t at = place_of(d, payload, n);
    state_u64(s, &at);
    state_expect(s, at <= n, "no such delta");
    if (at >= n || s->failed)
        return;
    if (s->reading) {
        d->payload = payload[at];
        packet_hold(d->payload);
    }
    head_fields(&d->head, s);
    message_fields(&d->sketch, s);
}

void edge_fields(struct edge *e, struct packet *const *payload, size_t n, struct state *s)
{
    uint8_t id[WIRE_ID_BYTES];
    memcpy(id, e->id, sizeof id);
    state_bytes(s, id, sizeof id);
    state_expect(s, memcmp(id, e->id, sizeof id) == 0, "an edge that leads to another member");
    state_u64(s, &e->epoch);
    state_u64(s, &e->round);
    state_bool(s, &e->opened);
    state_bool(s, &e->reset);
    state_u32(s, &e->settled);
    state_u64(s, &e->run_round);
    state_u64(s, &e->n_exchanges);
    state_u64(s, &e->n_resets);
    gamma_fields(&e->gamma, s);
    trust_fields(&e->trust, s);
    pair_fields(&e->sketch, s);
    sent_fields(&e->cur, payload, n, s);
    sent_fields(&e->prev, payload, n, s);
    e->restored = s->reading;
    /* If the checkpoint has no delta of this peer for the current epoch, this peer made its first
     * delta after the checkpoint. The neighbour may have applied that delta, and this peer cannot
     * send it again. The edge is therefore reset. */
    if (s->reading && e->cur.payload == NULL && e->prev.payload == NULL)
        e->epoch = 0;
}
