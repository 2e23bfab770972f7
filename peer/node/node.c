/* peer/node/node.c -- the order of a step, and who gets which message. */
#include "peer/node/node.h"

#include "peer/node/state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the first arena of heads: the deltas of dozens of edges in one step.
 * Only a step that tells more than that, of many members at once, makes it grow. */
enum { HEADS_FIRST = WIRE_CONTROL_MAX };

static int open_members(struct node *n)
{
    const struct node_config *c = &n->config;
    struct record self = {
        .n_addresses = 0, .incarnation = c->incarnation, .boot = c->boot, .state = RECORD_RUNNING};
    memcpy(self.id, c->id, WIRE_ID_BYTES);
    snprintf(self.name, sizeof self.name, "%s", c->name);
    for (uint32_t i = 0; i < c->n_advertise && i < WIRE_ADDRESSES_MAX; i++)
        snprintf(self.address[self.n_addresses++], WIRE_ADDRESS_MAX + 1, "%s", c->advertise[i]);
    struct members_config timing = {.suspect_us = SUSPECT_US, .confirmed_us = CONFIRMED_US};
    int err = members_open(&n->members, &self, &timing, c->crypto);
    for (uint32_t i = 0; i < c->n_known && err == 0; i++)
        (void)members_merge(n->members, &c->known[i], 0);
    return err;
}

int64_t node_jitter(struct node *n, int64_t d)
{
    return d - d / 5 + (int64_t)rng_below(&n->rng, (uint64_t)(2 * d / 5 + 1));
}

bool node_same_id(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, WIRE_ID_BYTES) == 0;
}

int node_open(struct node **out, const struct node_config *config)
{
    if (config->n_bootstrap > NODE_SEEDS_MAX || strlen(config->name) > WIRE_NAME_MAX)
        return -EINVAL;
    struct node *n = calloc(1, sizeof *n);
    if (n == NULL)
        return -ENOMEM;
    n->config = *config;
    n->rng = rng_stream(rng_key(config->own_seed, RNG_PEER, 0, 0));
    n->model_link = UINT32_MAX;
    n->progress.loss = n->progress.accuracy = n->progress.test_loss = n->progress.drift =
        n->progress.relative_drift = n->progress.own_distance = n->progress.gamma =
            n->progress.excess = n->progress.drift_target = n->progress.statistics_apart =
                (double)NAN;
    verdict_init(&n->verdict);
    n->seeds = calloc(config->n_bootstrap + 1, sizeof *n->seeds);
    n->out = malloc(HEADS_FIRST);
    if (n->seeds == NULL || n->out == NULL) {
        node_close(n);
        return -ENOMEM;
    }
    n->cap_out = HEADS_FIRST;
    for (uint32_t i = 0; i < config->n_bootstrap; i++)
        n->seeds[i].name = config->bootstrap[i];
    int err = open_members(n);
    if (err != 0) {
        node_close(n);
        return err;
    }
    *out = n;
    return 0;
}

void node_close(struct node *n)
{
    if (n == NULL)
        return;
    assert(!n->working);
    edges_close_all(n);
    train_close(n);
    if (n->members != NULL)
        members_close(n->members);
    free(n->seeds);
    free(n->out);
    free(n);
}

struct link *node_link(struct node *n, uint32_t number)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (n->links[i].used && n->links[i].number == number)
            return &n->links[i];
    return NULL;
}

/* Heads are copied to one arena, which may move while it grows: until the end
 * of the step a send knows its place only. */
void node_send(struct node *n, const struct link *l, bool bulk, const uint8_t *head, size_t n_head,
               struct packet *body)
{
    struct node_effects *fx = n->fx;
    assert(n_head > 0);
    if (fx->n_sends == NODE_SENDS_MAX || l->doomed)
        return;
    if (n->n_out + n_head > n->cap_out) {
        size_t cap = 2 * n->cap_out + n_head;
        uint8_t *grown = realloc(n->out, cap);
        if (grown == NULL) {
            node_end(n, 1);
            return;
        }
        n->out = grown;
        n->cap_out = cap;
    }
    memcpy(n->out + n->n_out, head, n_head);
    n->head_at[fx->n_sends] = n->n_out;
    n->n_out += n_head;
    fx->sends[fx->n_sends++] =
        (struct node_send){.link = l->number, .bulk = bulk, .n_head = n_head, .body = body};
}

