/* tests/unit/node_hostile_world.h -- a node with an authenticated neighbour that is hostile.
 *
 *        ours (a node) ---- friend (a node)
 *             |  \
 *   evil: the test  \-- watch: the test, an observer that asks for STATUS
 *
 * Both nodes train a quadratic in lock step and mix over their edge. Whatever evil sends, the node
 * `ours` must not crash, must end the session with a violation if the protocol is broken, and must
 * keep its model and its edge to the friend. Messages are in buffers of their exact size, for ASan.
 *
 * If `statistics` is set before a world is opened, the model has statistics: variances.
 * `compressor` and `topology` are settings of the run.
 */
#ifndef TESTS_UNIT_NODE_HOSTILE_WORLD_H
#define TESTS_UNIT_NODE_HOSTILE_WORLD_H

#include "node_hostile_trainer.h"

#include "compress/compress.h"
#include "gossip/exchange/edge.h"
#include "peer/node/node.h"
#include "peer/node/session/sessions_state.h"
#include "peer/node/state.h"
#include "tests/unit/gossip_toy.h"
#include "tests/unit/node_due.h"

#include <math.h>

enum {
    OURS,
    FRIEND,
    EVIL,
    WATCH, /* Indices of the nodes and simulated peers in node[], key[] and known[]. */
    NODES = 2,
    LINKS = 1 << 16,
    STEP_US = 20 * 1000,
    PENDING = 4096,
    SCRATCH = 128 * 1024
};

struct mail
{
    uint32_t from, link;
    uint8_t *bytes;
    size_t n;
};

struct wire_seen /* Messages that the hostile peer received: the last of each kind. */
{
    bool hello, edge, delta, model_req, close;
    uint32_t n_edges, n_sent;
    struct wire_edge last_edge;
    struct wire_delta last_delta;
    struct wire_status status;
    bool has_status, has_model;
    float model[DIM];
};

struct world
{
    struct node *node[NODES];
    uint8_t key[4][WIRE_ID_BYTES];
    struct members_crypto crypto[NODES];
    struct record known[3];
    struct run run;
    struct node_effects *fx;
    /* work_us: time at which the running job ends, in microseconds. 0: no job is running. */
    int64_t now_us, wake_us[NODES], work_us[NODES];
    bool over[NODES];
    int exit_code[NODES];
    struct
    {
        uint32_t end[2];
        bool up;
    } link[LINKS];
    /* Links of the simulated peers to the node. UINT32_MAX: none. */
    uint32_t n_links, evil, watch;
    struct mail mail[PENDING];
    uint32_t first, n_mail;
    bool hung_up, violation; /* hung_up: the node ended the session of the hostile peer. */
    uint32_t n_dials;        /* Number of times that the node dialled the hostile peer. */
    bool answers;            /* The hostile peer accepts dials. */
    uint8_t *delta;          /* Copy of the last DELTA message to the hostile peer. */
    size_t n_delta;
    struct wire_seen seen;
    /* The driver keeps the packets that the node sends, as if the socket were full. */
    bool hold;
    struct packet *held[64];
    uint32_t n_held;
};

/* ---- the driver ---- */

static inline int64_t no_clock(void)
{
    return 0;
}

static inline void step(struct world *w, uint32_t who, struct node_event *ev);

static inline uint32_t connect_ends(struct world *w, uint32_t from, uint32_t to, uint32_t tag)
{
    uint32_t number = w->n_links++;
    assert_true(number < LINKS);
    w->link[number].end[0] = from;
    w->link[number].end[1] = to;
    w->link[number].up = true;
    for (int k = 0; k < 2; k++) {
        uint32_t who = w->link[number].end[k];
        struct node_event ev = {.type = NODE_LINK_UP,
                                .link = number,
                                .up = {.dialled = k == 0, .tag = tag, .version = WIRE_VERSION}};
        if (who >= NODES)
            continue;
        memcpy(ev.up.id, w->key[w->link[number].end[1 - k]], WIRE_ID_BYTES);
        /* The hostile peer violates the protocol hundreds of times here, so its quarantine is
         * lifted with each session. */
        w->node[who]->sessions->quarantine = (struct quarantine){0};
        step(w, who, &ev);
    }
    return number;
}

