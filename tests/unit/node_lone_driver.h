/* tests/unit/node_lone_driver.h -- the driver of node_lone_world.h: passes events to the node,
 * records its effects, and opens and ends sessions. */
#ifndef TESTS_UNIT_NODE_LONE_DRIVER_H
#define TESTS_UNIT_NODE_LONE_DRIVER_H

#include "compress/compress.h"
#include "gossip/exchange/edge.h"
#include "nn/math/rng.h"
#include "peer/node/node.h"
#include "tests/unit/gossip_toy.h"

#include <errno.h>
#include <math.h>

enum {
    LONE_ACTORS = 16,
    LONE_DIM = 40,
    LONE_LINKS = 4096,
    LONE_MAIL = 4096,
    LONE_NOTES = 512,
    LONE_STEP_US = 20 * 1000,
    /* First byte of the node's identity. The first byte of a simulated peer's identity may be
     * smaller or larger, as the test requires. */
    LONE_OURS_FIRST = 0x80,
    NO_LINK = -1
};

struct lone_actor
{
    uint8_t id[WIRE_ID_BYTES];
    struct record record;
    int link;     /* Number of the simulated peer's link with the node. NO_LINK: none. */
    bool answers; /* The simulated peer accepts dials of the node. */
    /* The simulated peer accepts dials only at the address with this index in its record. */
    uint32_t nth;
    bool follows; /* The simulated peer behaves as an honest peer. false: it is silent. */
    bool goes_on; /* The simulated peer does not finish when the node does. */
    /* Number of rounds that the simulated peer has done according to its HELLO. 0: the run has not
     * begun. */
    uint64_t started;
    /* Round of the model that the simulated peer has fetched, if it has not started training. */
    uint64_t fetched;
    /* Number of rounds that is added to the run_round of the simulated peer's messages. */
    uint64_t ahead;
    bool lies;  /* The simulated peer's next delta has a wrong replica hash. */
    bool blind; /* The simulated peer sends no sketches. */
    /* If the node asks the simulated peer about a silent member, this peer confirms that it has
     * just heard that member. */
    bool vouches;
    uint64_t nonce;
    /* Counts of the messages that the node sent to the simulated peer. */
    uint32_t n_hello, n_edge, n_delta, n_ping, n_model_req, n_close, n_model, n_members, n_dialled;
    struct record told; /* The node's own record, as the simulated peer received it last. */
    bool told_finished; /* The node has announced that its model is final. */
    bool told_trained;  /* The node has announced the end of its training. */
    bool told_stalled;  /* The node has announced that its worker hangs. */
    uint32_t n_beat, busy_ms;
    /* Number of MOMENTS messages (statistics of a member's data). moments_of: record of that member
     * in the last message. */
    uint32_t n_moments;
    struct record moments_of;
    uint32_t n_refused;          /* Number of times that the node refused the simulated peer. */
    struct wire_refused refused; /* The last REFUSED message that the simulated peer received. */
    uint32_t n_callback;         /* Number of CALLBACK messages that the simulated peer received. */
    /* The last CALLBACK message that the simulated peer received. */
    struct wire_callback callback;
    uint32_t n_finish; /* Number of FINISH messages that the simulated peer received. */
    /* Number of HEARD messages that the simulated peer received. With HEARD the node says that it
     * has recently received something from another member. */
    uint32_t n_heard;
    /* Number of BEAT messages that the simulated peer received before the delta of their step. */
    uint32_t n_early;
    uint64_t beat; /* Step in the last BEAT message that the simulated peer received. */
    /* The node has told the simulated peer that an earlier process of this peer was an initial
     * member. */
    bool reminded;
    bool told_others; /* The node has sent records of other members to the simulated peer. */
    /* Number of accusations that the node sent against simulated peer 1. */
    uint32_t n_accusations;
    struct wire_edge edge;
    /* delta: the last delta that the simulated peer received. first: the first one of the edge's
     * last epoch. */
    struct wire_delta delta, first;
    /* Tags of the node's last sketch in training and its first sketch after training. */
    uint64_t window[2];
    struct wire_status status;
    uint64_t model_round;
    float model[LONE_DIM];
    /* Number of the model piece in the last MODEL message to the simulated peer. */
    uint32_t model_piece;
    /* Key with which the sketches in the last MODEL message were drawn. 0: no sketches. */
    uint64_t model_key;
    uint8_t last[8192]; /* Payload of the last delta that the simulated peer received. */
    size_t n_last;
};

