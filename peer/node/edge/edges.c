/* peer/node/edge/edges.c -- chooses the edges of this peer, opens and closes them, and handles
 * their messages. */
#include "peer/node/edge/edges.h"

#include "peer/node/edge/edges_state.h"
#include "peer/node/edge/parts.h"
#include "peer/node/edge/rounds.h"
#include "peer/node/mark.h"
#include "peer/node/timers.h"
#include "topology/topology.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct edges *edges_open(struct env *env, struct sessions *s, struct run_context *w)
{
    struct edges *es = calloc(1, sizeof *es);
    if (es != NULL)
        *es = (struct edges){.env = env, .sessions = s, .workshop = w};
    return es;
}

void edges_close(struct edges *es)
{
    assert(es == NULL || (es->n == 0 && es->at == NULL && es->n_parts == 0));
    free(es);
}

/* Checks what holds for a neighbour after each event. Values that the neighbour or a checkpoint
 * chose are not checked. O(1). */
static void neighbour_check(const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    assert((e->state != EDGE_OPEN && e->state != EDGE_ASKING) || b->link != NULL);
    /* An open edge has epoch 0 only if it waits for a reset, which begins with an EDGE message. */
    assert(e->state != EDGE_OPEN || e->epoch != 0 || b->must_ask);
    assert(!b->aside || !b->wanted);
    assert(!b->excused || b->was_excused);
    assert(!b->for_good || b->distrusted);
    assert(!b->distrusted || b->n_barred > 0);
    assert(b->said[0].beat % 2 == 0 && (b->said[1].beat == 0 || b->said[1].beat % 2 == 1));
}

/* Checks what holds for the edges together. O(1). */
static void edges_check(const struct edges *es)
{
    assert(es->n <= es->cap && (es->at == NULL) == (es->cap == 0));
    assert(es->opened_us <= es->exchange_us && es->exchange_us <= es->env->now_us);
    assert(es->n == 0 || es->workshop->ready);
    assert(es->last || (es->pass.clean == 0 && !es->pass.over));
}

/* edges_check(), and neighbour_check() for all neighbours. O(degree). */
static void edges_check_all(const struct edges *es)
{
    edges_check(es);
    for (size_t i = 0; i < es->n; i++)
        neighbour_check(es->at[i]);
}

/* ---- questions ---- */

size_t edges_count(const struct edges *es)
{
    return es->n;
}

size_t edges_delta_bytes(const struct edges *es)
{
    size_t n = 0;
    for (size_t i = 0; i < es->n; i++) {
        const struct edge *e = &es->at[i]->edge;
        const struct packet *body = e->cur.payload != NULL ? e->cur.payload : e->prev.payload;
        n += e->state == EDGE_OPEN && body != NULL ? body->len : 0;
    }
    return n;
}

struct edges_status edges_status(const struct edges *es)
{
    return (struct edges_status){.view = es->view,
                                 .n_members = es->place.n,
                                 .eccentricity = es->eccentricity,
                                 .n_rounds = es->n_rounds,
                                 .momentum = es->momentum,
                                 .spread = es->spread,
                                 .pace = es->pace.mean,
                                 .heard_due = es->heard_due,
                                 .heard_any = es->heard_any,
                                 .opened_us = es->opened_us,
                                 .exchange_us = es->exchange_us,
                                 .excused_us = es->excused_us,
                                 .n_resets = es->n_resets,
                                 .n_distrusted = es->n_distrusted,
                                 .bytes_ahead = es->bytes_ahead};
}

const struct tree_aggregation_place *edges_place(const struct edges *es)
{
    return &es->place;
}

const struct averaging_pass *edges_pass(const struct edges *es)
{
    return &es->pass;
}

uint32_t edges_local_steps(const struct edges *es, uint32_t average, uint32_t most)
{
    return pace_steps(&es->pace, average, most);
}

