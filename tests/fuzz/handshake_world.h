/* tests/fuzz/handshake_world.h -- a peer with one hostile connection, for fuzz_handshake.c.
 *
 *     evil (a struct channel) <-- toy.written --- link --- node "ours"
 *                             --- arrive -------->
 *
 * The bits of the setup byte:
 *
 *   bit   meaning if set
 *   0     ours dials
 *   1, 2  number of the version range that evil offers
 *   3     ours has a list of allowed members
 *   4     evil is on that list
 *   5     evil has the same identity as ours
 *   6     evil's records have a certificate
 *   7     the run does not wait for other members */
#ifndef TESTS_FUZZ_HANDSHAKE_WORLD_H
#define TESTS_FUZZ_HANDSHAKE_WORLD_H

#include "tests/fuzz/toy_sodium.h"
#include "tests/fuzz/toy_uv.h"

#include "peer/node/inspect.h"
#include "peer/secure/frame.h"
#include "peer/uv/link.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIM = 8, STEPS_MAX = 64, ANSWERS_MAX = 64 };

static struct
{
    uint8_t setup;
    struct node *node;
    struct node_effects *fx;
    struct uv_link_net net;
    struct uv_link link;
    struct replay answered;
    struct channel_identity ours, theirs;
    struct channel evil; /* The hostile end of the connection, whichever end dials. */
    uint32_t number;
    bool node_knows; /* The node has received LINK_UP for the link of this connection. */
    /* listed: the peer under test has an allow-list of members. over: the node has ended. */
    bool listed, over;
    uint8_t list[2][WIRE_ID_BYTES];
    size_t n_list;
    bool evil_listed;
    /* Bytes that the node had written (toy.n_total) when the connection began. */
    size_t base_total;
    /* True: no modified byte was sent on this connection, and its first handshake message was never
     * sent before. */
    bool honest;
    /* True: check_replay() has recorded the first handshake message of this connection. */
    bool judged;
    uint8_t answered_to[ANSWERS_MAX][32], n_connections, n_answered;
    uint32_t n_steps; /* Number of node steps in the current operation of the input. */
    struct run run;
    char text[WIRE_RUN_MAX + 1];
    size_t n_text;
} world;

static void demand(bool ok)
{
    if (!ok)
        abort();
}

/* ---- stand-ins for signatures and the model ---- */

static bool toy_verify(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                       const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)self;
    return channel_verify(id, msg, n, signature);
}

static void toy_sign(void *self, const uint8_t *msg, size_t n,
                     uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    channel_sign(self, msg, n, signature);
}

static void model_init(void *self, float *x)
{
    (void)self;
    for (size_t k = 0; k < DIM; k++)
        x[k] = (float)k;
}

static void model_steps(void *self, float *x, uint64_t round, uint32_t n, struct trainer_report *r)
{
    (void)self, (void)round, (void)n;
    for (size_t k = 0; k < DIM; k++)
        x[k] *= 0.99f;
    *r = (struct trainer_report){.n_samples = 1};
}

static void model_evaluate(void *self, const float *x, uint64_t most, struct trainer_report *r)
{
    (void)self, (void)x, (void)most;
    *r = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    static const struct segment segment = {
        .name = "x", .n = DIM, .rows = 1, .cols = DIM, .n_dims = 1, .dims = {DIM}, .trained = true};
    (void)self, (void)run, (void)error;
    *t = (struct trainer){.n_params = DIM,
                          .segments = &segment,
                          .n_segments = 1,
                          .init = model_init,
                          .steps = model_steps,
                          .evaluate = model_evaluate};
    return 0;
}

static int64_t no_clock(void)
{
    return 0;
}

/* ---- the node and its link ---- */

static void feed(struct node_event ev);

