/* peer/sim/attacker.c -- the mixer of a Byzantine member: CHOCO-SGD with false deltas and false
 * consensus distances. */
#include "peer/sim/attack.h"

#include "gossip/mixers/choco.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/vec.h"
#include "peer/node/inspect.h"
#include "peer/sim/state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct attacker
{
    /* Must be the first field: of() converts the `mixer` pointer of struct mixing to this
     * struct. */
    struct mixer mixer;
    struct sim_world *world;
    uint32_t peer;
    const float **honest; /* Scratch array of n_peers pointers to models. */
    float *claim;         /* Scratch memory for one claimed model. */
};

static struct attacker *of(const struct mixing *m)
{
    return (struct attacker *)(uintptr_t)m->mixer;
}

/* ---- knowledge of the attacker ---- */

static struct sim_peer *peer_of(struct sim_world *w, const uint8_t *id)
{
    for (uint32_t i = 0; i < w->config.n_peers; i++)
        if (memcmp(w->peers[i].id, id, WIRE_ID_BYTES) == 0)
            return &w->peers[i];
    return NULL;
}

static bool lies(const struct sim_world *w, const struct sim_peer *p)
{
    return w->config.liar[p->index];
}

/* Returns the model of a peer, or NULL if the peer has no model. With an attack the simulator
 * uses one thread, so no other job changes a model now. */
static const float *model_of(const struct sim_peer *p)
{
    const struct segment *segments;
    size_t n_segments, n_params;
    return p != NULL && p->node != NULL ? node_model(p->node, &segments, &n_segments, &n_params)
                                        : NULL;
}

/* Collects the models of peer p's honest neighbours in a->honest and returns their number.
 * *n_liars: number of p's neighbours that are attackers. */
static size_t honest_around(struct attacker *a, const struct sim_peer *p, size_t *n_liars)
{
    size_t n = 0;
    *n_liars = 0;
    for (size_t i = 0; i < node_n_edges(p->node); i++) {
        struct node_edge e;
        node_edge(p->node, i, &e);
        const struct sim_peer *other = peer_of(a->world, e.id);
        const float *x = model_of(other);
        if (other != NULL && lies(a->world, other))
            ++*n_liars;
        else if (x != NULL)
            a->honest[n++] = x;
    }
    return n;
}

/* ---- the mixer ---- */

static int open_liar(struct mixing *m, const struct mixing_config *config)
{
    struct attacker *a = of(m);
    (void)config;
    free(a->claim);
    a->claim = malloc(m->dim * sizeof *a->claim);
    return a->claim != NULL ? 0 : -ENOMEM;
}

static void close_liar(struct mixing *m)
{
    (void)m; /* Nothing to free here: attacker_free() frees a->claim. */
}

/* Applies a delta only if it decodes, because the attacker's own deltas may be invalid. */
static void apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica)
{
    if (mixing_decodes(m, codec, message, n))
        mixing_add(m, codec, message, n, replica);
}

static void mix(struct mixing *m)
{
    struct attacker *a = of(m);
    size_t n_liars, n = honest_around(a, &a->world->peers[a->peer], &n_liars);
    for (size_t k = 0; k < m->dim && n > 0; k++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)a->honest[i][k];
        m->x[k] = (float)(sum / (double)n);
    }
}

static enum attack_lie lie_of(const struct attacker *a)
{
    return a->world->config.attack->lie;
}

/* Fills `s`, a sketch of SKETCH_K values, with noise of expected norm `length`, new in each
 * round. */
static void draw_sketch(const struct attacker *a, const struct mixing *m, double length, float *s)
{
    struct rng rng = rng_stream(
        rng_key(a->world->config.seed, RNG_NETWORK, a->peer + 1, m->announced.run_round + 1));
    for (size_t k = 0; k < SKETCH_K; k++)
        s[k] = (float)(length / sqrt(SKETCH_K) * rng_normal(&rng));
}

/* Returns the false round number that the attack ATTACK_ROUNDS announces: at least the number of
 * training rounds of the run. */
static uint64_t false_round(const struct attacker *a, uint64_t round)
{
    uint64_t all = a->world->config.run.rounds;
    return round > all ? round : all;
}

/* Overwrites the estimates of the consensus distance in the attacker's node: the averages that
 * neighbours exchange, and the sums of the tree aggregation. The node then sends these false
 * values. */
static void lie_of_drift(struct attacker *a, struct mixing *m)
{
    bool noise = lie_of(a) == ATTACK_SKETCH, none = lie_of(a) == ATTACK_SETTLED;
    struct sketch *k = &m->sketch;
    double length = 10 * sqrt(vec_norm2(m->x, m->dim));
    if (noise)
        draw_sketch(a, m, length, k->at.m);
    k->at.u = none ? 0 : noise ? length * length : k->at.u;
    for (size_t i = 0; i < TREE_AGGREGATION_SLOTS && (noise || none); i++) {
        struct tree_aggregation_sum *sum = &k->survey.slot[i].sum;
        if (noise)
            draw_sketch(a, m, length, sum->mean);
        sum->dist2 = none ? 0 : length * length;
    }
}

/* Returns the model that the attacker claims to have on one edge, the edge of the task `t`. If the
 * victim has no model, or the attack claims none, returns the attacker's own model. */
