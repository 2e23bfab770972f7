/* peer/trace/trace.c -- formats the events of nodes as lines of text, and leaves out events that
 * repeat earlier ones. */
#include "peer/trace/trace.h"

#include "peer/node/inspect.h"
#include "peer/node/result/verdict.h"
#include "peer/trace/message_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Number of epochs of edges whose names (e1, e2, ...) are remembered. An older epoch that
     * appears again gets a new name. */
    EPOCHS = 1024,
    /* For each traced peer: number of other peers whose last delta is remembered. */
    DELTAS_MAX = 1024,
    /* Size of the buffer for the text of an event that is not a message, in bytes. */
    EVENT_TEXT = 256,
    /* Size of the buffer for the text that describes phase and edges of a peer, in bytes. */
    STATE_TEXT = 4096,
};

/* A session of the traced peer with another peer. */
struct session
{
    bool used;  /* True: the session is up. */
    bool named; /* True: `name` is the name of the peer, not the first bytes of its identity. */
    uint32_t link;
    uint8_t id[WIRE_ID_BYTES];
    char name[TRACE_NAME_SIZE];
};

/* Epoch and round of the last delta that one peer received from another. */
struct last_delta
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t epoch, round;
};

struct trace_peer
{
    struct trace *trace;
    struct trace_peer *next;
    char name[TRACE_NAME_SIZE];
    struct session session[NODE_LINKS_MAX];
    /* Last delta of each of n_deltas other peers. The array has room for cap_deltas elements. */
    struct last_delta *delta;
    size_t n_deltas, cap_deltas;
    size_t oldest;          /* Element of `delta` to overwrite if the array is full. */
    uint64_t state_hash;    /* Hash of the phase and edges that state[] describes. */
    char state[STATE_TEXT]; /* Text of the last line about phase and edges. */
    /* True: the last event of this peer was the end of a job (local steps, mixing and encoding). */
    bool worked;
};

struct trace
{
    struct trace_config config;
    struct trace_peer *peers;
    /* Ring buffer of the edge epochs that the trace has named: the epoch with the name ek is in
     * epoch[k % EPOCHS]. */
    uint64_t epoch[EPOCHS];
    /* Number of edge epochs (periods between two resets of an edge) that the trace has named so
     * far. */
    uint64_t n_epochs;
    struct wire_batch batch;
    char line[TRACE_LINE_SIZE];
};

struct trace *trace_open(const struct trace_config *c)
{
    struct trace *t = calloc(1, sizeof *t);
    if (t != NULL)
        t->config = *c;
    return t;
}

void trace_close(struct trace *t)
{
    while (t != NULL && t->peers != NULL) {
        struct trace_peer *p = t->peers;
        t->peers = p->next;
        free(p->delta);
        free(p);
    }
    free(t);
}