static inline void disconnect(struct world *w, uint32_t number, bool clean)
{
    if (number == UINT32_MAX || !w->link[number].up)
        return;
    w->link[number].up = false;
    if (number == w->evil)
        w->evil = UINT32_MAX;
    for (int k = 0; k < 2; k++) {
        struct node_event ev = {.type = NODE_LINK_DOWN, .link = number, .down.clean = clean};
        if (w->link[number].end[k] < NODES)
            step(w, w->link[number].end[k], &ev);
    }
}

static inline uint32_t other_end(const struct world *w, uint32_t link, uint32_t who)
{
    return w->link[link].end[w->link[link].end[0] == who];
}

static inline void put_mail(struct world *w, uint32_t from, const struct node_send *s)
{
    size_t n_body = 0;
    const uint8_t *body = s->body != NULL ? packet_bytes(s->body, &n_body) : NULL;
    if (!w->link[s->link].up)
        return;
    assert_true(w->n_mail < PENDING);
    struct mail *m = &w->mail[(w->first + w->n_mail++) % PENDING];
    *m = (struct mail){from, s->link, malloc(s->n_head + n_body), s->n_head + n_body};
    assert_non_null(m->bytes);
    memcpy(m->bytes, s->head, s->n_head);
    if (n_body > 0)
        memcpy(m->bytes + s->n_head, body, n_body);
    if (w->hold && s->body != NULL && w->n_held < 64) {
        packet_hold(s->body);
        w->held[w->n_held++] = s->body;
    }
}

static inline void step(struct world *w, uint32_t who, struct node_event *ev)
{
    struct node_effects *fx = w->fx;
    ev->now_us = w->now_us;
    node_step(w->node[who], ev, fx);
    uint32_t n_hangups = fx->n_hangups, hangup[NODE_LINKS_MAX], dials = fx->n_dials;
    struct node_dial dial[NODE_DIALS_MAX];
    char address[NODE_DIALS_MAX][WIRE_ADDRESS_MAX + 1];
    for (uint32_t i = 0; i < fx->n_sends; i++)
        put_mail(w, who, &fx->sends[i]);
    for (uint32_t i = 0; i < n_hangups; i++) {
        hangup[i] = fx->hangups[i].link;
        if (who == OURS && hangup[i] == w->evil) {
            w->hung_up = true;
            w->violation = fx->hangups[i].violation;
        }
    }
    for (uint32_t i = 0; i < dials; i++) {
        dial[i] = fx->dials[i];
        snprintf(address[i], sizeof address[i], "%s", dial[i].address);
    }
    for (uint32_t i = 0; i < fx->n_notes && getenv("LOUD") != NULL; i++)
        print_message("%.3f s, %u: %s\n", (double)w->now_us * 1e-6, who, fx->notes[i].text);
    if (fx->work) {
        node_work(w->node[who], no_clock);
        w->work_us[who] = w->now_us + STEP_US;
    }
    bool stored = fx->write_model && !fx->exit;
    w->wake_us[who] = fx->wake_us;
    w->over[who] |= fx->exit;
    w->exit_code[who] = fx->exit_code;
    /* The steps below overwrite w->fx, so `fx` must not be used from here on. */
    for (uint32_t i = 0; i < n_hangups; i++)
        disconnect(w, hangup[i], true);
    for (uint32_t i = 0; i < dials; i++) {
        bool to_evil = strcmp(address[i], w->known[EVIL].address[0]) == 0;
        bool to_node =
            strcmp(address[i], w->known[1 - who].address[0]) == 0 && w->node[1 - who] != NULL;
        w->n_dials += to_evil && who == OURS;
        if (to_node || (to_evil && who == OURS && w->answers && w->evil == UINT32_MAX)) {
            uint32_t number = connect_ends(w, who, to_node ? 1 - who : EVIL, dial[i].tag);
            if (to_evil)
                w->evil = number;
            continue;
        }
        struct node_event failed = {.type = NODE_DIAL_FAILED,
                                    .dial = {.tag = dial[i].tag, .why = NODE_WHY_REFUSED}};
        step(w, who, &failed);
    }
    if (stored)
        step(w, who, &(struct node_event){.type = NODE_KEPT, .kept = {NULL}});
}

