/* peer/sim/world.c -- runs the nodes of a simulated world: starts and ends them, delivers events,
 * and carries out the effects. */
#include "peer/sim/world.h"

#include "peer/node/env.h"
#include "peer/node/inspect.h"
#include "peer/sim/faults.h"
#include "peer/sim/state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- signatures: identity and hash of the message, which detect changes but not forgeries ---- */

void sim_sign(const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
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
    sim_sign(id, msg, n, tag);
    return memcmp(tag, signature, sizeof tag) == 0;
}

static void toy_sign(void *self, const uint8_t *msg, size_t n,
                     uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    const struct sim_peer *p = self;
    sim_sign(p->id, msg, n, signature);
}

/* ---- peers ---- */

static int make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    struct sim_peer *p = self;
    return p->world->config.make_trainer(p->world->config.self, p->index, run, t, error);
}

/* ---- clocks ---- */

/* Returns the time that the peer's clock shows at the world time at_us. */
static int64_t clock_us(const struct sim_peer *p, int64_t at_us)
{
    return at_us + (int64_t)((double)at_us * p->clock_error);
}

/* Returns the earliest world time, not before the present, at which the peer's clock shows shown_us
 * or a later time. If shown_us is INT64_MAX (never), returns INT64_MAX. */
static int64_t world_us(const struct sim_world *w, const struct sim_peer *p, int64_t shown_us)
{
    if (shown_us == INT64_MAX || p->clock_error == 0)
        return shown_us;
    int64_t at_us = (int64_t)((double)shown_us / (1 + p->clock_error)) - 2;
    at_us = at_us > w->now_us ? at_us : w->now_us;
    while (clock_us(p, at_us) < shown_us)
        at_us++;
    return at_us;
}

/* ---- events ---- */

void sim_post(struct sim_world *w, struct sim_peer *p, struct sim_event e)
{
    e.peer = p->index;
    e.boot = p->boot;
    sim_heap_push(&w->heap, e);
}

/* Returns an incarnation that is higher than the incarnation of the peer's previous process. In the
 * network with sessions the incarnation is the time, in the plain network the number of process
 * starts. */
static uint64_t incarnation(const struct sim_world *w, const struct sim_peer *p)
{
    return w->config.sessions ? (uint64_t)(w->now_us / 1000) + 1 : p->boot + 1u;
}

/* Records the number of bytes encoded so far. Called within node_work() after each fragment of a
 * delta. */
static void tell_part(void *self, size_t n)
{
    struct sim_peer *p = self;
    if (p->n_parts < SIM_PARTS)
        p->part[p->n_parts++] = n;
}

int sim_start_peer(struct sim_world *w, struct sim_peer *p)
{
    p->crypto = (struct members_crypto){p, toy_verify, toy_sign};
    struct node_config c = {.name = p->name,
                            .boot = rng_at(w->config.seed, p->index + 1)
                                    + p->boot * UINT64_C(0x9e3779b97f4a7c15),
                            .incarnation = incarnation(w, p),
                            .own_seed = rng_key(w->config.seed, RNG_NETWORK, p->index, p->boot),
                            .advertise = &p->advertise,
                            .n_advertise = 1,
                            .crypto = &p->crypto,
                            .known = w->known,
                            .n_known = w->config.n_peers,
                            .records = w->records,
                            .commons = w->commons,
                            .flags = {.trainer = w->config.run.trainer},
                            .found = true,
                            .run = w->config.run,
                            .make_trainer = make_trainer,
                            .make_trainer_self = p,
                            .part = tell_part,
                            .part_self = p,
                            .evaluate_every = w->config.evaluate_every,
                            .evaluate_samples = w->config.evaluate_samples,
                            .checkpoint_us = w->config.checkpoint_us,
                            .keep_promise = checkpoints_keep_promise,
                            .keep_promise_self = p,
                            .read_model = checkpoints_read_model,
                            .read_model_self = p,
                            .past = p->past,
                            .promise = p->promise};
    memcpy(c.id, p->id, sizeof c.id);
    checkpoints_resume(p, &c);
    if (p->attacker != NULL)
        c.mixer = attacker_mixer(p->attacker);
    if (w->config.configure != NULL)
        w->config.configure(w->config.self, p->index, &c);
    int err = node_open(&p->node, &c);
    if (err != 0)
        return err;
    p->ended = p->asked = false;
    p->wake_us = INT64_MAX;
    sim_post(w, p, (struct sim_event){.at_us = w->now_us, .type = NODE_START});
    return 0;
}

