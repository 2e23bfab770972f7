#include "gossip/mixers/choco.h"

#include "nn/math/rng.h"
#include "topology/topology.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 2048 /* Floats: x, a and b of a block stay in L1 and L2. */
};

static const double kBesideShare = 0.05;

uint64_t choco_every(size_t n_bytes, size_t message)
{
    double k = (double)n_bytes / (kBesideShare * (double)message);
    return k > 1 ? (uint64_t)ceil(k) : 1;
}

static int open_all(struct choco *c, const struct choco_config *config)
{
    size_t n_trained = 0, dim = segments_trained(config->segments, config->n_segments);
    while (n_trained < config->n_segments && config->segments[n_trained].trained)
        n_trained++;
    *c = (struct choco){.dim = dim,
                        .mixer = config->mixer != NULL ? config->mixer : mixer_all[0],
                        .fixed_gamma = config->fixed_gamma,
                        .draw_key = config->draw_key};
    int err = statistics_init(&c->statistics, config->segments, config->n_segments);
    if (err != 0)
        return err;
    c->n_floats = dim + c->statistics.n;
    c->x = calloc(c->n_floats, sizeof *c->x);
    c->x0 = calloc(c->n_floats, sizeof *c->x0);
    if (c->x == NULL || c->x0 == NULL)
        return -ENOMEM;
    for (int i = 0; i < DELTA_CODECS; i++) {
        if (config->spec[i] == NULL)
            continue;
        err = compress_open(&c->codec[i], config->spec[i], config->segments, n_trained);
        if (err != 0)
            return err;
        size_t bound = compress_bound(c->codec[i]);
        c->cap = bound > c->cap ? bound : c->cap;
    }
    c->cap += statistics_bound(&c->statistics);
    packet_pool_init(&c->pool, c->cap);
    c->remembers = c->mixer->updates && config->error_feedback;
    c->average.lazy = config->lazy ? 0.5 : 1;
    err = c->mixer->open != NULL ? c->mixer->open(c) : 0;
    if (err != 0)
        return err;
    return sketch_init(&c->sketch, config->run_seed, dim);
}

int choco_init(struct choco *c, const struct choco_config *config)
{
    int err = open_all(c, config);
    if (err != 0)
        choco_close(c);
    return err;
}

static void half_free(struct half *h)
{
    free(h->v);
    free(h->memory);
    free(h);
}

void choco_close(struct choco *c)
{
    for (int i = 0; i < DELTA_CODECS; i++)
        compress_close(c->codec[i]);
    sketch_close(&c->sketch);
    statistics_close(&c->statistics);
    packet_pool_close(&c->pool);
    while (c->free_halves != NULL) {
        struct half *h = c->free_halves;
        c->free_halves = h->next;
        half_free(h);
    }
    free(c->average.u);
    free(c->average.withheld);
    free(c->average.sum);
    free(c->turn);
    free(c->term);
    free(c->x);
    free(c->x0);
}

static struct half *half_new(const struct choco *c)
{
    struct half *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->v = malloc(c->dim * sizeof *h->v);
    if (c->remembers)
        h->memory = malloc(c->dim * sizeof *h->memory);
    if (h->v != NULL && (h->memory != NULL || !c->remembers))
        return h;
    half_free(h);
    return NULL;
}

/* Its floats are whatever they were. */
static struct half *half_get(struct choco *c)
{
    struct half *h = c->free_halves;
    if (h != NULL)
        c->free_halves = h->next;
    else if ((h = half_new(c)) == NULL)
        return NULL;
    h->refs = 1;
    h->next = c->halves;
    c->halves = h;
    return h;
}

static void half_put(struct choco *c, struct half *h)
{
    if (h == NULL)
        return;
    assert(h->refs > 0);
    if (--h->refs > 0)
        return;
    struct half **at = &c->halves;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    h->next = c->free_halves;
    c->free_halves = h;
}

int choco_edge_open(struct choco *c, struct edge *e, const uint8_t self[WIRE_ID_BYTES],
                    const uint8_t other[WIRE_ID_BYTES])
{
    int err = edge_init(e, self, other, c->cap);
    if (err != 0)
        return err;
    gamma_init(&e->gamma, c->fixed_gamma);
    sketch_lane_init(&e->lane);
    e->b = malloc(c->dim * sizeof *e->b);
    if (e->b != NULL)
        return 0;
    edge_close(e);
    return -ENOMEM;
}