void edges_worked(struct edges *es, uint32_t steps, int64_t took_us)
{
    assert(steps > 0);
    pace_worked(&es->pace, steps, took_us);
}

const struct neighbour *edges_at(const struct edges *es, size_t i)
{
    assert(i < es->n);
    return es->at[i];
}

static struct neighbour *find(const struct edges *es, const uint8_t *id)
{
    for (size_t i = 0; i < es->n; i++)
        if (env_same_id(es->at[i]->edge.id, id))
            return es->at[i];
    return NULL;
}

const struct neighbour *edges_of(const struct edges *es, const struct link *l)
{
    return find(es, l->id);
}

/* Returns the neighbour with the edge that uses session l, or NULL. */
static struct neighbour *over(const struct edges *es, const struct link *l)
{
    struct neighbour *b = find(es, l->id);
    return b != NULL && b->link == l ? b : NULL;
}

bool edges_stale(struct edges *es, double most2)
{
    bool any = false;
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        bool rests = b->aside && b->edge.cur.payload == NULL;
        if (b->edge.state == EDGE_OPEN && !rests)
            any |= delayed_exchange_look(&b->stale, &b->edge, most2);
    }
    return any;
}

/* Returns whether the distance of the edge to b counts for edges_came_closer(): it was measured,
 * and can still change. */
static bool is_compared(const struct edges *es, const struct neighbour *b)
{
    return b->edge.gamma.d2 > 0 && b->edge.state != EDGE_DONE && !edges_bars(es, b);
}

/* Returns whether the edge to b counts, and has come closer since its distance was recorded. */
static bool came_closer(const struct edges *es, const struct neighbour *b, double factor)
{
    return is_compared(es, b) && (b->least2 <= 0 || b->edge.gamma.d2 < factor * b->least2);
}

bool edges_came_closer(struct edges *es, double factor)
{
    size_t n = 0, n_closer = 0;
    for (size_t i = 0; i < es->n; i++) {
        n += is_compared(es, es->at[i]);
        n_closer += came_closer(es, es->at[i], factor);
    }
    size_t needed = es->workshop->run.tolerate > 0 ? n : 1;
    if (n_closer == 0 || n_closer < needed)
        return false;
    for (size_t i = 0; i < es->n; i++)
        if (came_closer(es, es->at[i], factor))
            es->at[i]->least2 = es->at[i]->edge.gamma.d2;
    return true;
}

void edges_forget_distances(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++)
        es->at[i]->least2 = 0;
}

size_t edges_count_open(const struct edges *es)
{
    size_t open = 0;
    for (size_t i = 0; i < es->n; i++)
        open += es->at[i]->edge.state == EDGE_OPEN;
    return open;
}

uint64_t neighbour_beat(const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    uint64_t beat = b->beat > e->run_round ? b->beat : e->run_round;
    for (int i = 0; i < 2; i++)
        if (e->got[i].full && e->got[i].head.run_round > beat)
            beat = e->got[i].head.run_round;
    return beat;
}

/* Names of the states of an edge in debug notes. */
static const char *const edge_state_name[] = {[EDGE_CLOSED] = "CLOSED",
                                              [EDGE_ASKING] = "ASKING",
                                              [EDGE_OPEN] = "OPEN",
                                              [EDGE_PAUSED] = "PAUSED",
                                              [EDGE_DONE] = "DONE"};

void edges_pause(struct edges *es, struct neighbour *b, bool link_lost, const char *why)
{
    enum edge_state was = b->edge.state;
    edge_pause(&b->edge, link_lost);
    assert(b->edge.state != EDGE_OPEN && !(link_lost && b->edge.state == EDGE_ASKING));
    if (b->edge.state != was)
        env_debug(es->env, "edge to %s: %s -> PAUSED (%s)", env_name(es->env, b->edge.id),
                  edge_state_name[was], why);
}

bool edges_outdated(const struct edges *es)
{
    bool any = es->view != members_view(es->env->members);
    for (size_t i = 0; i < es->n; i++)
        any |= es->at[i]->aside && edges_gave_up(es, es->at[i]);
    return any;
}