struct trace_peer *trace_add_peer(struct trace *t, const char *name)
{
    struct trace_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->trace = t;
    p->next = t->peers;
    t->peers = p;
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

/* ---- writing lines ---- */

/* Writes a line. `p` NULL: the line belongs to no peer. */
__attribute__((format(printf, 4, 5))) static void put(struct trace *t, const struct trace_peer *p,
                                                      int64_t now_us, const char *format, ...)
{
    int64_t us = now_us - t->config.origin_us;
    int n = t->config.all
                ? snprintf(t->line, sizeof t->line, "%12.6f  ", (double)us * 1e-6)
                : snprintf(t->line, sizeof t->line, "%9.3f  ", (double)(us / 1000) * 1e-3);
    if (p != NULL)
        n += snprintf(t->line + n, sizeof t->line - (size_t)n, "%s  ", p->name);
    va_list args;
    va_start(args, format);
    vsnprintf(t->line + n, sizeof t->line - (size_t)n, format, args);
    va_end(args);
    /* Control characters are replaced, because a note may quote text of a file or of another
     * peer. */
    for (char *c = t->line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    t->config.line(t->config.self, t->line);
}

void trace_say(struct trace_peer *p, int64_t now_us, const char *text)
{
    put(p->trace, p, now_us, "%s", text);
}

void trace_mark(struct trace *t, int64_t now_us, const char *text)
{
    put(t, NULL, now_us, "---- %s", text);
}

/* ---- names of peers and epochs ---- */

/* Writes the name of the peer `id`, and returns true. If the name is not known, writes the first
 * bytes of the identity, and returns false. */
static bool name_peer(const struct trace *t, const struct node *n, const uint8_t id[WIRE_ID_BYTES],
                      char out[TRACE_NAME_SIZE])
{
    snprintf(out, TRACE_NAME_SIZE, "#%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
    if (t->config.name != NULL)
        return t->config.name(t->config.self, id, out);
    for (size_t i = 0; i < node_members(n); i++) {
        struct node_member m;
        node_member(n, i, &m);
        if (memcmp(m.id, id, WIRE_ID_BYTES) == 0) {
            snprintf(out, TRACE_NAME_SIZE, "%s", m.name);
            return true;
        }
    }
    return false;
}

/* Returns the number k of an edge's epoch, which the trace calls "ek". Numbers a new epoch. */
static uint64_t number_epoch(void *self, uint64_t epoch)
{
    struct trace *t = self;
    uint64_t first = t->n_epochs > EPOCHS ? t->n_epochs - EPOCHS : 0;
    for (uint64_t k = t->n_epochs; k > first; k--)
        if (t->epoch[(k - 1) % EPOCHS] == epoch)
            return k;
    t->epoch[t->n_epochs++ % EPOCHS] = epoch;
    return t->n_epochs;
}

/* ---- sessions of a traced peer ---- */

static struct session *session_find(struct trace_peer *p, uint32_t link)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (p->session[i].used && p->session[i].link == link)
            return &p->session[i];
    return NULL;
}

/* Returns the session with the number `link`. NULL: the session is unknown, because it is older
 * than the trace, or because the peer has more sessions than a node accepts. */
static struct session *session_named(struct trace_peer *p, const struct node *n, uint32_t link)
{
    struct session *s = session_find(p, link);
    if (s != NULL && !s->named)
        s->named = name_peer(p->trace, n, s->id, s->name);
    return s;
}

static struct session *session_up(struct trace_peer *p, const struct node *n,
                                  const struct node_event *ev)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        struct session *s = &p->session[i];
        if (s->used)
            continue;
        *s = (struct session){.used = true, .link = ev->link};
        memcpy(s->id, ev->up.id, WIRE_ID_BYTES);
        s->named = name_peer(p->trace, n, s->id, s->name);
        return s;
    }
    return NULL;
}

/* ---- describing messages ---- */

/* Records a received delta. Returns whether the delta is the direct successor of the last delta
 * from the same peer: same epoch, next round. The trace leaves out such a delta. It shows the first
 * delta of an epoch, a repeated delta and a delta after a gap. */
static bool follows(struct trace_peer *p, const uint8_t id[WIRE_ID_BYTES],
                    const struct wire_delta *d)
{
    size_t i = 0;
    while (i < p->n_deltas && memcmp(p->delta[i].id, id, WIRE_ID_BYTES) != 0)
        i++;
    if (i == p->cap_deltas && i < DELTAS_MAX) {
        size_t cap = p->cap_deltas > 0 ? 2 * p->cap_deltas : 16;
        struct last_delta *more = realloc(p->delta, cap * sizeof *more);
        if (more == NULL)
            return false;
        p->delta = more;
        p->cap_deltas = cap;
    }
    if (i == DELTAS_MAX)
        i = p->oldest++ % DELTAS_MAX;
    else if (i == p->n_deltas)
        p->delta[p->n_deltas++] = (struct last_delta){.epoch = 0};
    struct last_delta *l = &p->delta[i];
    bool next =
        memcmp(l->id, id, WIRE_ID_BYTES) == 0 && d->epoch == l->epoch && d->round == l->round + 1;
    memcpy(l->id, id, WIRE_ID_BYTES);
    l->epoch = d->epoch;
    l->round = d->round;
    return next;
}