/* Records a message that the node sends to one of the peers that the test plays (EVIL, WATCH). */
static inline void overhear(struct world *w, const uint8_t *p, size_t n)
{
    struct wire_seen *s = &w->seen;
    static struct wire_batch batch;
    static struct wire_message m;
    s->n_sent++;
    assert_true(wire_read(p, n, &batch, &m));
    switch (m.type) {
    case WIRE_HELLO:
        s->hello = true;
        break;
    case WIRE_EDGE:
        s->last_edge = m.edge;
        s->edge = true;
        s->n_edges++;
        break;
    case WIRE_DELTA:
        s->delta = true;
        free(w->delta);
        w->delta = malloc(n);
        assert_non_null(w->delta);
        memcpy(w->delta, p, w->n_delta = n);
        assert_true(wire_read(w->delta, n, &batch, &m));
        s->last_delta = m.delta;
        break;
    case WIRE_MODEL_REQ:
        s->model_req = true;
        break;
    case WIRE_MODEL:
        if (m.model.key != 0)
            break; /* The answer to a mutated MODEL_REQ, which asked for sketches. */
        assert_int_equal(m.model.payload.n, sizeof s->model);
        memcpy(s->model, m.model.payload.p, sizeof s->model);
        s->has_model = true;
        break;
    case WIRE_STATUS:
        s->status = m.status;
        s->has_status = true;
        break;
    case WIRE_EDGE_CLOSE:
        s->close = true;
        break;
    case WIRE_MEMBERS:
    case WIRE_PING:
    case WIRE_BEAT:
    case WIRE_PROBE:
    case WIRE_HEARD:
    case WIRE_REFUSED:
    case WIRE_PART:
    case WIRE_MOMENTS:
    case WIRE_ROUND_PROTOCOL:
    case WIRE_CALLBACK:
    case WIRE_FINISH:
        break;
    case WIRE_STATUS_REQ:
    case WIRE_NONE:
    case WIRE_TYPE_END:
        fail_msg("an honest node sent nonsense");
    }
}

/* Delivers all messages that are under way. */
static inline void flush(struct world *w)
{
    for (uint32_t budget = 0; w->n_mail > 0; budget++) {
        struct mail m = w->mail[w->first];
        assert_true(budget < 100 * 1000); /* Fails if the messages cause each other endlessly. */
        w->first = (w->first + 1) % PENDING;
        w->n_mail--;
        uint32_t to = other_end(w, m.link, m.from);
        struct node_event ev = {.type = NODE_RECV, .link = m.link, .recv = {m.bytes, m.n}};
        if (w->link[m.link].up && to < NODES && !w->over[to])
            step(w, to, &ev);
        else if (w->link[m.link].up && to >= NODES)
            overhear(w, m.bytes, m.n);
        free(m.bytes);
    }
}

static inline void run_until(struct world *w, int64_t t_us)
{
    const struct node_due due = {w->wake_us, w->work_us, w->over, NODES};
    struct node_event ev = {.type = NODE_TIMER};
    size_t who;
    for (flush(w); (who = node_due_take(&due, t_us, &w->now_us, &ev)) < NODES; flush(w))
        step(w, (uint32_t)who, &ev);
    w->now_us = t_us > w->now_us ? t_us : w->now_us;
}