void node_note(struct node *n, enum note_level level, const char *format, ...)
{
    struct node_effects *fx = n->fx;
    if (fx->n_notes == NODE_NOTES_MAX)
        return;
    struct node_note *note = &fx->notes[fx->n_notes++];
    note->level = level;
    va_list args;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
}

void node_hang_up(struct node *n, struct link *l, bool violation)
{
    struct node_effects *fx = n->fx;
    if (l->doomed || fx->n_hangups == NODE_LINKS_MAX)
        return;
    l->doomed = true;
    l->violated = violation;
    fx->hangups[fx->n_hangups].link = l->number;
    fx->hangups[fx->n_hangups++].violation = violation;
}

void node_violation(struct node *n, struct link *l, const char *what)
{
    n->progress.violations++;
    node_note(n, NOTE_WARNING, "peer %02x%02x%02x%02x broke the protocol: %s", l->id[0], l->id[1],
              l->id[2], l->id[3], what);
    node_hang_up(n, l, true);
}

void node_end(struct node *n, int exit_code)
{
    if (n->over)
        return;
    n->over = true;
    n->exit_code = exit_code;
    n->phase = NODE_LEFT;
}

/* Early end by request: leave by a signed word, keep what was learnt. */
static void stop(struct node *n)
{
    n->stopping = true;
    if (n->working || n->over)
        return;
    members_set_state(n->members, RECORD_LEFT);
    links_news(n);
    n->fx->write_model = n->has_model;
    node_end(n, 0);
}

/* What may be said to us, type by type. What has no handler is never sent to a
 * peer; an observer may only ask. */
static const struct
{
    void (*handle)(struct node *n, struct link *l, const struct wire_message *m);
    bool observers_too;
    const char *unreadable;
} handler_of[WIRE_TYPE_END] = {[WIRE_NONE] = {NULL, true, "not a message"},
                               [WIRE_HELLO] = {links_hello, false, "bad HELLO"},
                               [WIRE_MEMBERS] = {links_members, false, "bad MEMBERS"},
                               [WIRE_PING] = {links_ping, true, "bad PING"},
                               [WIRE_EDGE] = {edges_edge, false, "bad EDGE"},
                               [WIRE_EDGE_CLOSE] = {edges_edge_close, false, "bad EDGE_CLOSE"},
                               [WIRE_DELTA] = {edges_delta, false, "bad DELTA"},
                               [WIRE_MODEL_REQ] = {serve_model_req, true, "bad MODEL_REQ"},
                               [WIRE_MODEL] = {train_model, false, "bad MODEL"},
                               [WIRE_STATUS_REQ] = {serve_status_req, true, "bad STATUS_REQ"},
                               [WIRE_STATUS] = {NULL, false, "unexpected message"}};

/* Bytes become a message here and nowhere else in the node. */
static void receive(struct node *n, struct link *l, const uint8_t *p, size_t len)
{
    struct wire_message m;
    bool readable = wire_read(p, len, &n->batch, &m);
    bool in_turn = l->observer ? handler_of[m.type].observers_too
                               : l->hello || m.type == WIRE_HELLO || m.type == WIRE_NONE;
    if (!in_turn)
        node_violation(n, l, "out of turn");
    else if (!readable)
        node_violation(n, l, handler_of[m.type].unreadable);
    else if (handler_of[m.type].handle == NULL)
        node_violation(n, l, "unexpected message");
    else
        handler_of[m.type].handle(n, l, &m);
}

