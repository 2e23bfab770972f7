/* peer/node/links.c -- sessions with other processes: HELLO, which run, heartbeats, rumours. */
#include "peer/node/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct link *links_to(struct node *n, const uint8_t id[WIRE_ID_BYTES])
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        struct link *l = &n->links[i];
        if (link_talks(l) && !l->doomed && node_same_id(l->id, id))
            return l;
    }
    return NULL;
}

bool links_any(const struct node *n)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (link_talks(&n->links[i]))
            return true;
    return false;
}

void links_start(struct node *n)
{
    n->next_tick_us = n->now_us;
    n->heartbeat_us = n->now_us;
    n->entropy_us = n->now_us + node_jitter(n, ENTROPY_US);
}

/* ---- sessions ---- */

void links_say_hello(struct node *n, struct link *l)
{
    struct wire_hello h = {.version = WIRE_VERSION,
                           .role = WIRE_PEER,
                           .has_run = n->has_run,
                           .has_started = n->has_model && n->phase != NODE_GATHERING,
                           .run = {(const uint8_t *)n->run_text, n->n_run_text},
                           .round = n->round,
                           .record = *members_self(n->members)};
    node_send(n, l, false, n->scratch, wire_put_hello(n->scratch, sizeof n->scratch, &h), NULL);
}

/* We are reachable where this connection ends, at the port we listen on. */
static void learn_address(struct node *n, const char *host)
{
    char address[WIRE_ADDRESS_MAX + 1];
    if (n->config.n_advertise > 0 || n->config.listen_port == NULL || host == NULL
        || strlen(host) > WIRE_ADDRESS_MAX - 16)
        return;
    bool v6 = strchr(host, ':') != NULL;
    snprintf(address, sizeof address, v6 ? "[%s]:%s" : "%s:%s", host, n->config.listen_port);
    (void)members_add_address(n->members, address);
}

void links_up(struct node *n, const struct node_event *ev)
{
    bool self = node_same_id(ev->up.id, n->config.id);
    if (ev->up.dialled)
        dial_over(n, ev->up.tag, self, false);
    struct link *l = NULL;
    for (size_t i = 0; i < NODE_LINKS_MAX && l == NULL; i++)
        if (!n->links[i].used)
            l = &n->links[i];
    if (l == NULL || self) {
        struct link refused = {.number = ev->link};
        node_hang_up(n, &refused, false);
        return;
    }
    *l = (struct link){.used = true,
                       .dialled = ev->up.dialled,
                       .number = ev->link,
                       .heard_us = n->now_us,
                       .up_us = n->now_us};
    memcpy(l->id, ev->up.id, WIRE_ID_BYTES);
    learn_address(n, ev->up.local_host);
    links_say_hello(n, l);
}

void links_down(struct node *n, const struct node_event *ev)
{
    struct link *l = node_link(n, ev->link);
    if (l == NULL)
        return;
    l->used = false;
    if (!l->opened || l->violated)
        dial_in_vain(n, l);
    if (!l->hello || l->observer)
        return;
    edges_link_lost(n, l);
    if (links_to(n, l->id) == NULL)
        members_session(n->members, l->id, false, n->now_us);
}

/* Two sessions with one process: both ends must keep the same one. Of two that
 * crossed, that which the smaller id dialled; of two in one direction, the
 * first while it lives. A new process takes the place of its dead one. */
static bool is_duplicate(struct node *n, struct link *l, uint64_t boot)
{
    struct link *old = links_to(n, l->id);
    if (old == NULL || old == l)
        return false;
    bool we_are_low = memcmp(n->config.id, l->id, WIRE_ID_BYTES) < 0;
    bool lives = old->boot == boot && n->now_us - old->heard_us < SILENT_US;
    bool crossed = old->dialled != l->dialled;
    if (lives && (!crossed || old->dialled == we_are_low)) {
        node_hang_up(n, l, false);
        return true;
    }
    node_hang_up(n, old, false);
    edges_link_lost(n, old);
    return false;
}

/* Settles whose run counts. Who has none takes the other's; one that has begun wins over
 * one that has not; of two that have not, the end that dialled gives way; two that have
 * begun are strangers. Returns false where the link, or this peer, ends over it. */
static bool agree_on_run(struct node *n, struct link *l, const struct wire_hello *h)
{
    if (!h->has_run)
        return true; /* They will take ours. */
    bool same =
        n->has_run && h->run.n == n->n_run_text && memcmp(h->run.p, n->run_text, h->run.n) == 0;
    l->same_run = same;
    if (same)
        return true;
    char error[RUN_ERROR_MAX];
    struct run run;
    if (run_from_text(&run, n->config.flags.trainer, (const char *)h->run.p, h->run.n, error)
        != 0) {
        node_violation(n, l, "run text is not canonical");
        return false;
    }
    bool we_started = n->has_run && n->phase != NODE_GATHERING;
    bool join = !n->has_run || (!we_started && (h->has_started || l->dialled));
    if (!join) {
        if (!we_started)
            return true; /* They dialled us, so they adopt ours. */
        node_note(n, NOTE_WARNING, "refused a peer of another run");
        node_hang_up(n, l, false);
        return false;
    }
    if (run_check_flags(&run, &n->config.flags, error) != 0) {
        node_note(n, NOTE_ERROR, "%s", error);
        members_set_state(n->members, RECORD_LEFT); /* No ghost stays behind. */
        links_news(n);
        node_end(n, 2);
        return false;
    }
    train_take_run(n, &run);
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        n->links[i].same_run = false; /* It was the run that we gave up. */
    l->same_run = n->has_run;
    for (size_t i = 0; i < NODE_LINKS_MAX && !n->over; i++)
        if (link_talks(&n->links[i]) || &n->links[i] == l)
            links_say_hello(n, &n->links[i]); /* All have to know. */
    return !n->over;
}

