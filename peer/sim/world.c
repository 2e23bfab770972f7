/* peer/sim/world.c -- carries nodes' effects to each other in virtual time: every delay and fault
 * is drawn here. */
#include "peer/sim/world.h"

#include "nn/math/rng.h"
#include "peer/secure/channel.h"
#include "peer/sim/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_peer
{
    struct sim_world *world;
    uint32_t index, boot;
    struct node *node;
    struct members_crypto crypto;
    char name[WIRE_NAME_MAX + 1], address[WIRE_NAME_MAX + 8];
    const char *advertise;
    uint8_t id[WIRE_ID_BYTES];
    int64_t wake_us; /* The earliest TIMER that is queued already; INT64_MAX: none. */
    double slowness; /* Its local steps take so many times as long as step_us. */
    uint64_t sent, received;
    bool ended;
    int exit_code;
};

struct sim_link
{
    uint32_t end[2];
    bool up;
    int64_t clear_us[2]; /* When the last message from end k has arrived: none overtakes it. */
};

struct sim_world
{
    struct sim_config config;
    struct rng rng;
    struct sim_peer *peers;
    struct record *known;
    struct sim_link *links;
    uint32_t n_links, cap_links;
    struct sim_heap heap;
    struct node_effects *fx;
    int64_t now_us;
    uint64_t n_events, trace;
    uint32_t n_ended;
};

/* ---- a toy signature: the id and a hash, so that a changed byte shows ---- */

static void toy_tag(const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                    uint8_t out[WIRE_SIGNATURE_BYTES])
{
    uint64_t h = rng_hash(msg, n) ^ rng_hash(id, WIRE_ID_BYTES);
    memset(out, 0, WIRE_SIGNATURE_BYTES);
    memcpy(out, &h, sizeof h);
}

static bool toy_verify(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                       const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    uint8_t tag[WIRE_SIGNATURE_BYTES];
    (void)self;
    toy_tag(id, msg, n, tag);
    return memcmp(tag, signature, sizeof tag) == 0;
}

static void toy_sign(void *self, const uint8_t *msg, size_t n,
                     uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    const struct sim_peer *p = self;
    toy_tag(p->id, msg, n, signature);
}

/* ---- peers ---- */

static int make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    struct sim_peer *p = self;
    return p->world->config.make_trainer(p->world->config.self, p->index, run, t, error);
}

static void post(struct sim_world *w, struct sim_peer *p, struct sim_event e)
{
    e.peer = p->index;
    e.boot = p->boot;
    sim_heap_push(&w->heap, e);
}

static int start_peer(struct sim_world *w, struct sim_peer *p)
{
    p->crypto = (struct members_crypto){p, toy_verify, toy_sign};
    struct node_config c = {.name = p->name,
                            .boot = rng_at(w->config.seed, p->index + 1) + p->boot,
                            .incarnation = p->boot + 1u,
                            .own_seed = rng_key(w->config.seed, RNG_NETWORK, p->index, p->boot),
                            .advertise = &p->advertise,
                            .n_advertise = 1,
                            .crypto = &p->crypto,
                            .known = w->known,
                            .n_known = w->config.n_peers,
                            .flags = {.trainer = w->config.run.trainer},
                            .found = true,
                            .run = w->config.run,
                            .make_trainer = make_trainer,
                            .make_trainer_self = p,
                            .evaluate_every = w->config.evaluate_every,
                            .evaluate_samples = w->config.evaluate_samples};
    memcpy(c.id, p->id, sizeof c.id);
    if (w->config.configure != NULL)
        w->config.configure(w->config.self, p->index, &c);
    int err = node_open(&p->node, &c);
    if (err != 0)
        return err;
    p->ended = false;
    p->wake_us = INT64_MAX;
    post(w, p, (struct sim_event){.at_us = w->now_us, .type = NODE_START});
    return 0;
}

/* Everybody knows everybody from the start, as after a bootstrap. */
static void introduce(struct sim_world *w, struct sim_peer *p)
{
    struct record *r = &w->known[p->index];
    uint8_t msg[4096];
    *r = (struct record){.n_addresses = 1, .incarnation = 0};
    memcpy(r->id, p->id, sizeof r->id);
    snprintf(r->name, sizeof r->name, "%s", p->name);
    snprintf(r->address[0], sizeof r->address[0], "%s", p->address);
    toy_tag(p->id, msg, wire_record_signed(msg, sizeof msg, r), r->signature);
}