static inline void run_for(struct world *w, int64_t us)
{
    run_until(w, w->now_us + us);
}

static inline void open_node(struct world *w, uint32_t who, uint32_t n_known)
{
    struct node_config c = {.name = w->known[who].name,
                            .boot = 10 + who,
                            .incarnation = 2,
                            .own_seed = who,
                            .crypto = &w->crypto[who],
                            .known = w->known,
                            .n_known = n_known,
                            .found = true,
                            .run = w->run,
                            .make_trainer = quadratic,
                            .make_trainer_self = w->key[who],
                            .n_advertise = 1};
    const char *advertise = w->known[who].address[0];
    static const char *address[NODES];
    address[who] = advertise;
    c.advertise = &address[who];
    memcpy(c.id, w->key[who], WIRE_ID_BYTES);
    w->crypto[who] = (struct members_crypto){w->key[who], toy_verify, toy_sign};
    assert_int_equal(node_open(&w->node[who], &c), 0);
    struct node_event start = {.type = NODE_START};
    step(w, who, &start);
}

static inline void set_run(struct run *run, uint64_t rounds, uint32_t min_peers)
{
    char error[COMPRESS_ERROR_MAX], canonical[COMPRESS_SPEC_MAX];
    struct run_flags *flags = calloc(1, sizeof *flags);
    char text[RUN_ERROR_MAX];
    assert_non_null(flags);
    assert_int_equal(run_flags_set(flags, "topology", topology, text), 0);
    assert_int_equal(run_flags_set(flags, "rounds", "10", text), 0);
    assert_int_equal(run_from_flags(run, flags, text), 0);
    free(flags);
    if (strcmp(compressor, RUN_AUTO) == 0)
        memcpy(canonical, RUN_AUTO, sizeof RUN_AUTO);
    else
        assert_int_equal(compress_canonical(compressor, canonical, error), 0);
    snprintf(run->compress, sizeof run->compress, "%s", canonical);
    run->rounds = rounds;
    run->min_peers = min_peers;
    run->policy = RUN_SYNC;
    run->final_drift = 0;
}

/* friend: opens the node FRIEND, too. Otherwise the hostile peer is the node's only neighbour. */
static inline struct world *world_open(uint64_t rounds, uint32_t min_peers, bool friend)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->fx = calloc(1, sizeof *w->fx);
    assert_non_null(w->fx);
    w->now_us = 1000;
    w->evil = w->watch = UINT32_MAX;
    /* The node has the smaller identity, so it must dial the hostile member. */
    for (uint32_t i = 0; i < 4; i++)
        memcpy(w->key[i], id_of(i), WIRE_ID_BYTES);
    w->key[EVIL][0] = 0xff;
    for (uint32_t i = 0; i < 3; i++) {
        w->known[i] = unsigned_record(i, 1);
        memcpy(w->known[i].id, w->key[i], WIRE_ID_BYTES);
        w->known[i] = signed_record(w->known[i]);
    }
    set_run(&w->run, rounds, min_peers);
    for (uint32_t i = 0; i < NODES; i++)
        w->wake_us[i] = INT64_MAX;
    open_node(w, OURS, 3);
    if (friend)
        open_node(w, FRIEND, 3);
    return w;
}

static inline void world_close(struct world *w)
{
    w->hold = false;
    for (uint32_t i = 0; i < w->n_held; i++)
        packet_release(w->held[i]);
    for (uint32_t i = 0; i < NODES; i++) {
        struct node_event stop = {.type = NODE_STOP}, worked = {.type = NODE_WORKED};
        if (w->node[i] == NULL)
            continue;
        stop.now_us = worked.now_us = w->now_us;
        node_step(w->node[i], &stop, w->fx);
        if (w->work_us[i] != 0)
            node_step(w->node[i], &worked, w->fx);
        node_close(w->node[i]);
    }
    for (; w->n_mail > 0; w->n_mail--, w->first = (w->first + 1) % PENDING)
        free(w->mail[w->first].bytes);
    free(w->delta);
    free(w->fx);
    free(w);
}