struct lone
{
    struct node *node;
    /* Configuration of the node. A test may change it before lone_open(). */
    struct node_config config;
    struct members_crypto crypto;
    struct run run;
    uint8_t id[WIRE_ID_BYTES];
    struct lone_actor actor[LONE_ACTORS];
    struct record known[LONE_ACTORS];
    uint32_t n_actors;
    struct node_effects *fx;
    int64_t now_us, wake_us, work_us; /* work_us: end of the running job. 0: no job. */
    int64_t step_us; /* Duration of the jobs that begin from now on, in microseconds. */
    struct
    {
        uint32_t actor;
        bool up, hung_up, violation;
    } link[LONE_LINKS];
    uint32_t n_links;
    struct
    {
        uint32_t link;
        uint8_t *bytes;
        size_t n;
    } mail[LONE_MAIL]; /* Messages of the node that the simulated peers have not received yet. */
    uint32_t first, n_mail;
    uint32_t n_resolves[NODE_SEEDS_MAX], n_dials, n_notes, n_errors;
    char notes[LONE_NOTES][NODE_NOTE_MAX];  /* The first LONE_NOTES notes that the node reported. */
    enum note_level note_level[LONE_NOTES]; /* Levels of these notes. */
    bool deaf;                              /* The node's dials get no answer at all. */
    bool no_route; /* True: dials that fail do so because there is no route to the host. */
    /* True: every address that belongs to no simulated peer is an address of the node itself. */
    bool alone;
    bool over, wrote_model;
    /* slow_disk: the result of storing the model is not reported yet. full_disk: storing fails. */
    bool slow_disk, full_disk;
    int exit_code;
    /* Fields of the node's trainer. */
    float loss; /* Loss that the trainer reports. */
    float pull; /* Fraction of the distance to the optimum by which a local step moves the model. */
    uint64_t n_steps; /* Number of calls of lone_steps(), which does local steps. */
    /* evaluated_most: limit on the number of samples in the last evaluation. 0: no limit. */
    uint64_t n_evaluations, evaluated_most;
    /* Number of calls of lone_members(), by which the node assigns shares of the training data to
     * members. n_keys: number of members in the last successful call. */
    uint64_t n_shares;
    size_t n_keys;
    uint32_t share_fails; /* The next `share_fails` calls of lone_members() fail. */
    uint64_t n_masked; /* Number of calls of lone_sent(), the trainer's hook that masks momentum. */
    /* Number of times that the trainer reports progress during local steps or an evaluation. */
    uint32_t n_batches;
    void (*sign)(void *arg);
    void *sign_arg;
    uint32_t n_signs; /* Number of calls of config.sign, by which the node reports progress. */
};

static const struct segment lone_segment = {.name = "x",
                                            .n = LONE_DIM,
                                            .rows = 1,
                                            .cols = LONE_DIM,
                                            .n_dims = 1,
                                            .dims = {LONE_DIM},
                                            .trained = true};

/* ---- the trainer ---- */

static inline void lone_init_model(void *self, float *x)
{
    (void)self;
    for (size_t k = 0; k < LONE_DIM; k++)
        x[k] = 1;
}

static inline void lone_signs(void *self, void (*sign)(void *arg), void *arg)
{
    struct lone *w = self;
    w->sign = sign;
    w->sign_arg = arg;
}

static inline void lone_batches(const struct lone *w)
{
    for (uint32_t i = 0; i < w->n_batches && w->sign != NULL; i++)
        w->sign(w->sign_arg);
}

/* The callback config.sign, by which the node reports that a long job makes progress. */
static inline void lone_signed(void *self)
{
    struct lone *w = self;
    w->n_signs++;
}

static inline void lone_steps(void *self, float *x, uint64_t round, uint32_t n,
                              struct trainer_report *report)
{
    struct lone *w = self;
    (void)n;
    w->n_steps++;
    lone_batches(w);
    for (size_t k = 0; k < LONE_DIM; k++)
        x[k] -= w->pull * (x[k] - rng_unit_at(7 + round, k));
    *report = (struct trainer_report){.n_samples = 1, .loss = (double)w->loss};
}

static inline void lone_evaluate(void *self, const float *x, uint64_t most,
                                 struct trainer_report *report)
{
    struct lone *w = self;
    (void)x;
    w->n_evaluations++;
    lone_batches(w);
    w->evaluated_most = most;
    *report = (struct trainer_report){.n_samples = 1};
}