void choco_edge_close(struct choco *c, struct edge *e)
{
    half_put(c, e->a);
    e->a = NULL;
    free(e->b);
    e->b = NULL;
    edge_close(e);
}

int choco_turns(struct choco *c, size_t n)
{
    if (n > c->cap_turns) {
        struct choco_turn *turn = realloc(c->turn, n * sizeof *turn);
        if (turn == NULL)
            return -ENOMEM;
        c->turn = turn;
        struct choco_term *term = realloc(c->term, n * sizeof *term);
        if (term == NULL)
            return -ENOMEM;
        c->term = term;
        c->cap_turns = n;
    }
    if (n > 0)
        memset(c->turn, 0, n * sizeof *c->turn);
    c->n_turns = n;
    return 0;
}

/* All edges that begin anew in this job share one half. */
static int plan_resets(struct choco *c)
{
    struct half *h = NULL;
    for (size_t i = 0; i < c->n_turns; i++) {
        struct choco_turn *t = &c->turn[i];
        struct edge *e = t->edge;
        if (!e->reset)
            continue;
        assert(!t->commit);
        t->fresh_half = h == NULL;
        if (h != NULL)
            h->refs++;
        else if ((h = half_get(c)) == NULL)
            return -ENOMEM;
        half_put(c, e->a);
        e->a = h;
        e->reset = false;
        t->fresh = true;
        gamma_init(&e->gamma, c->fixed_gamma);
        sketch_lane_init(&e->lane);
    }
    return 0;
}

/* Do turns i and j commit the same delta to the same half? */
static bool same_commit(const struct choco *c, size_t i, size_t j)
{
    const struct choco_turn *s = &c->turn[i], *t = &c->turn[j];
    return s->commit && t->commit && s->edge->a == t->edge->a && s->ours.payload == t->ours.payload;
}

/* The committing group of turn i leaves its half to those who still wait, and
 * goes on with a copy, unless it is all that holds the half. */
static int plan_commit(struct choco *c, size_t i)
{
    struct half *h = c->turn[i].edge->a, *to = h;
    uint32_t group = 0;
    for (size_t j = i; j < c->n_turns; j++)
        group += same_commit(c, i, j);
    if (group < h->refs) {
        if ((to = half_get(c)) == NULL)
            return -ENOMEM;
        to->refs = group;
        c->turn[i].source = h; /* Held until the job is done. */
        h->refs++;
    }
    c->turn[i].applies = true;
    for (size_t j = i; j < c->n_turns; j++)
        if (same_commit(c, i, j))
            c->turn[j].half = to;
    return 0;
}

/* After the halves are settled: one encoder for each (half, codec), with
 * statistics or without. */
static int plan_encode(struct choco *c, size_t i)
{
    struct choco_turn *t = &c->turn[i];
    for (size_t j = 0; j < i; j++)
        if (c->turn[j].encode && c->turn[j].half == t->half && c->turn[j].codec == t->codec
            && c->turn[j].statistics == t->statistics) {
            t->made = c->turn[j].made;
            packet_hold(t->made);
            return 0;
        }
    t->made = packet_get(&c->pool);
    t->encodes = true;
    return t->made != NULL ? 0 : -ENOMEM;
}

/* Copy out of the edge what the worker needs of it. */
static void take_turn(struct choco_turn *t)
{
    struct edge *e = t->edge;
    t->epoch = e->epoch;
    t->round = e->round;
    if (!t->commit)
        return;
    t->ours = e->cur;
    packet_hold(t->ours.payload);
    t->theirs = *edge_theirs(e);
    t->theirs.bytes = edge_take(e);
}

static void drop_packets(struct choco *c)
{
    for (size_t i = 0; i < c->n_turns; i++) {
        packet_release(c->turn[i].ours.payload);
        packet_release(c->turn[i].made);
    }
    c->n_turns = 0;
}