/* ---- which edges there are ---- */

static struct neighbour *add(struct edges *es, const uint8_t *id)
{
    if (es->n == es->cap) {
        size_t cap = 2 * es->cap + 4;
        struct neighbour **grown = realloc(es->at, cap * sizeof(struct neighbour *));
        if (grown == NULL)
            return NULL;
        es->at = grown;
        es->cap = cap;
    }
    struct neighbour *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    if (mixing_edge_open(&es->workshop->mixing, &b->edge, es->env->config.id, id) != 0) {
        free(b);
        return NULL;
    }
    if (sessions_want(es->sessions, id) != 0) {
        mixing_edge_close(&es->workshop->mixing, &b->edge);
        free(b);
        return NULL;
    }
    b->lost_us = b->open_us = b->beat_us = es->env->now_us;
    b->must_ask = true;
    b->absence = flap_damping_begun(es->env->now_us);
    es->at[es->n++] = b;
    env_debug(es->env, "edge to %s: added to the graph", env_name(es->env, id));
    return b;
}

static void drop(struct edges *es, size_t i)
{
    struct neighbour *b = es->at[i];
    sessions_unwant(es->sessions, b->edge.id);
    mixing_edge_close(&es->workshop->mixing, &b->edge);
    free(b);
    memmove(es->at + i, es->at + i + 1, (es->n - i - 1) * sizeof(struct neighbour *));
    es->n--;
}

void edges_close_all(struct edges *es)
{
    parts_release(es);
    while (es->n > 0)
        drop(es, es->n - 1);
    free(es->at);
    es->at = NULL;
    es->cap = 0;
    es->view = 0;
}

/* Sorts the edges by member. Deltas are applied in this order, so that two equal runs give the same
 * result. */
static void sort_edges(struct edges *es)
{
    const struct members *members = es->env->members;
    for (size_t i = 1; i < es->n; i++)
        for (size_t j = i; j > 0; j--) {
            const struct record *x = members_find(members, es->at[j - 1]->edge.id)->record;
            const struct record *y = members_find(members, es->at[j]->edge.id)->record;
            if (record_compare(x, y) <= 0)
                break;
            struct neighbour *t = es->at[j];
            es->at[j] = es->at[j - 1];
            es->at[j - 1] = t;
        }
}

/* Sets `wanted` of all neighbours in graph g, in which this peer is vertex `self`. Adds neighbours
 * that are new. */
static void choose(struct edges *es, const struct graph *g, size_t self)
{
    for (size_t i = 0; i < es->n; i++)
        es->at[i]->wanted = false;
    for (uint32_t k = g->first[self]; k < g->first[self + 1]; k++) {
        uint32_t place = es->env->vertices[g->neighbour[k]];
        const uint8_t *id = members_at(es->env->members, place)->record->id;
        struct neighbour *b = find(es, id);
        if (b == NULL && (b = add(es, id)) == NULL) {
            env_note(es->env, NOTE_ERROR, "out of memory for an edge");
            env_end(es->env, 1);
            break;
        }
        b->wanted = true;
    }
}

/* Drops the edges that the topology no longer contains. An edge with a ready exchange is kept until
 * the next job commits the exchange. The neighbour may have committed it already, and an exchange
 * that only one end commits changes the mean of all models. An exchange without the neighbour's
 * delta cannot be committed and is dropped. */
static void drop_unwanted(struct edges *es)
{
    for (size_t i = es->n; i-- > 0;) {
        struct neighbour *b = es->at[i];
        uint8_t out[16];
        if (b->aside)
            continue;
        if (b->wanted)
            continue;
        if (edge_ready(&b->edge) && members_find(es->env->members, b->edge.id) != NULL) {
            edges_pause(es, b, true, "not in the graph any more");
            /* The edge waits for the next job. If a later graph contains it again, an EDGE message
             * has to open it. */
            b->must_ask = true;
            continue;
        }
        if (b->link != NULL)
            sessions_send(es->sessions, b->link, true, out, wire_put_edge_close(out, sizeof out),
                          NULL);
        env_debug(es->env, "edge to %s: removed from the graph", env_name(es->env, b->edge.id));
        drop(es, i);
    }
}