static const float *claim_to(struct attacker *a, struct mixing *m, const struct mixing_task *t)
{
    const struct sim_config *c = &a->world->config;
    const struct sim_peer *victim = peer_of(a->world, t->edge->id);
    struct attack_scene s = {
        .own = m->x,
        .victim = model_of(victim),
        .honest = a->honest,
        .dim = m->dim,
        .key = rng_key(c->seed, RNG_NETWORK, a->peer + 1, m->announced.run_round + 1),
        .fixed = rng_key(c->seed, RNG_NETWORK, a->peer + 1, 0)};
    if (s.victim == NULL || c->attack->claim == NULL)
        return m->x;
    s.n = honest_around(a, victim, &s.n_liars);
    s.n_liars = s.n_liars > 0 ? s.n_liars : 1;
    c->attack->claim(&s, a->claim);
    return a->claim;
}

static void encode(struct mixing *m)
{
    struct attacker *a = of(m);
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++) {
        if (!t->encodes)
            continue;
        mixing_put(m, t, claim_to(a, m, t), t->replica->v);
        size_t n = mixing_made(m, t).n;
        if (a->world->config.attack->claim == NULL)
            memset(t->made->bytes + t->made->len - n, 0xff, n);
    }
    /* mixing_encode() encodes sketches and distances after this function returns, so the false
     * values must be set here. */
    lie_of_drift(a, m);
    for (size_t i = 0; i < m->n_tasks && lie_of(a) == ATTACK_MUTE; i++)
        m->task[i].sketch = false;
    if (lie_of(a) == ATTACK_ROUNDS)
        m->announced.run_round = false_round(a, m->announced.run_round);
    /* The attacks ATTACK_SETTLED, ATTACK_MUTE and ATTACK_SKETCH announce that the consensus
     * distance of all peers around the attacker is under the target. So this announcement never
     * delays the end of the run. ATTACK_MUTE and ATTACK_SKETCH delay the end only because their
     * sketches (random projections of the model) are missing or false. */
    if (lie_of(a) == ATTACK_SETTLED || lie_of(a) == ATTACK_MUTE || lie_of(a) == ATTACK_SKETCH)
        m->announced.settled = SCHEDULE_FAR;
    if (lie_of(a) == ATTACK_UNSETTLED)
        m->announced.settled = 0;
}

/* ---- messages ---- */

static size_t put_false_round(const struct attacker *a, struct wire_message *m, uint8_t *out,
                              size_t cap)
{
    switch (m->type) {
    case WIRE_HELLO:
        if (m->hello.has_started)
            m->hello.round = false_round(a, m->hello.round);
        return wire_put_hello(out, cap, &m->hello);
    case WIRE_PING:
        m->ping.round = false_round(a, m->ping.round);
        return wire_put_ping(out, cap, &m->ping);
    case WIRE_BEAT:
        m->beat.run_round = false_round(a, m->beat.run_round);
        return wire_put_beat(out, cap, &m->beat);
    case WIRE_EDGE:
        m->edge.run_round = false_round(a, m->edge.run_round);
        return wire_put_edge(out, cap, &m->edge);
    case WIRE_NONE:
    case WIRE_MEMBERS:
    case WIRE_EDGE_CLOSE:
    case WIRE_DELTA:
    case WIRE_MODEL_REQ:
    case WIRE_MODEL:
    case WIRE_STATUS_REQ:
    case WIRE_STATUS:
    case WIRE_PROBE:
    case WIRE_HEARD:
    case WIRE_REFUSED:
    case WIRE_PART:
    case WIRE_MOMENTS:
    case WIRE_ROUND_PROTOCOL:
    case WIRE_CALLBACK:
    case WIRE_FINISH:
    case WIRE_TYPE_END:
        break;
    }
    return 0;
}

/* Forges control messages of the attack ATTACK_ROUNDS. Deltas need no forging, because encode()
 * announces the false round in them. Model requests and models are not forged, because the
 * attacker would then have to serve a model of the false round. */
uint8_t *attacker_forge(const struct attacker *a, uint8_t *bytes, size_t *n)
{
    static struct wire_batch batch;
    struct wire_message m;
    struct node_progress p;
    if (lie_of(a) != ATTACK_ROUNDS || *n > WIRE_CONTROL_MAX)
        return bytes;
    node_progress(a->world->peers[a->peer].node, &p);
    if (p.phase == NODE_JOINING || !wire_read(bytes, *n, &batch, &m))
        return bytes;
    uint8_t *out = malloc(WIRE_CONTROL_MAX);
    if (out == NULL)
        abort();
    size_t len = put_false_round(a, &m, out, WIRE_CONTROL_MAX);
    if (len == 0) {
        free(out);
        return bytes;
    }
    free(bytes);
    *n = len;
    return out;
}

struct attacker *attacker_new(struct sim_world *w, uint32_t peer)
{
    struct attacker *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    *a = (struct attacker){.mixer = mixer_choco, .world = w, .peer = peer};
    a->mixer.name = "liar";
    a->mixer.own_deltas = true;
    a->mixer.parts = false;
    a->mixer.open = open_liar;
    a->mixer.close = close_liar;
    a->mixer.apply = apply;
    a->mixer.mix = mix;
    a->mixer.encode = encode;
    a->honest = calloc(w->config.n_peers, sizeof *a->honest);
    if (a->honest != NULL)
        return a;
    attacker_free(a);
    return NULL;
}

void attacker_free(struct attacker *a)
{
    if (a == NULL)
        return;
    free(a->honest);
    free(a->claim);
    free(a);
}

const struct mixer *attacker_mixer(const struct attacker *a)
{
    return &a->mixer;
}