static void receive(struct trace_peer *p, const struct node *n, const struct node_event *ev)
{
    static const uint8_t none[WIRE_ID_BYTES];
    struct trace *t = p->trace;
    struct wire_message m;
    char text[MESSAGE_TEXT_SIZE];
    bool readable = wire_read(ev->recv.bytes, ev->recv.len, &t->batch, &m);
    struct session *s = session_named(p, n, ev->link);
    /* A HELLO contains the member record of its sender, and so the sender's name. */
    if (readable && m.type == WIRE_HELLO && s != NULL && !s->named && m.hello.role == WIRE_PEER)
        snprintf(s->name, sizeof s->name, "%s", m.hello.record.name);
    bool news = true;
    if (!readable)
        snprintf(text, sizeof text, "a message that cannot be parsed, %zu bytes", ev->recv.len);
    else
        news = message_text(&m, number_epoch, t, text);
    if (readable && m.type == WIRE_DELTA)
        news = !follows(p, s != NULL ? s->id : none, &m.delta);
    if (news || t->config.all)
        put(t, p, ev->now_us, "<- %s  %s", s != NULL ? s->name : "?", text);
}

/* ---- describing events ---- */

/* Describes an event that is not a message. Returns false if the trace leaves the event out,
 * because events of this type repeat often or change nothing by themselves. */
static bool event_text(struct trace_peer *p, const struct node *n, const struct node_event *ev,
                       char out[EVENT_TEXT])
{
    struct session *s = NULL;
    out[0] = '\0';
    switch (ev->type) {
    case NODE_START:
        memset(p->session, 0, sizeof p->session);
        snprintf(out, EVENT_TEXT, "starts");
        return true;
    case NODE_LINK_UP:
        s = session_up(p, n, ev);
        snprintf(out, EVENT_TEXT, "session with %s%s", s != NULL ? s->name : "?",
                 ev->up.dialled ? ", dialled" : "");
        return true;
    case NODE_LINK_DOWN:
        s = session_named(p, n, ev->link);
        snprintf(out, EVENT_TEXT, "session with %s ends%s", s != NULL ? s->name : "?",
                 ev->down.clean ? " by a word" : "");
        if (s != NULL)
            s->used = false;
        return true;
    case NODE_DIAL_FAILED:
        snprintf(out, EVENT_TEXT, "dial fails");
        return true;
    case NODE_RESOLVED:
        snprintf(out, EVENT_TEXT, "name %" PRIu32 " is %.128s", ev->resolved.seed,
                 ev->resolved.n > 0 ? ev->resolved.address[0] : "nothing");
        return true;
    case NODE_STOP:
        snprintf(out, EVENT_TEXT, "is asked to leave");
        return true;
    case NODE_WORKED:
        snprintf(out, EVENT_TEXT, "job ends");
        return false;
    case NODE_PART:
        snprintf(out, EVENT_TEXT, "job has encoded %zu bytes", ev->part.n);
        return false;
    case NODE_SIGNED:
        snprintf(out, EVENT_TEXT, "job makes progress");
        return false;
    case NODE_KEPT:
        snprintf(out, EVENT_TEXT, "model %s",
                 ev->kept.why == NULL ? "is stored" : "cannot be stored");
        return false;
    case NODE_WRITTEN:
        snprintf(out, EVENT_TEXT, "checkpoint of step %" PRIu64 " is written", ev->written.beat);
        return false;
    case NODE_ADMIT:
        snprintf(out, EVENT_TEXT, "allow-list has %zu identities", ev->admit.n);
        return false;
    case NODE_HEARD:
        s = session_named(p, n, ev->link);
        snprintf(out, EVENT_TEXT, "part of a message from %s", s != NULL ? s->name : "?");
        return false;
    case NODE_CARRIED:
        snprintf(out, EVENT_TEXT, "throughput is measured");
        return false;
    case NODE_RECV:
    case NODE_TIMER:
    case NODE_SENT:
        return false;
    }
    return false;
}