/* Makes the member record of peer `p`. All nodes get the record at their start, so that they know
 * all members without a bootstrap. */
static void introduce(struct sim_world *w, struct sim_peer *p)
{
    struct record *r = &w->known[p->index];
    uint8_t msg[4096];
    *r = (struct record){.n_addresses = 1, .incarnation = 0};
    memcpy(r->id, p->id, sizeof r->id);
    snprintf(r->name, sizeof r->name, "%s", p->name);
    snprintf(r->address[0], sizeof r->address[0], "%s", p->address);
    sim_sign(p->id, msg, wire_record_signed(msg, sizeof msg, r), r->signature);
}

void sim_draw_id(struct sim_peer *p)
{
    struct rng id = rng_stream(rng_key(7, RNG_PEER, p->index, p->n_ids++ + 1));
    for (size_t k = 0; k < WIRE_ID_BYTES; k++)
        p->id[k] = (uint8_t)rng_u64(&id);
}

static int64_t no_clock(void)
{
    return 0;
}

/* Runs a peer's job on one thread of the pool. */
static void run_job(void *self, uint32_t thread)
{
    struct sim_peer *p = self;
    const struct sim_config *c = &p->world->config;
    if (c->works != NULL)
        c->works(c->self, p->index, thread);
    node_work(p->node, no_clock);
}

void sim_await(const struct sim_world *w, struct sim_peer *p)
{
    thread_pool_await(w->crew, &p->job);
}

int sim_open(struct sim_world **out, const struct sim_config *config)
{
    bool crawls = config->bytes_per_s != 0 && !(config->bytes_per_s >= SIM_LEAST_BYTES_PER_S);
    if (config->n_peers == 0 || config->n_peers > WIRE_MEMBERS_MAX || crawls)
        return -EINVAL;
    struct sim_world *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    w->config = *config;
    w->rng = rng_stream(rng_key(config->seed, RNG_NETWORK, 0, 0));
    w->peers = calloc(config->n_peers, sizeof *w->peers);
    w->known = calloc(config->n_peers, sizeof *w->known);
    w->fx = calloc(1, sizeof *w->fx);
    w->cut = calloc((size_t)config->n_peers * config->n_peers, sizeof *w->cut);
    w->records = records_open();
    w->commons = calloc(1, sizeof *w->commons);
    bool has_room = w->peers && w->known && w->fx && w->cut && w->records && w->commons;
    int err = has_room ? 0 : -ENOMEM;
    bool looked_at = config->attack != NULL || config->worked != NULL;
    if (looked_at || config->threads == 0)
        w->config.threads = 1;
    if (err == 0)
        err = thread_pool_open(&w->crew, w->config.threads);
    for (uint32_t i = 0; i < config->n_peers && err == 0; i++) {
        struct sim_peer *p = &w->peers[i];
        *p = (struct sim_peer){
            .world = w, .index = i, .fault = 1, .job = {.run = run_job, .self = p}};
        p->slowness = 1 + config->step_spread * rng_unit(&w->rng);
        if (config->straggler > 0 && i + 1 == config->n_peers)
            p->slowness *= config->straggler;
        p->advertise = p->address;
        snprintf(p->name, sizeof p->name, "peer-%u", i);
        snprintf(p->address, sizeof p->address, "peer-%u:1", i);
        sim_draw_id(p);
        introduce(w, p);
        if (config->attack != NULL && config->liar[i])
            err = (p->attacker = attacker_new(w, i)) != NULL ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; i < config->n_peers && err == 0; i++)
        err = sim_start_peer(w, &w->peers[i]);
    if (err != 0)
        sim_close(w);
    else
        *out = w;
    return err;
}

/* Closes a node. A node with a running job cannot be closed, so the job is first stopped and
 * reported as done. The effects that node_step() returns for these events are ignored. */
void sim_close_node(struct sim_world *w, struct sim_peer *p)
{
    struct node_event stop = {.now_us = clock_us(p, w->now_us), .type = NODE_STOP};
    struct node_event worked = {.now_us = clock_us(p, w->now_us), .type = NODE_WORKED};
    if (p->node == NULL)
        return;
    sim_await(w, p);
    /* The first NODE_STOP asks the node to leave, and the second one stops it immediately. */
    for (int i = 0; i < 2; i++)
        node_step(p->node, &stop, w->fx);
    node_step(p->node, &worked, w->fx);
    node_close(p->node);
    p->node = NULL;
}