int sim_open(struct sim_world **out, const struct sim_config *config)
{
    if (config->n_peers == 0 || config->n_peers > WIRE_MEMBERS_MAX)
        return -EINVAL;
    struct sim_world *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    w->config = *config;
    w->rng = rng_stream(rng_key(config->seed, RNG_NETWORK, 0, 0));
    w->peers = calloc(config->n_peers, sizeof *w->peers);
    w->known = calloc(config->n_peers, sizeof *w->known);
    w->fx = calloc(1, sizeof *w->fx);
    int err = w->peers && w->known && w->fx ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < config->n_peers && err == 0; i++) {
        struct sim_peer *p = &w->peers[i];
        struct rng id = rng_stream(rng_key(7, RNG_PEER, i, 1));
        *p = (struct sim_peer){.world = w, .index = i};
        p->slowness = 1 + config->step_spread * rng_unit(&w->rng);
        p->advertise = p->address;
        snprintf(p->name, sizeof p->name, "peer-%u", i);
        snprintf(p->address, sizeof p->address, "peer-%u:1", i);
        for (size_t k = 0; k < WIRE_ID_BYTES; k++)
            p->id[k] = (uint8_t)rng_u64(&id);
        introduce(w, p);
    }
    for (uint32_t i = 0; i < config->n_peers && err == 0; i++)
        err = start_peer(w, &w->peers[i]);
    if (err != 0)
        sim_close(w);
    else
        *out = w;
    return err;
}

/* A job may be under way: it is stopped and told done, so that the node can be
 * closed; what it asks for is not carried out. */
static void close_node(struct sim_world *w, struct sim_peer *p)
{
    struct node_event stop = {.now_us = w->now_us, .type = NODE_STOP};
    struct node_event worked = {.now_us = w->now_us, .type = NODE_WORKED};
    if (p->node == NULL)
        return;
    node_step(p->node, &stop, w->fx);
    node_step(p->node, &worked, w->fx);
    node_close(p->node);
    p->node = NULL;
}

void sim_close(struct sim_world *w)
{
    if (w == NULL)
        return;
    for (uint32_t i = 0; w->peers != NULL && i < w->config.n_peers; i++)
        close_node(w, &w->peers[i]);
    sim_heap_close(&w->heap);
    free(w->links);
    free(w->peers);
    free(w->known);
    free(w->fx);
    free(w);
}

/* ---- the network ---- */

static int64_t lag(struct sim_world *w)
{
    int64_t j = w->config.jitter_us;
    return w->config.latency_us + (j > 0 ? (int64_t)rng_below(&w->rng, (uint64_t)j) : 0);
}

static int side(const struct sim_link *l, const struct sim_peer *p)
{
    return l->end[0] == p->index ? 0 : 1;
}

static void link_down(struct sim_world *w, uint32_t number, bool clean)
{
    struct sim_link *l = &w->links[number];
    if (!l->up)
        return;
    l->up = false;
    for (int k = 0; k < 2; k++)
        if (w->peers[l->end[k]].node != NULL)
            post(w, &w->peers[l->end[k]],
                 (struct sim_event){
                     .at_us = w->now_us, .type = NODE_LINK_DOWN, .link = number, .flag = clean});
}

/* What the channel adds to a message: its records' headers and tags. */
static uint64_t socket_bytes(size_t n)
{
    uint64_t records = (n + CHANNEL_PLAIN_MAX - 1) / CHANNEL_PLAIN_MAX;
    return n + records * (CHANNEL_HEADER + 1 + 16);
}