void trace_event(struct trace_peer *p, const struct node *n, const struct node_event *ev)
{
    char text[EVENT_TEXT];
    if (ev->type == NODE_RECV) {
        receive(p, n, ev);
        return;
    }
    bool shown = event_text(p, n, ev, text);
    p->worked |= ev->type == NODE_WORKED;
    if (shown || (p->trace->config.all && text[0] != '\0'))
        put(p->trace, p, ev->now_us, "%s", text);
}

/* ---- describing the state of a peer ---- */

/* Returns the hash of the bytes by FNV-1a, continued from `hash`. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns a hash of a peer's phase, of its neighbours' identities and of the states of its edges.
 * The caller looks up the neighbours' names only if the hash has changed. */
static uint64_t hash_state(const struct node *n, const struct node_progress *g)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = hash_bytes(hash, &g->phase, sizeof g->phase);
    hash = hash_bytes(hash, &g->holds, sizeof g->holds);
    for (size_t i = 0; i < node_n_edges(n); i++) {
        struct node_edge_state e;
        node_edge_state(n, i, &e);
        hash = hash_bytes(hash, e.id, WIRE_ID_BYTES);
        hash = hash_bytes(hash, &e.state, sizeof e.state);
    }
    return hash | 1;
}

/* Describes the phase and the edges of a peer. `all`: also the figures that change in each
 * round. */
static void state_text(const struct trace *t, const struct node *n, const struct node_progress *g,
                       bool all, char out[STATE_TEXT])
{
    static const char *const phase[] = {"joining", "training", "consensus", "finishing", "left"};
    static const char *const state[] = {"closed", "asking", "open", "paused", "done"};
    int len = snprintf(out, STATE_TEXT, "%s%s", phase[g->phase], g->holds ? ", holds" : "");
    if (all) {
        struct node_size size;
        node_size(n, &size);
        len += snprintf(out + len, (size_t)(STATE_TEXT - len), ", step %" PRIu64 ", %u live",
                        size.beat, (unsigned)g->n_live);
    }
    if (all && g->phase >= NODE_CONSENSUS) {
        struct verdict_facts f;
        node_facts(n, &f);
        len += snprintf(out + len, (size_t)(STATE_TEXT - len), ", apart %.2g", f.distance);
    }
    for (size_t i = 0; i < node_n_edges(n) && len < STATE_TEXT - 128; i++) {
        struct node_edge_state e;
        char name[TRACE_NAME_SIZE];
        node_edge_state(n, i, &e);
        if (!name_peer(t, n, e.id, name) && t->config.name != NULL)
            continue;
        len += snprintf(out + len, (size_t)(STATE_TEXT - len), ", %s %s", name, state[e.state]);
        if (all)
            len += snprintf(out + len, (size_t)(STATE_TEXT - len), " %" PRIu64, e.round);
    }
}

void trace_state(struct trace_peer *p, const struct node *n, int64_t now_us)
{
    struct trace *t = p->trace;
    struct node_progress g;
    node_progress(n, &g);
    uint64_t hash = hash_state(n, &g);
    bool all = t->config.all && p->worked;
    p->worked = false;
    if (hash == p->state_hash && !all)
        return;
    char text[STATE_TEXT];
    state_text(t, n, &g, false, text);
    bool same = strcmp(text, p->state) == 0;
    p->state_hash = hash;
    memcpy(p->state, text, sizeof text);
    if (same && !all)
        return;
    if (t->config.all)
        state_text(t, n, &g, true, text);
    put(t, p, now_us, "at %" PRIu64 ": %s", g.round, text);
}

void trace_effects(struct trace_peer *p, const struct node *n, int64_t now_us,
                   const struct node_effects *fx)
{
    for (uint32_t i = 0; i < fx->n_notes; i++)
        if (fx->notes[i].level != NOTE_DEBUG)
            trace_say(p, now_us, fx->notes[i].text);
    trace_state(p, n, now_us);
    if (fx->checkpoint)
        trace_say(p, now_us, "takes a checkpoint");
    if (fx->exit)
        put(p->trace, p, now_us, "ends with exit code %d", fx->exit_code);
}