static void close_peer(struct sim_peer *p)
{
    sim_queue_close(&p->late);
    checkpoints_close(p);
    attacker_free(p->attacker);
}

void sim_close(struct sim_world *w)
{
    if (w == NULL)
        return;
    for (uint32_t i = 0; w->peers != NULL && i < w->config.n_peers; i++)
        sim_close_node(w, &w->peers[i]);
    for (uint32_t i = 0; w->peers != NULL && i < w->config.n_peers; i++)
        close_peer(&w->peers[i]);
    records_close(w->records);
    free(w->commons);
    thread_pool_close(w->crew);
    sim_queue_close(&w->held);
    sim_heap_close(&w->heap);
    free(w->cut);
    free(w->links);
    free(w->peers);
    free(w->known);
    free(w->fx);
    free(w);
}

/* ---- one step ---- */

static void send_all(struct sim_world *w, struct sim_peer *p, const struct node_effects *fx)
{
    for (uint32_t i = 0; i < fx->n_sends; i++)
        network_send(w, p, &fx->sends[i]);
    for (uint32_t i = 0; i < fx->n_hangups; i++)
        if (w->config.sessions)
            session_hang_up(w, p, fx->hangups[i].link, fx->hangups[i].violation);
        else
            network_break(w, fx->hangups[i].link, true);
    for (uint32_t i = 0; i < fx->n_dials; i++)
        if (w->config.sessions)
            session_dial(w, p, &fx->dials[i]);
        else
            network_dial(w, p, &fx->dials[i]);
    for (uint32_t i = 0; i < fx->n_resolves && w->config.resolve != NULL; i++) {
        p->seed_name[fx->resolves[i].seed] = fx->resolves[i].name;
        sim_post(w, p,
                 (struct sim_event){.at_us = w->now_us + SIM_RESOLVE_US,
                                    .type = NODE_RESOLVED,
                                    .tag = fx->resolves[i].seed});
    }
}

/* Returns the simulated duration of a peer's job in microseconds. A job with local steps takes the
 * time of these steps. A job without local steps takes 1/SIM_MIXING of the time of a local step in
 * the network with sessions. In the plain network it takes no time with --overlap 1, because a
 * second job does the local steps. Otherwise it takes the time of a round's local steps. Batches
 * for new running statistics in the consensus phase take no time. */
static double job_us(const struct sim_world *w, const struct sim_peer *p)
{
    double us = (double)w->config.step_us * p->slowness * p->fault;
    struct node_size size;
    node_size(p->node, &size);
    if (size.trains)
        return us * (double)size.n_steps;
    if (w->config.sessions)
        return us / SIM_MIXING;
    return size.ahead ? 0 : us * (double)size.n_steps;
}

/* Schedules NODE_PART events for the fragments of a delta (--overlap layer), in the second half of
 * the last local step. The number of fragments is unknown before the job has run, so SIM_PARTS
 * events are scheduled, and take_part() drops the surplus. */
static void post_parts(struct sim_world *w, struct sim_peer *p, double job_us)
{
    struct node_size size;
    node_size(p->node, &size);
    p->n_parts = 0;
    if (!size.trains || node_run(p->node)->overlap != RUN_OVERLAP_LAYER)
        return;
    double half_us = 0.5 * job_us / (double)(size.n_steps > 0 ? size.n_steps : 1);
    for (uint32_t k = 0; k < SIM_PARTS; k++) {
        double us = job_us - half_us * (1 - (double)k / SIM_PARTS);
        sim_post(w, p,
                 (struct sim_event){.at_us = w->now_us + (int64_t)us, .type = NODE_PART, .tag = k});
    }
}

/* Sets the number of encoded bytes in a NODE_PART event, which reports one ready fragment of a
 * delta. Returns false if the job made fewer fragments. Returns true for any other event. */
static bool take_part(struct sim_world *w, struct sim_peer *p, struct sim_event *e)
{
    if (e->type != NODE_PART)
        return true;
    sim_await(w, p);
    if (e->tag >= p->n_parts)
        return false;
    e->n_bytes = p->part[e->tag];
    return true;
}