/* ---- actions of the hostile member ---- */

/* Delivers a message to the node at once, and records its answers. */
static inline void say(struct world *w, uint32_t link, const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n > 0 ? n : 1);
    assert_non_null(exact);
    if (n > 0)
        memcpy(exact, bytes, n);
    struct node_event ev = {.type = NODE_RECV, .link = link, .recv = {exact, n}};
    assert_true(link != UINT32_MAX && w->link[link].up);
    step(w, OURS, &ev);
    free(exact);
    flush(w);
}

static inline void evil_says(struct world *w, const uint8_t *bytes, size_t n)
{
    say(w, w->evil, bytes, n);
}

static inline void evil_connects(struct world *w)
{
    disconnect(w, w->evil, false);
    w->hung_up = w->violation = false;
    free(w->delta);
    w->delta = NULL;
    w->seen = (struct wire_seen){0};
    w->evil = w->n_links; /* The events of the new session need w->evil, so it is set first. */
    (void)connect_ends(w, EVIL, OURS, 0);
    flush(w);
}

static uint8_t scratch[SCRATCH];

static inline struct wire_hello good_hello(struct world *w, char *text)
{
    struct wire_hello h = {.version = WIRE_VERSION,
                           .role = WIRE_PEER,
                           .has_run = true,
                           .has_started = true,
                           .run = {(uint8_t *)text, run_text(&w->run, text)},
                           .round = 3,
                           .record = w->known[EVIL]};
    return h;
}

static inline void evil_hello(struct world *w)
{
    char text[WIRE_RUN_MAX + 1];
    struct wire_hello h = good_hello(w, text);
    evil_says(w, scratch, wire_put_hello(scratch, sizeof scratch, &h));
    assert_false(w->hung_up);
}

/* Sends HELLO and EDGE. Then the edge is open, in a new epoch and at round 0. */
static inline void evil_opens(struct world *w)
{
    static uint64_t nonce = 1000;
    evil_connects(w);
    evil_hello(w);
    /* The node opens its edge to the hostile peer between two jobs, and a job may first wait for
     * that peer. */
    for (int k = 0; k < 400 && !w->seen.edge; k++)
        run_for(w, STEP_US);
    assert_true(w->seen.edge);
    struct wire_edge m = {.nonce = ++nonce, .boot = 66, .first = true};
    evil_says(w, scratch, wire_put_edge(scratch, sizeof scratch, &m));
    assert_false(w->hung_up);
    for (int k = 0; k < 400 && !w->seen.delta; k++)
        run_for(w, STEP_US);
    assert_true(w->seen.delta);
    assert_int_equal(w->seen.last_delta.round, 0);
}

/* Writes the statistics, if the model has any, to the start of a delta's payload. Returns their
 * length. */
static inline size_t good_head(uint8_t *payload)
{
    static const uint8_t one[4] = {0, 0, 0x80, 0x3f};
    if (!statistics)
        return 0;
    payload[0] = 1;
    for (size_t k = 0; k < STATISTICS; k++)
        memcpy(payload + 1 + 4 * k, one, sizeof one);
    return 1 + 4 * STATISTICS;
}

/* Makes a delta that the node must accept: of the present round, and in the run's codec or, with
 * --compress auto, in the second codec level. */