static void send_message(struct sim_world *w, struct sim_peer *p, const struct node_send *s)
{
    struct sim_link *l = &w->links[s->link];
    size_t n_body = 0;
    const uint8_t *body = s->body ? packet_bytes(s->body, &n_body) : NULL;
    if (!l->up)
        return;
    if (body != NULL && w->config.cut_rate > 0 && rng_unit(&w->rng) < w->config.cut_rate) {
        link_down(w, s->link, false);
        return;
    }
    int k = side(l, p);
    size_t n = s->n_head + n_body;
    uint8_t *bytes = malloc(n);
    if (bytes == NULL)
        abort();
    memcpy(bytes, s->head, s->n_head);
    if (n_body > 0)
        memcpy(bytes + s->n_head, body, n_body);
    int64_t at = w->now_us + lag(w);
    if (w->config.bytes_per_s > 0)
        at += (int64_t)(1e6 * (double)n / w->config.bytes_per_s);
    if (at < l->clear_us[k])
        at = l->clear_us[k];
    l->clear_us[k] = at;
    p->sent += socket_bytes(n);
    post(w, &w->peers[l->end[1 - k]],
         (struct sim_event){
             .at_us = at, .type = NODE_RECV, .link = s->link, .bytes = bytes, .n_bytes = n});
}

static struct sim_peer *peer_at(struct sim_world *w, const char *address)
{
    unsigned index;
    if (sscanf(address, "peer-%u:1", &index) != 1 || index >= w->config.n_peers)
        return NULL;
    struct sim_peer *p = &w->peers[index];
    return p->node != NULL && !p->ended ? p : NULL;
}

static void dial(struct sim_world *w, struct sim_peer *p, const struct node_dial *d)
{
    struct sim_peer *to = peer_at(w, d->address);
    int64_t at = w->now_us + 2 * lag(w);
    if (to == NULL || to == p) {
        post(w, p, (struct sim_event){.at_us = at, .type = NODE_DIAL_FAILED, .tag = d->tag});
        return;
    }
    if (w->n_links == w->cap_links) {
        w->cap_links = w->cap_links > 0 ? 2 * w->cap_links : 256;
        w->links = realloc(w->links, w->cap_links * sizeof *w->links);
        if (w->links == NULL)
            abort();
    }
    uint32_t number = w->n_links++;
    w->links[number] =
        (struct sim_link){.end = {p->index, to->index}, .up = true, .clear_us = {at, at}};
    p->sent += CHANNEL_MSG1 + CHANNEL_MSG3;
    p->received += CHANNEL_MSG2;
    to->sent += CHANNEL_MSG2;
    to->received += CHANNEL_MSG1 + CHANNEL_MSG3;
    post(w, p,
         (struct sim_event){
             .at_us = at, .type = NODE_LINK_UP, .link = number, .tag = d->tag, .flag = true});
    post(w, to, (struct sim_event){.at_us = at, .type = NODE_LINK_UP, .link = number});
}

/* ---- one step ---- */

static int64_t no_clock(void)
{
    return 0;
}

/* A peer leaves: all its sessions end with it. */
static void end_peer(struct sim_world *w, struct sim_peer *p, bool clean)
{
    p->ended = true;
    w->n_ended++;
    for (uint32_t k = 0; k < w->n_links; k++)
        if (w->links[k].end[0] == p->index || w->links[k].end[1] == p->index)
            link_down(w, k, clean);
}

static void carry_out(struct sim_world *w, struct sim_peer *p, const struct node_effects *fx)
{
    for (uint32_t i = 0; i < fx->n_sends; i++)
        send_message(w, p, &fx->sends[i]);
    for (uint32_t i = 0; i < fx->n_hangups; i++)
        link_down(w, fx->hangups[i].link, true);
    for (uint32_t i = 0; i < fx->n_dials; i++)
        dial(w, p, &fx->dials[i]);
    for (uint32_t i = 0; i < fx->n_notes && w->config.note != NULL; i++)
        w->config.note(w->config.self, p->index, &fx->notes[i]);
    if (fx->work) {
        double us = (double)w->config.step_us * p->slowness * (double)w->config.run.local_steps;
        node_work(p->node, no_clock);
        post(w, p, (struct sim_event){.at_us = w->now_us + (int64_t)us, .type = NODE_WORKED});
    }
    if (fx->measured && w->config.measured != NULL)
        w->config.measured(w->config.self, p->index);
    if (fx->exit && !p->ended) {
        p->exit_code = fx->exit_code;
        end_peer(w, p, true);
        return;
    }
    if (fx->wake_us < p->wake_us) {
        p->wake_us = fx->wake_us;
        post(w, p, (struct sim_event){.at_us = fx->wake_us, .type = NODE_TIMER});
    }
}