/* Computes the place of this peer and the role of each neighbour in spanning tree t, along which
 * sketches of the models are added up. */
static int place_in_tree(struct edges *es, const struct graph *g, uint32_t self, size_t t,
                         enum tree_aggregation_role (*role)[TREE_AGGREGATION_TREES])
{
    uint32_t root = (uint32_t)(t * g->n / TREE_AGGREGATION_TREES),
             *parent = malloc(g->n * sizeof *parent);
    int err = parent != NULL ? graph_tree(g, root, parent) : -ENOMEM;
    uint32_t depth = graph_eccentricity(g, root);
    es->place.root[t] = self == root;
    es->place.depth = depth > es->place.depth ? depth : es->place.depth;
    for (uint32_t k = g->first[self]; k < g->first[self + 1] && err == 0; k++) {
        uint32_t other = g->neighbour[k];
        bool child = parent[other] == self;
        role[k - g->first[self]][t] = child ? TREE_AGGREGATION_CHILD
                                      : self != root && parent[self] == other
                                          ? TREE_AGGREGATION_PARENT
                                          : TREE_AGGREGATION_ASIDE;
        es->place.n_children[t] += child;
    }
    free(parent);
    return err;
}

/* Computes the places of this peer and its neighbours in the spanning trees along which sketches
 * (random projections of models) are added up. */
static int place_in_trees(struct edges *es, const struct graph *g, uint32_t self)
{
    const struct run *run = &es->workshop->run;
    uint32_t degree = graph_degree(g, self);
    enum tree_aggregation_role(*role)[TREE_AGGREGATION_TREES] =
        calloc((size_t)degree + 1, sizeof *role);
    int err = role != NULL ? 0 : -ENOMEM;
    es->place = (struct tree_aggregation_place){.built = es->place.built + 1,
                                                .n = g->n,
                                                .reach = self == 0 ? es->eccentricity
                                                                   : graph_eccentricity(g, 0),
                                                .lock_step = run->policy == RUN_SYNC,
                                                .n_rounds = run->rounds};
    for (size_t t = 0; t < TREE_AGGREGATION_TREES && err == 0; t++)
        err = place_in_tree(es, g, self, t, role);
    for (uint32_t k = 0; k < degree && err == 0; k++) {
        uint32_t other = g->neighbour[g->first[self] + k];
        const struct member *m = members_at(es->env->members, es->env->vertices[other]);
        struct neighbour *b = find(es, m->record->id);
        /* If the neighbour is not found, choose() ran out of memory and has ended the node. */
        if (b != NULL)
            tree_aggregation_pair_place(&b->edge.sketch.survey, role[k], es->place.built);
    }
    free(role);
    return err;
}

/* The graph is a function of the current members. Edges that the new graph still contains keep
 * their state. Other edges are closed at both ends. */
void edges_rebuild(struct edges *es)
{
    const struct run *run = &es->workshop->run;
    struct graph g;
    size_t self = 0, count = members_vertices(es->env->members, es->env->vertices, &self);
    assert(es->workshop->ready);
    es->view = members_view(es->env->members);
    if (graph_build(&g, edges_topology(es), (uint32_t)count, run->seed) != 0) {
        env_note(es->env, NOTE_ERROR, "out of memory for the topology");
        env_end(es->env, 1);
        return;
    }
    choose(es, &g, self);
    edges_set_aside(es, count);
    es->eccentricity = graph_eccentricity(&g, (uint32_t)self);
    if (rounds_choose(es, (uint32_t)count, (uint32_t)self) != 0
        || place_in_trees(es, &g, (uint32_t)self) != 0) {
        env_note(es->env, NOTE_ERROR, "out of memory for the topology");
        env_end(es->env, 1);
    }
    if (es->workshop->by_drift)
        es->spread = graph_spread(&g, (uint32_t)self);
    graph_close(&g);
    drop_unwanted(es);
    sort_edges(es);
    edges_check_all(es);
}