static void work(struct sim_world *w, struct sim_peer *p)
{
    double us = job_us(w, p);
    post_parts(w, p, us);
    thread_pool_give(w->crew, &p->job);
    if (w->config.worked != NULL)
        w->config.worked(w->config.self, p->index);
    sim_post(w, p, (struct sim_event){.at_us = w->now_us + (int64_t)us, .type = NODE_WORKED});
}

static void carry_out(struct sim_world *w, struct sim_peer *p, const struct node_effects *fx)
{
    send_all(w, p, fx);
    for (uint32_t i = 0; i < fx->n_notes && w->config.note != NULL; i++)
        w->config.note(w->config.self, p->index, &fx->notes[i]);
    if (fx->checkpoint)
        checkpoints_begin_write(w, p);
    if (fx->work)
        work(w, p);
    if (fx->measured && w->config.measured != NULL)
        w->config.measured(w->config.self, p->index);
    if (fx->write_model)
        sim_post(w, p,
                 (struct sim_event){
                     .at_us = w->now_us, .type = NODE_KEPT, .flag = checkpoints_keep_model(p)});
    if (fx->exit && !p->ended) {
        p->exit_code = fx->exit_code;
        sim_end_peer(w, p, true);
        return;
    }
    int64_t wake_us = world_us(w, p, fx->wake_us);
    if (wake_us < p->wake_us) {
        p->wake_us = wake_us;
        sim_post(w, p, (struct sim_event){.at_us = wake_us, .type = NODE_TIMER});
    }
}

void sim_deliver(struct sim_world *w, struct sim_peer *p, const struct sim_event *e)
{
    struct node_event ev = {.now_us = clock_us(p, w->now_us), .type = e->type, .link = e->link};
    uint32_t other = p->index;
    if (e->type == NODE_RECV)
        p->received += sim_socket_bytes(e->n_bytes);
    ev.io.bytes_sent = p->sent;
    ev.io.bytes_received = p->received;
    ev.recv.bytes = e->bytes;
    ev.recv.len = e->n_bytes;
    ev.dial.tag = e->tag;
    ev.dial.why = e->flag ? NODE_WHY_REFUSED : NODE_WHY_TIMEOUT;
    ev.down.clean = e->flag;
    ev.kept.why = e->flag ? NULL : "model: the disk is full";
    ev.heard.record = e->flag;
    ev.part.n = e->n_bytes;
    if (e->type == NODE_LINK_UP || e->type == NODE_LINK_DOWN || e->type == NODE_RECV)
        other = w->links[e->link].end[1 - sim_side(&w->links[e->link], p)];
    if (e->type == NODE_LINK_UP) {
        const struct sim_link *l = &w->links[e->link];
        memcpy(ev.up.id, l->id[1 - sim_side(l, p)], WIRE_ID_BYTES);
        ev.up.dialled = e->flag;
        ev.up.tag = e->tag;
        ev.up.version = WIRE_VERSION;
    }
    const char *address[NODE_SEEDS_MAX];
    if (e->type == NODE_RESOLVED)
        network_resolved(w, p, e, address, &ev);
    if (e->type == NODE_WRITTEN) {
        ev.written.beat = p->checkpoints.writing.beat;
        checkpoints_end_write(p);
    }
    if (e->type == NODE_ADMIT) {
        ev.admit.id = (const uint8_t(*)[WIRE_ID_BYTES])e->bytes;
        ev.admit.n = e->n_bytes / WIRE_ID_BYTES;
        ev.admit.unix_ms = (SIM_UNIX_S * INT64_C(1000000) + w->now_us) / 1000;
    }
    p->asked |= e->type == NODE_STOP;
    if (e->type == NODE_TIMER)
        p->wake_us = INT64_MAX;
    if (e->type == NODE_WORKED)
        sim_await(w, p);
    if (w->config.watch != NULL)
        w->config.watch(w->config.self, p->index, &ev, other);
    node_step(p->node, &ev, w->fx);
    if (w->config.stepped != NULL)
        w->config.stepped(w->config.self, p->index, &ev, w->fx);
    carry_out(w, p, w->fx);
}