static void tell_all(struct node *n, struct link *l)
{
    struct wire_members m = {.records = n->batch.records, .accusations = n->batch.accusations};
    size_t cursor = 0;
    while (members_batch(n->members, &cursor, &m, WIRE_BATCH_MAX))
        node_send(n, l, false, n->scratch, wire_put_members(n->scratch, sizeof n->scratch, &m),
                  NULL);
}

static void note_forged(struct node *n, struct link *l, enum members_verdict verdict)
{
    if (verdict == MEMBERS_FORGED)
        node_violation(n, l, "forged rumour");
}

void links_hello(struct node *n, struct link *l, const struct wire_message *m)
{
    const struct wire_hello *h = &m->hello;
    if (h->version != WIRE_VERSION) {
        node_violation(n, l, "bad HELLO");
        return;
    }
    if (h->role == WIRE_OBSERVER && l->hello) {
        node_violation(n, l, "a peer that turns observer");
        return;
    }
    if (h->role == WIRE_OBSERVER) {
        l->hello = l->observer = true;
        tell_all(n, l);
        return;
    }
    if (!node_same_id(h->record.id, l->id)) {
        node_violation(n, l, "HELLO with another's record");
        return;
    }
    bool first = !l->hello;
    if (first && is_duplicate(n, l, h->record.boot))
        return;
    if (!agree_on_run(n, l, h))
        return; /* A peer of another run is no member. */
    enum members_verdict verdict = members_merge(n->members, &h->record, n->now_us);
    note_forged(n, l, verdict);
    if (verdict == MEMBERS_FORGED)
        return;
    l->hello = true;
    l->boot = h->record.boot;
    l->started = h->has_started;
    l->round = h->round;
    members_session(n->members, l->id, true, n->now_us);
    if (first) {
        tell_all(n, l);
        serve_say_finished(n, l);
    }
}

void links_members(struct node *n, struct link *l, const struct wire_message *m)
{
    const struct wire_members *told = &m->members;
    for (uint32_t i = 0; i < told->n_records && !l->doomed; i++)
        note_forged(n, l, members_merge(n->members, &told->records[i], n->now_us));
    for (uint32_t i = 0; i < told->n_accusations && !l->doomed; i++)
        note_forged(n, l, members_accused(n->members, &told->accusations[i], n->now_us));
}

void links_ping(struct node *n, struct link *l, const struct wire_message *m)
{
    l->round = m->ping.round;
    l->started |= m->ping.round > 0;
    if (m->ping.finished)
        edges_finished(n, l);
}

/* ---- time and rumours ---- */

void links_news(struct node *n)
{
    struct wire_members m = {.records = n->batch.records, .accusations = n->batch.accusations};
    while (members_dirty(n->members, &m, WIRE_BATCH_MAX)) {
        size_t len = wire_put_members(n->scratch, sizeof n->scratch, &m);
        for (size_t i = 0; i < NODE_LINKS_MAX; i++)
            if (link_talks(&n->links[i]))
                node_send(n, &n->links[i], false, n->scratch, len, NULL);
    }
}

static void heartbeat(struct node *n)
{
    uint8_t out[64];
    struct wire_ping ping = {.round = train_beat(n)};
    size_t len = wire_put_ping(out, sizeof out, &ping);
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (link_talks(&n->links[i]))
            node_send(n, &n->links[i], false, out, len, NULL);
}

/* Links that say nothing, and links that nobody needs. */
static void prune(struct node *n)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        struct link *l = &n->links[i];
        if (!l->used || l->doomed)
            continue;
        bool silent = n->now_us - l->heard_us > DEAD_LINK_US;
        bool surplus = l->hello && l->dialled && !l->observer && n->phase == NODE_TRAINING
                       && edges_of(n, l) == NULL && n->n_edges > 0
                       && n->now_us - l->up_us > SURPLUS_US;
        if (silent || surplus)
            node_hang_up(n, l, false);
    }
}

static struct link *any_link(struct node *n)
{
    size_t first = (size_t)rng_below(&n->rng, NODE_LINKS_MAX);
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        struct link *l = &n->links[(first + i) % NODE_LINKS_MAX];
        if (link_talks(l) && !l->doomed)
            return l;
    }
    return NULL;
}

void links_tick(struct node *n)
{
    /* We were held up ourselves: nobody is judged by our own silence. */
    int64_t lag = n->now_us - n->next_tick_us;
    if (n->next_tick_us > 0 && lag > 2 * TICK_US)
        for (size_t i = 0; i < NODE_LINKS_MAX; i++)
            n->links[i].heard_us += lag;
    (void)members_tick(n->members, n->now_us);
    dial_tick_seeds(n);
    dial_tick_dead(n);
    prune(n);
    if (n->now_us >= n->heartbeat_us) {
        heartbeat(n);
        n->heartbeat_us = n->now_us + HEARTBEAT_US;
    }
    if (n->now_us >= n->entropy_us) {
        struct link *l = any_link(n);
        if (l != NULL)
            tell_all(n, l);
        n->entropy_us = n->now_us + node_jitter(n, ENTROPY_US);
    }
}