/* ---- EDGE: both ends open ---- */

static void agree(struct edges *es, struct neighbour *b)
{
    uint64_t resets = b->edge.n_resets;
    enum edge_state was = b->edge.state;
    assert(b->link != NULL && !edges_bars(es, b));
    if (!edge_agree(&b->edge, es->env->config.boot))
        return;
    es->n_resets += b->edge.n_resets - resets;
    if (b->edge.reset)
        memset(b->said, 0, sizeof b->said);
    env_debug(es->env, "edge to %s: %s -> OPEN (%s)", env_name(es->env, b->edge.id),
              edge_state_name[was],
              b->edge.n_resets > resets ? "reset: a new epoch begins"
              : b->edge.reset           ? "the first epoch begins"
                                        : "the epoch continues");
    b->edge.ending = false;
    bool rested = b->edge.theirs.run_round == es->beat && es->workshop->run.policy == RUN_SYNC
                  && delayed_exchange_rested(&b->edge, es->beat);
    delayed_exchange_opened(&b->stale, &b->edge, rested ? es->env->now_us : b->open_us,
                            es->env->now_us);
    b->beat = b->edge.theirs.run_round;
    b->beat_us = es->env->now_us;
    es->opened_us = es->exchange_us = es->env->now_us;
    sessions_opened(es->sessions, b->link);
    sessions_say_finished(es->sessions, b->link);
    neighbour_check(b);
}

static void ask(struct edges *es, struct neighbour *b)
{
    uint8_t out[64];
    struct wire_edge m;
    assert(b->link != NULL && !edges_bars(es, b));
    b->must_ask = false;
    edge_ask(&b->edge, rng_u64(&es->env->rng), es->env->config.boot, false, &m);
    m.run_round = es->beat;
    /* The EDGE message is queued behind all earlier deltas of the session, so it does not overtake
     * them. */
    sessions_send(es->sessions, b->link, true, out, wire_put_edge(out, sizeof out, &m), NULL);
}

static struct early_edge *early(struct edges *es, const struct link *l)
{
    return &es->early[sessions_slot(es->sessions, l)];
}

/* Returns whether run_round is a step counter that a peer of this run can have. */
static bool plausible(const struct edges *es, uint64_t run_round)
{
    return run_round <= es->workshop->run.rounds + EDGES_BEATS_MORE;
}

/* Returns whether an EDGE message has a plausible step counter. Otherwise the message is a protocol
 * violation, which ends the session. */
static bool hears_round(struct edges *es, const struct link *l, uint64_t run_round)
{
    bool valid = plausible(es, run_round);
    if (!valid)
        sessions_violation(es->sessions, l, "EDGE message of a round after the end of the run");
    return valid;
}

/* Records an EDGE message of neighbour b, answers it if necessary, and opens the edge if the two
 * ends agree. */
static void hear(struct edges *es, struct neighbour *b, const struct wire_edge *m)
{
    if (edge_hear(&b->edge, m))
        ask(es, b);
    agree(es, b);
}

void edges_edge(struct edges *es, const struct link *l, const struct wire_edge *m)
{
    struct neighbour *b = over(es, l);
    if (es->workshop->ready && !hears_round(es, l, m->run_round))
        return;
    if (b == NULL || edges_bars(es, b)) {
        *early(es, l) = (struct early_edge){.heard = true, .link = l->number, .edge = *m};
        return;
    }
    hear(es, b, m);
}

void edges_edge_close(struct edges *es, const struct link *l)
{
    struct neighbour *b = over(es, l);
    early(es, l)->heard = false;
    if (b == NULL)
        return;
    edges_pause(es, b, true, "the neighbour closed it");
    edge_forget_parts(&b->edge);
    b->must_ask = true;
    neighbour_check(b);
}