static inline int lone_members(void *self, const uint64_t *keys, size_t n, uint64_t own)
{
    struct lone *w = self;
    bool among = false;
    for (size_t i = 0; i < n; i++)
        among |= keys[i] == own;
    assert_true(among);
    w->n_shares++;
    if (w->share_fails > 0) {
        w->share_fails--;
        return -ENOMEM;
    }
    w->n_keys = n;
    return 0;
}

static inline void lone_sent(void *self, const float *sent)
{
    struct lone *w = self;
    assert_non_null(sent);
    w->n_masked++;
}

static inline int lone_trainer(void *self, const struct run *run, struct trainer *t,
                               char error[RUN_ERROR_MAX])
{
    (void)run, (void)error;
    *t = (struct trainer){.n_params = LONE_DIM,
                          .segments = &lone_segment,
                          .n_segments = 1,
                          .self = self,
                          .init = lone_init_model,
                          .steps = lone_steps,
                          .signs = lone_signs,
                          .sent = lone_sent,
                          .evaluate = lone_evaluate,
                          .members = lone_members};
    return 0;
}

/* ---- the driver ---- */

/* Time by which each call of lone_clock() advances the clock of the jobs, in microseconds. */
static int64_t lone_tick_us;

static inline int64_t lone_clock(void)
{
    static int64_t now_us;
    return now_us += lone_tick_us;
}

static inline void lone_step(struct lone *w, struct node_event *ev);

/* Opens a session with a simulated peer. node_dials: the node has dialled it, with the tag `tag`; 0:
 * with the tag of no real dial. Returns the number of the link. */
static inline int lone_connect(struct lone *w, uint32_t who, bool node_dials, uint32_t tag)
{
    int number = (int)w->n_links++;
    struct lone_actor *a = &w->actor[who];
    assert_true(number < LONE_LINKS);
    w->link[number].actor = who;
    w->link[number].up = true;
    a->link = number;
    struct node_event ev = {.type = NODE_LINK_UP,
                            .link = (uint32_t)number,
                            .up = {.dialled = node_dials,
                                   .version = WIRE_VERSION,
                                   .tag = node_dials && tag == 0 ? UINT32_MAX : tag,
                                   .local_host = "10.0.1.1",
                                   .remote_host = "10.0.1.2"}};
    memcpy(ev.up.id, a->id, WIRE_ID_BYTES);
    lone_step(w, &ev);
    return number;
}

static inline void lone_disconnect(struct lone *w, int link, bool clean)
{
    if (link == NO_LINK || !w->link[link].up)
        return;
    w->link[link].up = false;
    if (w->actor[w->link[link].actor].link == link)
        w->actor[w->link[link].actor].link = NO_LINK;
    struct node_event ev = {.type = NODE_LINK_DOWN, .link = (uint32_t)link, .down.clean = clean};
    lone_step(w, &ev);
}

static inline void lone_put_mail(struct lone *w, const struct node_send *s)
{
    size_t n_body = 0;
    const uint8_t *body = s->body != NULL ? packet_bytes(s->body, &n_body) : NULL;
    if (!w->link[s->link].up)
        return;
    assert_true(w->n_mail < LONE_MAIL);
    uint32_t at = (w->first + w->n_mail++) % LONE_MAIL;
    uint8_t *bytes = malloc(s->n_head + n_body);
    assert_non_null(bytes);
    memcpy(bytes, s->head, s->n_head);
    if (n_body > 0)
        memcpy(bytes + s->n_head, body, n_body);
    w->mail[at].link = s->link;
    w->mail[at].bytes = bytes;
    w->mail[at].n = s->n_head + n_body;
}

/* Returns the simulated peer that has this address, and stores the index of the address among those
 * of this peer in *nth. LONE_ACTORS: no such peer. */
static inline uint32_t lone_at(const struct lone *w, const char *address, uint32_t *nth)
{
    for (uint32_t i = 0; i < w->n_actors; i++)
        for (*nth = 0; *nth < w->actor[i].record.n_addresses; ++*nth)
            if (strcmp(w->actor[i].record.address[*nth], address) == 0)
                return i;
    return LONE_ACTORS;
}

/* The node has dialled its own address. Reports to the node that the session is established, as the
 * dialling end sees it. */
static inline void lone_connect_itself(struct lone *w, uint32_t tag)
{
    uint32_t number = w->n_links++;
    struct node_event ev = {.type = NODE_LINK_UP,
                            .link = number,
                            .up = {.dialled = true,
                                   .tag = tag,
                                   .version = WIRE_VERSION,
                                   .local_host = "10.0.1.1",
                                   .remote_host = "10.0.1.1"}};
    memcpy(ev.up.id, w->id, WIRE_ID_BYTES);
    w->link[number].up = true;
    lone_step(w, &ev);
}