static void handle(struct node *n, const struct node_event *ev)
{
    switch (ev->type) {
    case NODE_START:
        n->begun_us = n->idle_since_us = ev->now_us;
        if (n->config.found)
            train_take_run(n, &n->config.run);
        else
            node_note(n, NOTE_INFO, "waiting for a run from the bootstrap list");
        links_start(n);
        dial_start(n);
        break;
    case NODE_TIMER:
    case NODE_SENT:
        break;
    case NODE_LINK_UP:
        links_up(n, ev);
        break;
    case NODE_LINK_DOWN:
        links_down(n, ev);
        break;
    case NODE_DIAL_FAILED:
        dial_failed(n, ev->dial.tag);
        break;
    case NODE_RESOLVED:
        dial_resolved(n, ev);
        break;
    case NODE_RECV: {
        struct link *l = node_link(n, ev->link);
        if (l == NULL || l->doomed)
            break;
        l->heard_us = ev->now_us;
        edges_heard(n, l);
        receive(n, l, ev->recv.bytes, ev->recv.len);
        break;
    }
    case NODE_WORKED:
        n->working = false;
        work_done(n);
        break;
    case NODE_STOP:
        stop(n);
        break;
    }
}

void node_step(struct node *n, const struct node_event *ev, struct node_effects *fx)
{
    fx->n_sends = fx->n_dials = fx->n_hangups = fx->n_resolves = fx->n_notes = 0;
    fx->work = fx->measured = fx->write_model = fx->exit = false;
    n->fx = fx;
    n->n_out = 0;
    packet_release(n->held);
    n->held = NULL;
    n->now_us = ev->now_us;
    if (ev->type == NODE_WORKED || ev->type == NODE_TIMER) {
        n->progress.bytes_sent = ev->io.bytes_sent;
        n->progress.bytes_received = ev->io.bytes_received;
        n->progress.strangers = ev->io.n_strangers;
    }
    if (!n->over)
        handle(n, ev);
    else if (ev->type == NODE_WORKED)
        n->working = false;
    if (!n->over && n->stopping && !n->working)
        stop(n);
    if (!n->over) {
        if (n->now_us >= n->next_tick_us) {
            links_tick(n);
            edges_tick(n);
            n->next_tick_us = n->now_us + TICK_US;
        }
        links_news(n);
        edges_update(n);
        train_update(n);
    }
    for (uint32_t i = 0; i < fx->n_sends; i++)
        fx->sends[i].head = n->out + n->head_at[i];
    fx->exit = n->over && !n->working;
    fx->exit_code = n->exit_code;
    fx->wake_us = n->next_tick_us;
    if (n->not_before_us > n->now_us && n->not_before_us < fx->wake_us)
        fx->wake_us = n->not_before_us;
    if (n->over)
        fx->wake_us = INT64_MAX;
}

void node_progress(const struct node *n, struct node_progress *p)
{
    *p = n->progress;
    p->phase = n->phase;
    p->round = n->round;
    p->n_rounds = n->has_run ? n->run.rounds : 0;
    p->settle_rounds = n->settle_rounds;
}

const float *node_model(const struct node *n, const struct segment **segments, size_t *n_segments,
                        size_t *n_params)
{
    if (!n->ready)
        return NULL;
    *segments = n->trainer.segments;
    *n_segments = n->trainer.n_segments;
    *n_params = n->trainer.n_params;
    return n->mixing.x;
}

const struct run *node_run(const struct node *n)
{
    return n->has_run ? &n->run : NULL;
}

size_t node_control_max(const struct node *n)
{
    (void)n;
    return WIRE_CONTROL_MAX;
}

size_t node_bulk_max(const struct node *n)
{
    if (!n->ready)
        return WIRE_HEAD_MAX + WIRE_SKETCH_MAX;
    size_t model = mixing_model_bytes(&n->mixing);
    size_t most = n->mixing.cap > model ? n->mixing.cap : model;
    return most + WIRE_HEAD_MAX + WIRE_SKETCH_MAX;
}