/* ---- DELTA ---- */

/* Sets *next to `due` if the checkpoint at step counter `due` comes before the checkpoint at step
 * counter *next. A step counter up to `beat` is past and is ignored. */
static void sooner(uint64_t *next, uint64_t due, uint64_t beat)
{
    if (due > beat && (*next <= beat || due < *next))
        *next = due;
}

/* Records the checkpoint announcement `due` of neighbour b in heard_any and, within the limit of
 * checkpoint_word(), in heard_due. checkpoint_word() limits how many new checkpoints a neighbour
 * may announce. An announcement that repeats a known checkpoint is not subject to this limit. */
static void hear_due(struct edges *es, struct neighbour *b, uint64_t due)
{
    int64_t every_us = es->env->config.checkpoint_us;
    bool known = due == es->due || due == es->heard_due;
    sooner(&es->heard_any, due, es->beat);
    if (known || checkpoint_word(&b->word, due, es->beat, es->env->now_us, every_us))
        sooner(&es->heard_due, due, es->beat);
}

/* The delta is checked completely before anything changes. */
void edges_delta(struct edges *es, const struct link *l, const struct wire_delta *d)
{
    struct sketch_message sketch;
    struct neighbour *b = over(es, l);
    if (b == NULL)
        return; /* This peer has closed the edge, so the delta is ignored. */
    switch (edge_check(&b->edge, d)) {
    case EDGE_REPEAT:
        return;
    case EDGE_STALE:
        /* On a session, the EDGE of an epoch precedes the deltas of this epoch. A delta of another
         * epoch shows that the two ends are in different epochs, so a new EDGE is sent. */
        b->must_ask |= b->edge.state == EDGE_OPEN;
        return;
    case EDGE_VIOLATION:
        sessions_violation(es->sessions, l, "DELTA message of the wrong round");
        return;
    case EDGE_ACCEPT:
        break;
    }
    if (!plausible(es, d->run_round)) {
        sessions_violation(es->sessions, l, "DELTA message of a round after the end of the run");
        return;
    }
    struct wire_delta whole = *d;
    edge_gather(&b->edge, &whole);
    if (!run_context_valid(es->workshop, &whole, &sketch)) {
        sessions_violation(es->sessions, l, "DELTA does not decode");
        return;
    }
    edge_store(&b->edge, &whole, &sketch);
    delayed_exchange_delta(&b->stale, &b->edge, es->beat, es->env->now_us);
    pace_heard(&es->pace, 1e-3 * (double)d->pace);
    hear_due(es, b, d->checkpoint);
    es->exchange_us = b->beat_us = es->env->now_us;
    edges_check(es);
}

/* A fragment of a delta takes effect only with the DELTA message that completes it. */
void edges_part(struct edges *es, const struct link *l, const struct wire_part *m)
{
    struct neighbour *b = over(es, l);
    if (b != NULL && edge_part(&b->edge, m) == EDGE_VIOLATION)
        sessions_violation(es->sessions, l, "PART message with a fragment at the wrong position");
}

void edges_coming(struct edges *es, const struct link *l)
{
    struct neighbour *b = over(es, l);
    if (b != NULL)
        b->coming_us = es->env->now_us;
}

void edges_beat(struct edges *es, const struct link *l, const struct wire_beat *m)
{
    struct neighbour *b = over(es, l);
    if (es->workshop->ready && !plausible(es, m->run_round)) {
        sessions_violation(es->sessions, l, "BEAT message of a round after the end of the run");
        return;
    }
    if (b != NULL) {
        hear_due(es, b, m->checkpoint);
        edges_hear_word(b, m);
    }
    if (b == NULL || m->run_round <= neighbour_beat(b))
        return;
    b->beat = m->run_round;
    b->beat_us = es->env->now_us;
}