int choco_plan(struct choco *c, const struct choco_intent *intent)
{
    size_t n = c->n_turns;
    c->run_round = intent->run_round;
    c->degree = intent->degree;
    c->settled = intent->settled;
    c->diverged = false;
    for (size_t i = 0; i < n; i++)
        take_turn(&c->turn[i]);
    int err = plan_resets(c);
    for (size_t i = 0; i < n && err == 0; i++)
        if (c->turn[i].commit && c->turn[i].half == NULL)
            err = plan_commit(c, i);
    for (size_t i = 0; i < n && err == 0; i++) {
        struct choco_turn *t = &c->turn[i];
        struct half *was = t->edge->a;
        if (t->half != NULL && t->half != was) {
            t->edge->a = t->half; /* Its refs are the group's size already. */
            half_put(c, was);
        }
        t->half = t->edge->a;
        if (t->encode)
            err = plan_encode(c, i);
    }
    if (err != 0)
        drop_packets(c);
    return err;
}

bool choco_valid(const struct choco *c, uint32_t codec, const uint8_t *payload, size_t len)
{
    size_t head = statistics_check(&c->statistics, payload, len);
    return head != SIZE_MAX && c->codec[codec] != NULL
           && compress_validate(c->codec[codec], payload + head, len - head);
}

void choco_apply(const struct choco *c, uint32_t codec, const uint8_t *payload, size_t len,
                 float *x_hat)
{
    size_t head = statistics_length(&c->statistics, payload);
    compress_apply(c->codec[codec], payload + head, len - head, x_hat);
}

/* The rungs of the ladder are one codec to gamma: they differ by a factor in
 * what they carry, which its bounds follow. */
static uint32_t family(uint32_t codec)
{
    return codec < DELTA_RUNG ? codec : DELTA_RUNG;
}

/* The coefficient of a committing edge: both ends compute the same step from
 * the two deltas alone, as they do the weight. */
static double coefficient(struct choco_turn *t)
{
    const struct wire_delta *own = &t->ours.head, *other = &t->theirs.head;
    uint32_t i = family(own->codec), j = family(other->codec);
    uint32_t lo = i < j ? i : j, hi = i < j ? j : i;
    struct gamma_exchange x = {.x2_own = (double)own->x2,
                               .e2_own = (double)own->e2,
                               .x2_other = (double)other->x2,
                               .e2_other = (double)other->e2,
                               .codecs = lo * DELTA_CODECS + hi};
    return t->w * gamma_next(&t->edge->gamma, &x);
}

void choco_mix_terms(float *x, size_t dim, struct choco_term *term, size_t n)
{
    for (size_t o = 0; o < dim; o += BLOCK) {
        size_t len = dim - o < BLOCK ? dim - o : BLOCK;
        for (struct choco_term *t = term; t < term + n; t++) {
            vec_add_diff(x + o, t->coefficient, t->b + o, t->a + o, len);
            t->d2 += vec_dist2(t->b + o, t->a + o, len);
        }
    }
}

/* Bring every replica of this job to where the plan wants it. */
static void apply_deltas(struct choco *c)
{
    size_t n_bytes = c->dim * sizeof *c->x;
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        if (t->fresh_half)
            memcpy(t->half->v, c->x0, n_bytes);
        if (t->fresh)
            memcpy(t->edge->b, c->x0, n_bytes);
        if (t->source != NULL)
            memcpy(t->half->v, t->source->v, n_bytes);
        if (t->applies)
            choco_apply(c, t->ours.head.codec, t->ours.payload->bytes, t->ours.payload->len,
                        t->half->v);
        if (t->commit)
            choco_apply(c, t->theirs.head.codec, t->theirs.bytes, t->theirs.n_bytes, t->edge->b);
    }
}

/* Models move towards replicas, but for exchanges of updates. */
static size_t gossip_terms(struct choco *c)
{
    size_t n = 0;
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        if (!t->commit || choco_is_update(c, t->ours.head.codec)
            || choco_is_update(c, t->theirs.head.codec))
            continue;
        c->term[n++] = (struct choco_term){
            .a = t->half->v, .b = t->edge->b, .coefficient = (float)coefficient(t), .turn = t};
    }
    return n;
}

/* What the mixing pass found of one edge. */
static void measure(const struct choco *c, const struct choco_term *t)
{
    struct gamma *g = &t->turn->edge->gamma;
    if (gamma_measured(g, t->d2))
        (void)gamma_judge(g, vec_norm2(t->a, c->dim) + vec_norm2(t->b, c->dim));
}