static void trace(struct sim_world *w, const struct sim_event *e)
{
    uint64_t v[3] = {(uint64_t)e->at_us, (uint64_t)e->peer << 32 | (uint64_t)e->type,
                     (uint64_t)e->link << 32 | (uint64_t)e->n_bytes};
    w->trace = rng_at(w->trace ^ rng_hash(v, sizeof v), w->n_events);
    w->n_events++;
}

/* Returns whether the plain network loses an event because its session is down. */
static bool is_lost(const struct sim_world *w, const struct sim_event *e)
{
    if (w->config.sessions || (e->type != NODE_RECV && e->type != NODE_LINK_UP))
        return false;
    const struct sim_link *l = &w->links[e->link];
    return !l->up && !(e->type == NODE_RECV && l->drains);
}

/* Returns whether a timer event is outdated, because the node has asked for a later wake-up since
 * the event was queued. The timer of the later wake-up is queued, too. Outdated events are dropped,
 * because each of them would make the node queue one more timer. */
static bool is_stale(const struct sim_world *w, const struct sim_peer *p, const struct sim_event *e)
{
    return e->type == NODE_TIMER && w->now_us < p->wake_us;
}

/* Returns whether an event must wait because the peer's loop is stopped, or because the event is
 * the end of a job and the worker hangs. */
static bool is_late(const struct sim_peer *p, const struct sim_event *e)
{
    bool own = e->kind == SIM_FOR_NODE && e->boot != p->boot;
    return sim_lives(p) && !own
           && (p->stopped || (p->hung && e->kind == SIM_FOR_NODE && e->type == NODE_WORKED));
}

bool sim_step(struct sim_world *w)
{
    if (w->heap.n == 0 || (w->n_ended == w->config.n_peers && !w->config.sessions))
        return false;
    struct sim_event e = sim_heap_pop(&w->heap);
    struct sim_peer *p = &w->peers[e.peer];
    assert(e.at_us >= w->now_us);
    w->now_us = e.at_us;
    if (is_late(p, &e)) {
        sim_queue_add(&p->late, e);
        return true;
    }
    if (e.kind != SIM_FOR_NODE) {
        trace(w, &e);
        session_take(w, p, &e);
    } else if (sim_lives(p) && e.boot == p->boot && !is_lost(w, &e) && !is_stale(w, p, &e)
               && take_part(w, p, &e)) {
        trace(w, &e);
        sim_deliver(w, p, &e);
    }
    free(e.bytes);
    return true;
}

bool sim_run_to(struct sim_world *w, int64_t t_us)
{
    while (w->heap.n > 0 && w->heap.at[0].at_us <= t_us)
        if (!sim_step(w))
            return false;
    if (w->now_us < t_us)
        w->now_us = t_us;
    return w->heap.n > 0;
}

int64_t sim_next_us(const struct sim_world *w)
{
    return w->heap.n > 0 ? w->heap.at[0].at_us : INT64_MAX;
}

bool sim_over(const struct sim_world *w)
{
    return w->n_ended == w->config.n_peers;
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

void sim_progress(const struct sim_world *w, uint32_t peer, struct node_progress *p)
{
    assert(w->peers[peer].node != NULL);
    node_progress(w->peers[peer].node, p);
}

const struct node *sim_node(const struct sim_world *w, uint32_t peer)
{
    sim_await(w, &w->peers[peer]);
    return w->peers[peer].node;
}

const struct node *sim_node_at_work(const struct sim_world *w, uint32_t peer)
{
    return w->peers[peer].node;
}

const uint8_t *sim_id(const struct sim_world *w, uint32_t peer)
{
    return w->peers[peer].id;
}

bool sim_ended(const struct sim_world *w, uint32_t peer, int *exit_code)
{
    *exit_code = w->peers[peer].exit_code;
    return w->peers[peer].ended;
}

bool sim_left(const struct sim_world *w, uint32_t peer)
{
    const struct sim_peer *p = &w->peers[peer];
    return p->node != NULL && p->ended && p->asked;
}

void sim_totals(const struct sim_world *w, uint32_t peer, uint64_t *sent, uint64_t *received)
{
    *sent = w->peers[peer].sent;
    *received = w->peers[peer].received;
}

/* Argument of the callback model_of(): the models that sim_drift() compares, in the order of the
 * peers. */
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
        sim_await(w, &w->peers[i]);
        if (w->peers[i].node != NULL && w->peers[i].attacker == NULL && !sim_left(w, i))
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