static void send_delta(struct edges *es, struct neighbour *b, const struct edge_sent *sent)
{
    uint8_t head[WIRE_HEAD_MAX + SKETCH_BYTES_MAX];
    struct wire_delta d = sent->head;
    size_t len;
    d.sketch_generation = sent->sketch.tag;
    d.mean_dist2 = sent->sketch.u;
    d.mean_norm2 = sent->sketch.q;
    d.sketch = (struct bytes){sent->sketch.bytes, sent->sketch.n};
    assert(b->link != NULL && b->edge.epoch != 0);
    struct packet *body = parts_complete(es, b, sent) ? NULL : sent->payload;
    if (body != NULL)
        d.payload.p = packet_bytes(body, &d.payload.n);
    len = wire_put_delta(head, sizeof head, &d);
    assert(len > 0);
    sessions_send(es->sessions, b->link, true, head, len, body);
}

/* ---- links come and go ---- */

void edges_lost(struct edges *es, const struct link *l)
{
    struct neighbour *b = over(es, l);
    if (b == NULL)
        return;
    edges_pause(es, b, true, "the session is lost");
    edge_forget_parts(&b->edge);
    b->link = NULL;
    b->lost_us = es->env->now_us;
    neighbour_check(b);
    if (l->opened && !l->violated)
        sessions_call_soon(es->sessions, l->id);
}

void edges_heard(struct edges *es, const struct link *l)
{
    struct neighbour *b = over(es, l);
    if (b == NULL || b->edge.state != EDGE_PAUSED || b->must_ask)
        return;
    /* A paused edge without `must_ask` was open until its session became silent, so it has an
     * epoch. */
    assert(b->edge.epoch != 0);
    b->edge.state = EDGE_OPEN;
    env_debug(es->env, "edge to %s: PAUSED -> OPEN (the neighbour is heard again)",
              env_name(es->env, l->id));
    /* Nothing was sent while the edge was paused. If a job has committed an exchange in this time,
     * the neighbour lacks this peer's delta of it. This peer therefore sends its last two deltas
     * again. The neighbour drops a delta that it has already applied. */
    b->edge.resend_prev = b->edge.prev.payload != NULL;
    b->edge.resend_cur = b->edge.cur.payload != NULL;
    delayed_exchange_opened(&b->stale, &b->edge, b->open_us, es->env->now_us);
    edges_say_word(es, b); /* The neighbour received no BEAT message during the pause. */
}

void edges_ending(struct edges *es, const struct link *l)
{
    struct neighbour *b = find(es, l->id);
    if (b != NULL)
        b->edge.ending = true;
}

void edges_reopen(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        b->edge.ending = false;
        if (b->edge.state == EDGE_DONE)
            b->edge.state = EDGE_PAUSED;
        b->must_ask = true;
        b->open_us = es->env->now_us;
    }
    es->exchange_us = es->env->now_us;
    edges_check_all(es);
}

void edges_finish(struct edges *es, size_t i)
{
    struct edge *e = &es->at[i]->edge;
    if (e->state != EDGE_DONE)
        env_debug(es->env, "edge to %s: %s -> DONE (the neighbour's model is final)",
                  env_name(es->env, e->id), edge_state_name[e->state]);
    e->state = EDGE_DONE;
}

static void attach(struct neighbour *b, const struct link *l)
{
    b->link = l;
    b->must_ask = true;
    b->edge.ending = l->finished;
}

/* Returns whether the neighbour is absent: there is no session, or nothing has arrived recently. */
static bool is_away(const struct neighbour *b, int64_t now_us)
{
    return b->link == NULL || now_us - b->link->heard_us > ABSENT_US;
}

/* Returns whether this peer has two or more neighbours, and all of them are absent. The cause is
 * then probably the network of this peer. */
static bool is_isolated(const struct edges *es)
{
    size_t n_away = 0;
    for (size_t i = 0; i < es->n; i++)
        n_away += is_away(es->at[i], es->env->now_us);
    return es->n > 1 && n_away == es->n;
}