void choco_mix(struct choco *c)
{
    apply_deltas(c);
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        if (!t->commit)
            continue;
        t->w = topology_weight(t->ours.head.degree, t->theirs.head.degree);
        sketch_mix(&c->sketch, &t->edge->lane, t->w, &t->ours.sketch, &t->theirs.sketch);
        statistics_term(&c->statistics, t->w, t->ours.payload->bytes, t->theirs.bytes);
    }
    statistics_mix(&c->statistics, c->x + c->dim);
    size_t n = gossip_terms(c);
    choco_mix_terms(c->x, c->dim, c->term, n);
    c->local2 = n > 0 ? 0 : c->local2;
    for (size_t i = 0; i < n; i++) {
        measure(c, &c->term[i]);
        c->local2 += c->term[i].d2;
    }
    if (c->mixer->mix != NULL)
        c->mixer->mix(c);
}

/* Of both replicas, the same at both ends. Never 0. */
static uint64_t replicas_hash(const struct choco *c, const struct choco_turn *t)
{
    uint64_t a = vec_hash(t->half->v, c->dim);
    uint64_t b = vec_hash(t->edge->b, c->dim);
    return t->edge->low ? rng_at(a, b) | 1 : rng_at(b, a) | 1;
}

/* Turn i and all that share its payload. */
static void encode_group(struct choco *c, size_t i)
{
    struct choco_turn *t = &c->turn[i];
    struct compress_stat stat;
    struct compress_input in = {.draw = rng_at(rng_at(c->draw_key, c->run_round), i),
                                .round = c->run_round,
                                .x = c->x,
                                .x_hat = t->half->v};
    if (choco_is_update(c, t->codec))
        c->mixer->source(c, t, &in);
    const float *statistics = c->x + c->dim;
    size_t len, head = statistics_put(&c->statistics, t->statistics, statistics, t->made->bytes);
    int err = compress_encode(c->codec[t->codec], &in, t->made->bytes + head, &len, &stat);
    if (err != 0 || !isfinite((float)stat.x2) || !statistics_proper(&c->statistics, statistics)) {
        c->diverged = true;
        return;
    }
    t->made->len = head + len;
    for (size_t j = i; j < c->n_turns; j++)
        if (c->turn[j].made == t->made) {
            c->turn[j].sent.head.x2 = (float)stat.x2;
            c->turn[j].sent.head.e2 = (float)stat.e2;
        }
}

void choco_encode(struct choco *c)
{
    if (c->mixer->before != NULL)
        c->mixer->before(c);
    for (size_t i = 0; i < c->n_turns; i++) {
        struct choco_turn *t = &c->turn[i];
        if (!t->encode)
            continue;
        if (t->encodes)
            encode_group(c, i);
        struct wire_delta *h = &t->sent.head;
        h->epoch = t->epoch;
        h->round = t->round + t->commit;
        h->run_round = c->run_round;
        h->degree = c->degree;
        h->settled = c->settled;
        h->codec = t->codec;
        if (h->round > 0 && h->round % CHOCO_HASH_EVERY == 0)
            h->hash = replicas_hash(c, t);
        if (t->sketch)
            sketch_put(&c->sketch, &t->edge->lane, &t->sent.sketch);
    }
    if (c->mixer->after != NULL)
        c->mixer->after(c);
}

/* The replicas were compared in this exchange and differ. */
static bool mismatch(const struct choco_turn *t)
{
    uint64_t own = t->ours.head.hash, other = t->theirs.head.hash;
    return own != 0 && other != 0 && own != other;
}

void choco_finish(struct choco *c)
{
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        struct edge *e = t->edge;
        if (t->source != NULL)
            half_put(c, t->source);
        bool current = e->epoch == t->epoch && !e->reset;
        if (t->commit && current) {
            e->n_mismatches += mismatch(t);
            edge_advance(e);
        }
        packet_release(t->ours.payload);
        if (t->encode && current && !c->diverged) {
            assert(e->cur.payload == NULL);
            e->cur = t->sent;
            e->cur.payload = t->made;
            e->resend_cur = true; /* It has to go out. */
        } else {
            packet_release(t->made);
        }
    }
    c->n_turns = 0;
}