static void check_note(const struct node_note *note)
{
    demand(memchr(note->text, '\0', sizeof note->text) != NULL && note->text[0] != '\0');
    for (const char *c = note->text; *c != '\0'; c++)
        demand((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* Performs the effects of the last node step, which are valid only until the next step. */
static void obey(void)
{
    struct node_effects *fx = world.fx;
    uint32_t n_dials = fx->n_dials, tag[NODE_DIALS_MAX];
    bool work = fx->work, keep = fx->write_model;
    for (uint32_t i = 0; i < fx->n_notes; i++)
        check_note(&fx->notes[i]);
    for (uint32_t i = 0; i < n_dials; i++)
        tag[i] = fx->dials[i].tag;
    world.over |= fx->exit;
    for (uint32_t i = 0; i < fx->n_sends; i++)
        if (world.node_knows && fx->sends[i].link == world.number)
            uv_link_send(&world.link, fx->sends[i].bulk, fx->sends[i].head, fx->sends[i].n_head,
                         fx->sends[i].body);
    for (uint32_t i = 0; i < fx->n_hangups; i++)
        if (world.node_knows && fx->hangups[i].link == world.number)
            uv_link_hangup(&world.link, true);
    for (uint32_t i = 0; i < n_dials; i++)
        feed((struct node_event){.type = NODE_DIAL_FAILED, .dial = {.tag = tag[i]}});
    if (keep)
        feed((struct node_event){.type = NODE_KEPT, .kept = {NULL}});
    if (work) {
        node_work(world.node, no_clock);
        feed((struct node_event){.type = NODE_WORKED});
    }
}

/* Stops the node before the input ends. Running jobs are finished, because the node can only be
 * closed without them. */
static void end_early(void)
{
    struct node_event ev = {.type = NODE_STOP, .now_us = (int64_t)toy.now_ms * 1000};
    bool work = world.fx->work;
    world.over = true;
    node_step(world.node, &ev, world.fx);
    for (ev.type = NODE_WORKED; work; work = world.fx->work) {
        node_work(world.node, no_clock);
        node_step(world.node, &ev, world.fx);
    }
}

/* Gives the node one event and performs its effects. The number of steps per operation is limited,
 * because a peer without neighbours would train without end. */
static void feed(struct node_event ev)
{
    if (world.over && ev.type != NODE_WORKED)
        return;
    ev.now_us = (int64_t)toy.now_ms * 1000;
    world.n_steps++;
    node_step(world.node, &ev, world.fx);
    if (world.n_steps > STEPS_MAX && ev.type == NODE_WORKED) {
        end_early();
        return;
    }
    obey();
}

static void on_up(void *self, struct uv_link *l)
{
    (void)self;
    const struct channel *c = &l->channel;
    demand(c->state == CHANNEL_OPEN && world.evil.state != CHANNEL_FAILED);
    demand(c->version >= world.net.versions.least && c->version <= world.net.versions.most);
    demand(c->version >= c->theirs.least && c->version <= c->theirs.most);
    struct node_event ev = {.type = NODE_LINK_UP, .link = ++world.number};
    memcpy(ev.up.id, c->peer_id, sizeof ev.up.id);
    ev.up.dialled = l->dialled;
    ev.up.tag = l->dialled ? UINT32_MAX : 0;
    ev.up.version = c->version;
    ev.up.local_host = "127.0.0.1";
    ev.up.remote_host = "127.0.0.2";
    world.node_knows = true;
    feed(ev);
}

static void on_recv(void *self, struct uv_link *l, const uint8_t *bytes, size_t n)
{
    (void)self, (void)l;
    feed((struct node_event){.type = NODE_RECV, .link = world.number, .recv = {bytes, n}});
}

static void on_sent(void *self, struct uv_link *l)
{
    (void)self, (void)l;
    feed((struct node_event){.type = NODE_SENT, .link = world.number});
}

static void on_ended(void *self, struct uv_link *l)
{
    (void)self;
    if (l->was_up && world.node_knows)
        feed((struct node_event){.type = NODE_LINK_DOWN, .link = world.number, .down = {l->clean}});
    world.node_knows = false;
}

static size_t limit(void *self, bool bulk)
{
    (void)self;
    return bulk ? node_bulk_max(world.node) : node_control_max(world.node);
}

/* Opens a connection: dialled by the node, or accepted by it. again: the hostile end repeats a
 * first handshake message that it has sent before. */
static void world_connect(bool dialled, bool again)
{
    uint8_t ephemeral[32] = {3, 1, 4};
    static const uint8_t psk[CHANNEL_KEY] = {2, 7, 1};
    static const union uv_address nowhere = {.v4 = {.sin_family = AF_INET}};
    uv_tcp_t server;
    if (world.link.state != UV_LINK_FREE)
        return;
    toy.n_written = 0;
    world.base_total = toy.n_total;
    world.judged = false;
    world.honest = !again && toy.status == 0;
    world.n_connections += !again;
    ephemeral[3] = world.n_connections;
    channel_init(&world.evil, !dialled, world.setup & 32 ? &world.ours : &world.theirs, psk,
                 ephemeral);
    uint16_t version = WIRE_VERSION;
    const struct channel_versions versions[4] = {{WIRE_VERSION_LEAST, version},
                                                 {version, (uint16_t)(version + 3)},
                                                 {(uint16_t)(version + 1), UINT16_MAX},
                                                 {0, version}};
    channel_speak(&world.evil, versions[world.setup >> 1 & 3]);
    int err = dialled ? uv_link_dial(&world.link, &world.net, &nowhere, 1)
                      : uv_link_accept(&world.link, &world.net, (uv_stream_t *)&server);
    demand(err == 0);
    toy_uv_settle();
}

/* ---- operations of the input ---- */

static void world_arrive(const uint8_t *p, size_t n, size_t piece)
{
    world.n_steps = 0;
    toy_uv_arrive((uv_handle_t *)&world.link.tcp, p, n, piece);
    if (world.evil.state == CHANNEL_OPEN || world.evil.state == CHANNEL_FAILED)
        toy.n_written = 0;
}

/* Writes the next handshake message of the hostile end of the connection. Returns its length, or 0
 * if it is not the turn of that end or the handshake has failed. */
static size_t world_shake(uint8_t out[CHANNEL_MSG2])
{
    size_t n = 0, wants = channel_wants(&world.evil);
    bool begins = world.evil.initiator && world.evil.state == CHANNEL_WAIT_MSG1;
    if (!begins && (wants == 0 || toy.n_written < wants))
        return 0;
    if (channel_handshake(&world.evil, toy.written, wants, out, &n) < 0)
        return 0;
    memmove(toy.written, toy.written + wants, toy.n_written - wants);
    toy.n_written -= wants;
    return n;
}

static void world_time(uint64_t ms)
{
    world.n_steps = 0;
    /* The clock is moved forward, so the next handshake message may arrive too late for the time
     * limit of the handshake. The peer may therefore refuse it. */
    world.honest = false;
    toy_uv_time(ms);
    feed((struct node_event){.type = NODE_TIMER});
    toy_uv_settle();
}

static void world_end(uint8_t how)
{
    world.n_steps = 0;
    world.honest = false;
    if (how & 8)
        toy.status = how & 16 ? UV_EPIPE : 0;
    switch (how & 7) {
    case 0:
        toy_uv_end((uv_handle_t *)&world.link.tcp, UV_EOF);
        break;
    case 1:
        toy_uv_end((uv_handle_t *)&world.link.tcp, UV_ECONNRESET);
        break;
    case 2:
        uv_link_hangup(&world.link, true);
        toy_uv_settle();
        break;
    case 3:
        uv_link_hangup(&world.link, false);
        toy_uv_settle();
        break;
    default:
        world_connect(how & 1, how & 32);
        break;
    }
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, WIRE_ID_BYTES);
}

static void world_admit(uint8_t who)
{
    world.n_steps = 0;
    world.n_list = 0;
    world.evil_listed = who & 1;
    if (who & 1)
        memcpy(world.list[world.n_list++], world.theirs.sign_pk, WIRE_ID_BYTES);
    if (who & 2)
        memcpy(world.list[world.n_list++], world.ours.sign_pk, WIRE_ID_BYTES);
    qsort(world.list, world.n_list, sizeof *world.list, compare);
    world.listed = true;
    feed((struct node_event){
        .type = NODE_ADMIT,
        .admit = {(const uint8_t(*)[WIRE_ID_BYTES])world.list, world.n_list, 1700000000}});
    toy_uv_settle();
}

static struct record record_of_evil(uint64_t incarnation)
{
    struct record r = {.n_addresses = 1, .incarnation = incarnation, .boot = 77};
    memcpy(r.id,
           world.evil.identity != NULL ? world.evil.identity->sign_pk
           : world.setup & 32          ? world.ours.sign_pk
                                       : world.theirs.sign_pk,
           WIRE_ID_BYTES);
    strcpy(r.name, "evil");
    strcpy(r.address[0], "127.0.0.2:7100");
    r.state = RECORD_RUNNING;
    r.invited = world.setup & 64;
    if (r.invited) {
        memcpy(r.certificate.issuer, world.ours.sign_pk, WIRE_ID_BYTES);
        r.certificate.expires_ms = 1700000001000;
        r.certificate.key[0] = 5;
    }
    /* The signature is zeros. The replacement of the signature check (toy_sodium.h) accepts it. */
    return r;
}

/* Writes a message that an honest peer might send, in canonical encoding. */
static size_t world_template(uint8_t which, uint8_t *out, size_t cap)
{
    static struct record records[4];
    static struct accusation accusation;
    static struct vouch vouch;
    struct record self = record_of_evil(1 + which / 16);
    struct wire_hello hello = {.version = WIRE_VERSION,
                               .role = WIRE_PEER,
                               .has_run = !(which & 16),
                               .has_started = which & 32,
                               .run = {(const uint8_t *)world.text, world.n_text},
                               .round = which >> 6,
                               .record = self};
    if (!hello.has_run)
        hello.run.n = 0;
    switch (which & 15) {
    case 0:
        return wire_put_hello(out, cap, &hello);
    case 1:
        return wire_put_hello(out, cap,
                              &(struct wire_hello){.version = WIRE_VERSION, .role = WIRE_OBSERVER});
    case 2:
        return wire_put_status_req(out, cap);
    case 3:
        return wire_put_ping(out, cap, &(struct wire_ping){.round = which >> 4, .busy_ms = 3});
    case 4:
        return wire_put_refused(out, cap,
                                &(struct wire_refused){.why = which >> 4 & 3, .name = "evil"});
    case 5:
        return wire_put_edge_close(out, cap);
    case 6:
        return wire_put_edge(out, cap, &(struct wire_edge){.epoch = which >> 4, .nonce = 1});
    case 7:
        return wire_put_beat(out, cap, &(struct wire_beat){.run_round = which >> 4});
    case 8:
        return wire_put_model_req(
            out, cap,
            &(struct wire_model_req){.round = which & 16 ? WIRE_ROUND_INITIAL : which >> 4});
    case 9: {
        struct wire_probe probe;
        memcpy(probe.id, which & 16 ? world.ours.sign_pk : self.id, sizeof probe.id);
        return wire_put_probe(out, cap, &probe);
    }
    default:
        break;
    }
    for (uint32_t i = 0; i < 4; i++) {
        records[i] = self;
        records[i].id[0] = (uint8_t)(i * (which >> 4));
        snprintf(records[i].name, sizeof records[i].name, "ghost-%u", (unsigned)i);
    }
    memcpy(accusation.accused, which & 16 ? world.ours.sign_pk : records[1].id, WIRE_ID_BYTES);
    memcpy(accusation.accuser, self.id, WIRE_ID_BYTES);
    memcpy(vouch.member, records[2].id, WIRE_ID_BYTES);
    memcpy(vouch.voucher, self.id, WIRE_ID_BYTES);
    return wire_put_members(out, cap,
                            &(struct wire_members){.n_records = 4,
                                                   .n_accusations = 1,
                                                   .n_vouches = 1,
                                                   .records = records,
                                                   .accusations = &accusation,
                                                   .vouches = &vouch});
}

/* ---- properties that must hold ---- */

/* Checks that the peer under test answers each first handshake message at most once, counted over
 * all connections. */
static void check_replay(void)
{
    const struct channel *c = &world.link.channel;
    if (world.link.state != UV_LINK_HANDSHAKE || c->state != CHANNEL_WAIT_MSG3 || world.judged)
        return;
    world.judged = true;
    for (uint8_t i = 0; i < world.n_answered; i++)
        demand(memcmp(world.answered_to[i], c->noise.re, 32) != 0);
    if (world.n_answered < ANSWERS_MAX)
        memcpy(world.answered_to[world.n_answered++], c->noise.re, 32);
}

static void world_check(void)
{
    const struct segment *segments;
    struct node_progress progress;
    struct node_size size;
    size_t n_segments, n = 0;
    const struct uv_link *l = &world.link;
    bool stranger = l->state == UV_LINK_HANDSHAKE && !l->dialled && !l->knows_key;
    demand(!stranger || toy.n_total == world.base_total);
    demand(l->state != UV_LINK_OPEN || l->was_up);
    demand(!world.honest || world.evil.state != CHANNEL_OPEN || l->was_up);
    check_replay();
    if (world.over)
        return;
    node_size(world.node, &size);
    node_progress(world.node, &progress);
    demand(size.n_members <= WIRE_MEMBERS_MAX && size.n_links <= 1);
    if (world.listed && !world.evil_listed && !(world.setup & (32 | 64)))
        demand(!node_counts(world.node, world.theirs.sign_pk));
    const float *x = node_model(world.node, &segments, &n_segments, &n);
    for (size_t k = 0; x != NULL && k < DIM; k++)
        demand(fabsf(x[k]) < 1e30f);
}

static void prepare_once(void)
{
    static struct run_flags flags;
    char error[RUN_ERROR_MAX];
    uint8_t seed[32] = {1};
    static const char *const given[][2] = {{"rounds", "100"},
                                           {"topology", "complete"},
                                           {"compress", "topk:0.25"},
                                           {"final-drift", "0"}};
    if (world.fx != NULL)
        return;
    demand(sodium_init() >= 0);
    world.fx = calloc(1, sizeof *world.fx);
    demand(world.fx != NULL);
    channel_identity_from_seed(&world.ours, seed);
    seed[0] = 2;
    channel_identity_from_seed(&world.theirs, seed);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        demand(run_flags_set(&flags, given[i][0], given[i][1], error) == 0);
    demand(run_from_flags(&world.run, &flags, error) == 0);
}

static void world_open(uint8_t setup)
{
    static const uint8_t psk[CHANNEL_KEY] = {2, 7, 1};
    static const uint8_t replay_key[REPLAY_KEY] = {1};
    static const char *const address = "127.0.0.1:7100";
    static struct members_crypto crypto = {&world.ours, toy_verify, toy_sign};
    prepare_once();
    memset(&toy, 0, offsetof(__typeof__(toy), written));
    toy.n_written = toy.n_total = 0;
    toy.now_ms = 1000;
    world.setup = setup;
    world.number = 0;
    world.n_connections = world.n_answered = 0;
    world.node_knows = world.listed = world.over = world.evil_listed = false;
    world.run.min_peers = setup & 128 ? 1 : 2;
    world.n_text = run_text(&world.run, world.text);
    memset(&world.link, 0, sizeof world.link);
    replay_init(&world.answered, replay_key);
    world.net = (struct uv_link_net){.identity = &world.ours,
                                     .psk = psk,
                                     .versions = {WIRE_VERSION_LEAST, WIRE_VERSION},
                                     .answered = &world.answered,
                                     .limits = uv_link_limits_default,
                                     .up = on_up,
                                     .recv = on_recv,
                                     .sent = on_sent,
                                     .ended = on_ended,
                                     .limit = limit};
    struct node_config c = {.name = "ours",
                            .boot = 10,
                            .incarnation = 2,
                            .own_seed = 3,
                            .crypto = &crypto,
                            .found = true,
                            .run = world.run,
                            .make_trainer = make_trainer,
                            .advertise = &address,
                            .n_advertise = 1};
    memcpy(c.id, world.ours.sign_pk, WIRE_ID_BYTES);
    demand(node_open(&world.node, &c) == 0);
    world.n_steps = 0;
    feed((struct node_event){.type = NODE_START});
    if (setup & 8)
        world_admit(2 | (setup >> 4 & 1));
    world_connect(setup & 1, false);
}

static void world_close(void)
{
    uv_link_hangup(&world.link, false);
    toy_uv_settle();
    demand(world.link.state == UV_LINK_FREE);
    for (int i = 0; i < TOY_HANDLES; i++)
        demand(toy.at[i].handle == NULL);
    channel_close(&world.evil);
    node_close(world.node);
}

#endif