static inline void lone_take_dial(struct lone *w, const struct node_dial *d)
{
    uint32_t nth, who = lone_at(w, d->address, &nth);
    w->n_dials++;
    if (who < LONE_ACTORS)
        w->actor[who].n_dialled++;
    if (w->deaf)
        return;
    if (who == LONE_ACTORS && w->alone) {
        lone_connect_itself(w, d->tag);
    } else if (who < LONE_ACTORS && w->actor[who].answers && w->actor[who].nth == nth) {
        (void)lone_connect(w, who, true, d->tag);
    } else {
        struct node_event failed = {
            .type = NODE_DIAL_FAILED,
            .dial = {.tag = d->tag, .why = w->no_route ? NODE_WHY_UNREACHABLE : NODE_WHY_REFUSED}};
        lone_step(w, &failed);
    }
}

static inline void lone_step(struct lone *w, struct node_event *ev);

/* Returns the number of the node's notes that contain `text`. */
static inline uint32_t lone_said(const struct lone *w, const char *text)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_notes && i < LONE_NOTES; i++)
        n += strstr(w->notes[i], text) != NULL;
    return n;
}

/* Returns the number of the node's warnings that contain `text`. */
static inline uint32_t lone_warned(const struct lone *w, const char *text)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_notes && i < LONE_NOTES; i++)
        n += w->note_level[i] == NOTE_WARNING && strstr(w->notes[i], text) != NULL;
    return n;
}

/* Reports to the node whether its model was stored. */
static inline void lone_kept(struct lone *w, bool stored)
{
    struct node_event ev = {.type = NODE_KEPT, .kept = {stored ? NULL : "model: the disk is full"}};
    lone_step(w, &ev);
}

static inline void lone_step(struct lone *w, struct node_event *ev)
{
    struct node_effects *fx = w->fx;
    struct node_dial dial[NODE_DIALS_MAX];
    char address[NODE_DIALS_MAX][WIRE_ADDRESS_MAX + 1];
    uint32_t hangup[NODE_LINKS_MAX];
    if (w->over && ev->type != NODE_WORKED)
        return;
    ev->now_us = w->now_us;
    node_step(w->node, ev, fx);
    uint32_t n_dials = fx->n_dials, n_hangups = fx->n_hangups;
    for (uint32_t i = 0; i < fx->n_sends; i++)
        lone_put_mail(w, &fx->sends[i]);
    for (uint32_t i = 0; i < n_hangups; i++) {
        hangup[i] = fx->hangups[i].link;
        w->link[hangup[i]].hung_up = true;
        w->link[hangup[i]].violation = fx->hangups[i].violation;
    }
    for (uint32_t i = 0; i < n_dials; i++) {
        snprintf(address[i], sizeof address[i], "%s", fx->dials[i].address);
        dial[i] = (struct node_dial){fx->dials[i].tag, address[i]};
    }
    for (uint32_t i = 0; i < fx->n_resolves; i++)
        w->n_resolves[fx->resolves[i].seed]++;
    for (uint32_t i = 0; i < fx->n_notes; i++) {
        if (w->n_notes < LONE_NOTES)
            memcpy(w->notes[w->n_notes], fx->notes[i].text, NODE_NOTE_MAX);
        if (w->n_notes < LONE_NOTES)
            w->note_level[w->n_notes] = fx->notes[i].level;
        w->n_notes++;
        w->n_errors += fx->notes[i].level == NOTE_ERROR;
        if (getenv("LOUD") != NULL)
            print_message("%.3f s: %s\n", (double)w->now_us * 1e-6, fx->notes[i].text);
    }
    w->wrote_model |= fx->write_model;
    bool store = fx->write_model && !fx->exit;
    if (fx->work) {
        node_work(w->node, lone_clock);
        w->work_us = w->now_us + w->step_us;
    }
    w->wake_us = fx->wake_us;
    w->over |= fx->exit;
    w->exit_code = fx->exit_code;
    /* The steps of the node below overwrite the effects w->fx, so `fx` must not be used from here
     * on. */
    for (uint32_t i = 0; i < n_hangups; i++)
        lone_disconnect(w, (int)hangup[i], true);
    for (uint32_t i = 0; i < n_dials; i++)
        lone_take_dial(w, &dial[i]);
    if (store && !w->slow_disk)
        lone_kept(w, !w->full_disk);
}

#endif