static void deliver(struct sim_world *w, struct sim_peer *p, const struct sim_event *e)
{
    struct node_event ev = {.now_us = w->now_us, .type = e->type, .link = e->link};
    if (e->type == NODE_RECV)
        p->received += socket_bytes(e->n_bytes);
    ev.io.bytes_sent = p->sent;
    ev.io.bytes_received = p->received;
    ev.recv.bytes = e->bytes;
    ev.recv.len = e->n_bytes;
    ev.dial.tag = e->tag;
    ev.down.clean = e->flag;
    if (e->type == NODE_LINK_UP) {
        const struct sim_link *l = &w->links[e->link];
        memcpy(ev.up.id, w->peers[l->end[1 - side(l, p)]].id, WIRE_ID_BYTES);
        ev.up.dialled = e->flag;
        ev.up.tag = e->tag;
    }
    if (e->type == NODE_TIMER)
        p->wake_us = INT64_MAX;
    node_step(p->node, &ev, w->fx);
    carry_out(w, p, w->fx);
}

static void trace(struct sim_world *w, const struct sim_event *e)
{
    uint64_t v[3] = {(uint64_t)e->at_us, (uint64_t)e->peer << 32 | (uint64_t)e->type,
                     (uint64_t)e->link << 32 | (uint64_t)e->n_bytes};
    w->trace = rng_at(w->trace ^ rng_hash(v, sizeof v), w->n_events);
    w->n_events++;
}

bool sim_step(struct sim_world *w)
{
    if (w->heap.n == 0 || w->n_ended == w->config.n_peers)
        return false;
    struct sim_event e = sim_heap_pop(&w->heap);
    struct sim_peer *p = &w->peers[e.peer];
    assert(e.at_us >= w->now_us);
    w->now_us = e.at_us;
    /* What was on its way when a session broke is lost with it. */
    bool lost = e.type == NODE_RECV && !w->links[e.link].up;
    bool stale = e.type == NODE_LINK_UP && !w->links[e.link].up;
    if (p->node != NULL && e.boot == p->boot && !p->ended && !lost && !stale) {
        trace(w, &e);
        deliver(w, p, &e);
    }
    free(e.bytes);
    return true;
}

int64_t sim_now_us(const struct sim_world *w)
{
    return w->now_us;
}

uint64_t sim_events(const struct sim_world *w)
{
    return w->n_events;
}

uint64_t sim_trace(const struct sim_world *w)
{
    return w->trace;
}

const struct node *sim_node(const struct sim_world *w, uint32_t peer)
{
    return w->peers[peer].node;
}

bool sim_ended(const struct sim_world *w, uint32_t peer, int *exit_code)
{
    *exit_code = w->peers[peer].exit_code;
    return w->peers[peer].ended;
}

void sim_kill(struct sim_world *w, uint32_t peer)
{
    struct sim_peer *p = &w->peers[peer];
    if (p->node == NULL)
        return;
    if (!p->ended)
        end_peer(w, p, false);
    close_node(w, p);
}

int sim_restart(struct sim_world *w, uint32_t peer)
{
    struct sim_peer *p = &w->peers[peer];
    assert(p->node == NULL);
    p->boot++;
    p->sent = p->received = 0;
    w->n_ended--;
    return start_peer(w, p);
}

void sim_totals(const struct sim_world *w, uint32_t peer, uint64_t *sent, uint64_t *received)
{
    *sent = w->peers[peer].sent;
    *received = w->peers[peer].received;
}

/* The models there are, in the order of the peers. */
struct models
{
    const float **x;
    size_t n, n_trained, dim;
};

static const float *model_of(void *self, size_t i)
{
    return ((const struct models *)self)->x[i];
}

void sim_drift(const struct sim_world *w, struct consensus *c)
{
    struct models all = {.x = calloc(w->config.n_peers, sizeof *all.x)};
    *c = consensus_none;
    for (uint32_t i = 0; all.x != NULL && i < w->config.n_peers; i++) {
        const struct segment *segments;
        size_t n_segments;
        const float *x = NULL;
        if (w->peers[i].node != NULL)
            x = node_model(w->peers[i].node, &segments, &n_segments, &all.dim);
        if (x == NULL)
            continue;
        all.n_trained = segments_trained(segments, n_segments);
        all.x[all.n++] = x;
    }
    if (all.n > 0 && consensus_measure(c, all.n, all.n_trained, all.dim, model_of, &all) < 0)
        *c = consensus_none;
    free(all.x);
}