/* Absences of neighbours do not count as flapping while this peer is isolated. Otherwise a peer
 * that was cut off for some seconds would not wait for any neighbour afterwards, and would leave
 * lock step. */
void edges_tick(struct edges *es)
{
    int64_t now = es->env->now_us;
    bool isolated = is_isolated(es);
    MARK_IF(isolated, "edges: all neighbours are absent");
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        flap_damping_look(&b->absence, is_away(b, now) && !isolated,
                          b->link != NULL ? b->link->heard_us : b->lost_us, now);
        if (b->link != NULL && now - b->link->heard_us > SILENT_US)
            edges_pause(es, b, false, "the neighbour is silent");
    }
}

/* Sends the deltas that are marked for sending, if the edge is open. */
static void resend(struct edges *es, struct neighbour *b)
{
    struct edge *e = &b->edge;
    if (e->state != EDGE_OPEN)
        return;
    if (e->resend_prev && e->prev.payload != NULL)
        send_delta(es, b, &e->prev);
    if (e->resend_cur && e->cur.payload != NULL)
        send_delta(es, b, &e->cur);
    e->resend_prev = e->resend_cur = false;
}

/* Returns the session for the edge to b, or NULL if there is none that the edge can use. Without a
 * session, dials b, unless the graph no longer contains the edge. */
static const struct link *session_for(struct edges *es, const struct neighbour *b)
{
    if (!b->wanted && !b->aside)
        return NULL;
    const struct link *l = b->link != NULL ? b->link : sessions_to(es->sessions, b->edge.id);
    if (l != NULL && l->hung_up == NULL && l->same_run)
        return l;
    if (b->link == NULL)
        sessions_call(es->sessions, b->edge.id, b->lost_us);
    return NULL;
}

void edges_call(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++)
        (void)session_for(es, es->at[i]);
}

static void update(struct edges *es, struct neighbour *b)
{
    const struct link *l = session_for(es, b);
    if (l == NULL)
        return;
    if (b->link == NULL)
        attach(b, l);
    if (edges_bars(es, b))
        return;
    struct early_edge *their = early(es, l);
    if (their->heard && their->link == l->number) {
        their->heard = false;
        if (!hears_round(es, l, their->edge.run_round))
            return;
        hear(es, b, &their->edge);
    }
    if (b->must_ask)
        ask(es, b);
    resend(es, b);
}

void edges_update(struct edges *es)
{
    for (size_t i = 0; i < es->n && !es->env->over; i++) {
        struct neighbour *b = es->at[i];
        update(es, b);
        if (b->edge.state == EDGE_OPEN || b->edge.state == EDGE_DONE)
            b->open_us = es->env->now_us;
        neighbour_check(b);
    }
    edges_check(es);
}

/* ---- jobs ---- */

void edges_join(struct edges *es, size_t i, const struct mixing_moment *now)
{
    struct neighbour *b = es->at[i];
    assert(!edges_bars(es, b) || b->edge.state == EDGE_DONE
           || (b->edge.state != EDGE_OPEN && !edge_ready(&b->edge)));
    mixing_join(&es->workshop->mixing, &b->edge, now);
}

struct sketch_pair *edges_sketch(struct edges *es, size_t i)
{
    return &es->at[i]->edge.sketch;
}

void edges_job_done(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++)
        es->at[i]->gamma = es->at[i]->edge.gamma.value;
    drop_unwanted(es);
    edges_check_all(es);
}

void edges_reset_mismatched(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        if (b->edge.n_mismatches == 0)
            continue;
        b->edge.n_mismatches = 0;
        env_note(
            es->env, NOTE_WARNING,
            "the replicas (copies of models) at the two ends of the edge with %s differ: both ends "
            "reset them",
            env_name(es->env, b->edge.id));
        b->edge.epoch = 0;
        b->must_ask = true;
    }
}