static inline struct wire_delta good_delta(struct world *w, uint8_t *payload)
{
    bool by_drift = strcmp(w->run.compress, RUN_AUTO) == 0;
    size_t head = good_head(payload);
    struct compress *codec;
    float x[DIM], zero[DIM] = {0};
    struct compress_stat stat;
    struct wire_delta d = {.epoch = w->seen.last_delta.epoch,
                           .round = w->seen.last_delta.round,
                           .run_round = w->seen.last_delta.run_round,
                           .degree = 2,
                           .codec = by_drift ? DELTA_RUNG + 1 : DELTA_RUN};
    for (size_t k = 0; k < DIM; k++)
        x[k] = (float)k * 0.01f;
    struct compress_input in = {.draw = 1, .x = x, .x_hat = zero};
    assert_int_equal(
        compress_open(&codec, by_drift ? codec_levels_spec[1] : w->run.compress, segment, 1), 0);
    assert_int_equal(compress_encode(codec, &in, payload + head, &d.payload.n, &stat), 0);
    compress_close(codec);
    d.payload.n += head;
    d.payload.p = payload;
    d.x2 = (float)stat.x2;
    d.e2 = (float)stat.e2;
    return d;
}

static inline size_t put_delta(uint8_t *out, const struct wire_delta *d)
{
    size_t n = wire_put_delta(out, SCRATCH - 16384, d);
    memcpy(out + n, d->payload.p, d->payload.n);
    return n + d->payload.n;
}

/* ---- invariants ---- */

static const float *model(const struct world *w, uint32_t who)
{
    const struct segment *s;
    size_t n_segments, n;
    const float *x = node_model(w->node[who], &s, &n_segments, &n);
    assert_non_null(x);
    return x;
}

static inline struct node_progress progress(const struct world *w, uint32_t who)
{
    struct node_progress p;
    node_progress(w->node[who], &p);
    return p;
}

/* Asks the node for STATUS as the observer WATCH. The node must still answer. */
static const struct wire_status *status(struct world *w)
{
    if (w->watch == UINT32_MAX || !w->link[w->watch].up) {
        struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_OBSERVER};
        w->watch = w->n_links;
        (void)connect_ends(w, WATCH, OURS, 0);
        flush(w);
        say(w, w->watch, scratch, wire_put_hello(scratch, sizeof scratch, &h));
    }
    w->seen.has_status = false;
    uint8_t out[16];
    say(w, w->watch, out, wire_put_status_req(out, sizeof out));
    assert_true(w->seen.has_status);
    return &w->seen.status;
}

static const struct wire_status_edge *edge_with(struct world *w, uint32_t who)
{
    const struct wire_status *s = status(w);
    for (uint32_t i = 0; i < s->n_edges; i++)
        if (memcmp(s->edges[i].id, w->key[who], WIRE_ID_BYTES) == 0)
            return &s->edges[i];
    return NULL;
}

static inline void check_friend(struct world *w)
{
    const struct wire_status_edge *e = edge_with(w, FRIEND);
    assert_non_null(e);
    assert_int_equal(e->state, EDGE_OPEN);
    assert_int_equal(e->resets, 0);
    assert_int_equal(progress(w, FRIEND).violations, 0);
}

/* Checks that the node still trains, and mixes with the honest node FRIEND. */
static inline void check_alive(struct world *w)
{
    uint64_t round = progress(w, OURS).round, mixed = edge_with(w, FRIEND)->round;
    assert_int_equal(progress(w, OURS).phase, NODE_TRAINING);
    /* The node waits for a peer that claims to be a little behind, but only for a limited time. */
    for (int k = 0; k < 40 && progress(w, OURS).round < round + 4; k++)
        run_for(w, SECOND);
    run_for(w, 10 * STEP_US);
    check_friend(w);
    if (progress(w, OURS).round < round + 4 || edge_with(w, FRIEND)->round < mixed + 4)
        fail_msg("ours does not get on: round %llu", (unsigned long long)progress(w, OURS).round);
}

/* The node and its friend train. The hostile member, which they know by name, has not connected
 * yet. */
static inline struct world *world_in_training(uint64_t rounds)
{
    struct world *w = world_open(rounds, 2, true);
    run_for(w, 11 * SECOND); /* The nodes first wait for edges to the hostile member. */
    assert_int_equal(progress(w, OURS).phase, NODE_TRAINING);
    check_friend(w);
    return w;
}

#endif
