/* peer/uv/event_adapter.c -- passes each callback of libuv as one event to the node, and carries
 * out the effects that the node returns. */
#include "peer/uv/event_adapter.h"

#include "peer/uv/identity.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Period at which the node gets the measured throughput of its links, in microseconds. */
    CARRIED_US = 1000 * 1000,
    /* Lateness of the wake-up timer, in microseconds, above which the sockets are polled before the
     * node handles the timer. */
    LAG_US = 250 * 1000
};

static void carry_out(struct uv_driver *d);
static void schedule_wake(struct uv_driver *d);

/* ---- Passing events to the node ---- */

/* node_step() handles the event, and carry_out() performs the resulting effects (sends, dials,
 * ...), before this function returns. No callback of libuv runs in between. */
void uv_feed(struct uv_driver *d, struct node_event *ev)
{
    if (d->exiting)
        return;
    assert(!d->feeding);
    d->feeding = true;
    ev->now_us = uv_worker_clock_us();
    ev->io.bytes_sent = d->net.bytes_sent;
    ev->io.bytes_received = d->net.bytes_received;
    ev->io.n_strangers = d->accept.counts.strangers;
    uv_timeval64_t now;
    if (uv_gettimeofday(&now) == 0)
        ev->io.clock_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
    if (d->config->watch)
        d->config->watch(d->config->self, d->node, ev);
    node_step(d->node, ev, d->fx);
    if (d->config->stepped)
        d->config->stepped(d->config->self, d->node, ev, d->fx);
    carry_out(d);
    bool wrote = d->fx->write_model;
    d->feeding = false;
    if (wrote)
        uv_feed(d, &(struct node_event){.type = NODE_KEPT, .kept = {d->unstored}});
}

static void feed_link(struct uv_driver *d, enum node_event_type type, struct uv_link *l)
{
    uv_feed(d, &(struct node_event){.type = type, .link = l->number, .down = {l->clean}});
}

/* Returns a number for a new session. The number modulo UV_DRIVER_SLOTS is the index of the link in
 * slot[]. No later session has the same number. */
static uint32_t next_number(struct uv_driver *d, const struct uv_link *l)
{
    uint64_t n = ++d->n_sessions * UV_DRIVER_SLOTS + (uint64_t)(l - d->slot);
    assert(n <= UINT32_MAX);
    return (uint32_t)n;
}

static struct uv_link *find_link(struct uv_driver *d, uint32_t number)
{
    struct uv_link *l = &d->slot[number % UV_DRIVER_SLOTS];
    bool there = l->state != UV_LINK_FREE && l->was_up && l->number == number;
    return there ? l : NULL;
}

static void on_up(void *self, struct uv_link *l)
{
    struct uv_driver *d = self;
    char local_host[UV_RESOLVE_TEXT], remote_host[UV_RESOLVE_TEXT];
    union uv_address local, remote;
    uv_accept_up(&d->accept, l);
    l->number = next_number(d, l);
    d->n_up++;
    if (d->n_up > NODE_LINKS_MAX || d->exiting) {
        /* A link that is closed at once gets the invalid session number 0, so that the node gets no
         * events of it. */
        l->number = 0;
        uv_link_hangup(l, true);
        return;
    }
    uv_resolve_names(&l->tcp, &local, &remote);
    uv_resolve_host(&local.any, local_host);
    uv_resolve_host(&remote.any, remote_host);
    struct node_event ev = {.type = NODE_LINK_UP, .link = l->number};
    memcpy(ev.up.id, l->channel.peer_id, sizeof ev.up.id);
    ev.up.dialled = l->dialled;
    ev.up.tag = l->tag;
    ev.up.version = l->channel.version;
    ev.up.local_host = local_host;
    ev.up.remote_host = remote_host;
    uv_feed(d, &ev);
}

static void on_recv(void *self, struct uv_link *l, const uint8_t *bytes, size_t n)
{
    uv_feed(self, &(struct node_event){.type = NODE_RECV, .link = l->number, .recv = {bytes, n}});
}

static void on_heard(void *self, struct uv_link *l, bool record)
{
    uv_feed(self, &(struct node_event){.type = NODE_HEARD, .link = l->number, .heard = {record}});
}

static void on_sent(void *self, struct uv_link *l)
{
    feed_link(self, NODE_SENT, l);
}

static void tell_stranger(struct uv_driver *d, const struct uv_link *l)
{
    char text[REJECTION_LOG_TEXT];
    if (l->dialled || l->was_up || d->exiting)
        return;
    if (rejection_log_count(&d->door, rejection_log_kind(l), l, uv_now(d->loop), text)
        && d->config->note)
        d->config->note(d->config->self, NOTE_WARNING, "accept", text);
}

static void on_ended(void *self, struct uv_link *l)
{
    struct uv_driver *d = self;
    tell_stranger(d, l);
    d->n_up -= l->was_up;
    if (l->was_up)
        traffic_add(&d->traffic, l->channel.peer_id, l->bytes_sent, l->bytes_received);
    if (l->error == -ENOBUFS && d->config->note)
        d->config->note(d->config->self, NOTE_WARNING, "link",
                        "closed a session: the other end receives too slowly");
    if (!d->ended)
        uv_accept_ended(&d->accept, l);
    if (l->was_up && l->number != 0)
        feed_link(d, NODE_LINK_DOWN, l);
    else if (l->dialled && !l->was_up)
        uv_feed(d, &(struct node_event){.type = NODE_DIAL_FAILED,
                                        .dial = {l->tag, l->why, l->theirs.least, l->theirs.most}});
    uv_driver_link_ended(d);
}

static size_t limit(void *self, bool bulk)
{
    struct uv_driver *d = self;
    return bulk ? node_bulk_max(d->node) : node_control_max(d->node);
}

/* Reports the measured throughput of each link to the node. Called between two jobs, so that all
 * deltas of a round are in one report. */
static void tell_carried(struct uv_driver *d)
{
    int64_t now = uv_worker_clock_us();
    if (!d->net.watches || now - d->carried_us < CARRIED_US)
        return;
    d->carried_us = now;
    for (uint32_t i = 0; i < UV_DRIVER_SLOTS; i++) {
        struct uv_link *l = &d->slot[i];
        struct node_event ev = {.type = NODE_CARRIED, .link = l->number};
        if (l->state != UV_LINK_OPEN || l->number == 0)
            continue;
        ev.carried.bursts = uv_link_carried(l, &ev.carried.rtt_us);
        if (ev.carried.bursts.n > 0)
            uv_feed(d, &ev);
    }
}

void uv_feed_worked(void *self)
{
    tell_carried(self);
    uv_feed(self, &(struct node_event){.type = NODE_WORKED});
}

void uv_feed_part(void *self, size_t n)
{
    uv_feed(self, &(struct node_event){.type = NODE_PART, .part = {.n = n}});
}

void uv_feed_signed(void *self)
{
    uv_feed(self, &(struct node_event){.type = NODE_SIGNED});
}

/* Reports to the node which dials could not be started. Copies the list of failed dials first,
 * because the node may dial again when it handles a report. */
static void tell_failed(struct uv_driver *d)
{
    uint32_t n = d->n_failed, tag[NODE_DIALS_MAX];
    memcpy(tag, d->failed, sizeof tag);
    d->n_failed = 0;
    for (uint32_t i = 0; i < n; i++)
        uv_feed(d, &(struct node_event){.type = NODE_DIAL_FAILED, .dial = {.tag = tag[i]}});
}

/* Counts a checkpoint that could not be written. The warning is limited by log_backoff, because
 * a full disk makes each checkpoint fail. */
static void tell_unkept(struct uv_driver *d, const char *why)
{
    char text[FILE_ERROR_MAX + 32];
    if (!log_backoff_count(&d->unkept, uv_now(d->loop)) || d->config->note == NULL)
        return;
    snprintf(text, sizeof text, "%s (%llu so far)", why, (unsigned long long)d->unkept.n);
    d->config->note(d->config->self, NOTE_WARNING, "writer", text);
}

void uv_feed_written(void *self, const struct uv_writer_result *r)
{
    struct uv_driver *d = self;
    if (r->err < 0)
        tell_unkept(d, r->why);
    else
        d->unkept = (struct log_backoff){0};
    uv_feed(d, &(struct node_event){.type = NODE_WRITTEN, .written = {r->beat}});
}

static void tell_unwritten(struct uv_driver *d)
{
    struct node_event ev = {.type = NODE_WRITTEN, .written = {d->unwritten}};
    if (d->unwritten == 0)
        return;
    d->unwritten = 0;
    uv_feed(d, &ev);
}

static void tell_ripe(struct uv_driver *d)
{
    if (!d->ripe)
        return;
    d->ripe = false;
    for (uint32_t i = 0; i < NODE_SEEDS_MAX; i++)
        uv_resolve_ripe(&d->seed[i]);
}

static void on_wake(uv_timer_t *timer)
{
    struct uv_driver *d = timer->data;
    tell_failed(d);
    tell_unwritten(d);
    tell_ripe(d);
    int64_t lag = uv_worker_clock_us() - d->wake_us;
    if (lag < 0 || (lag > LAG_US && !d->polled)) {
        /* libuv runs due timers before it polls the sockets. If the process was stopped, the data
         * that arrived meanwhile must be read before the node judges that members are silent. */
        d->polled = lag > LAG_US;
        schedule_wake(d);
        return;
    }
    d->polled = false;
    uv_feed(d, &(struct node_event){.type = NODE_TIMER});
}

/* Sets the wake-up timer for the time that the node asked for. The wait is at least 1 ms, because a
 * timer that is always due would keep libuv from reading the sockets. */
static void schedule_wake(struct uv_driver *d)
{
    int64_t us = d->wake_us - uv_worker_clock_us();
    bool soon = d->n_failed > 0 || d->ripe || d->unwritten != 0;
    if (d->wake_us == INT64_MAX && !soon) {
        uv_timer_stop(&d->wake);
        return;
    }
    uint64_t ms = us <= 1000 || soon ? 1 : ((uint64_t)us + 999) / 1000;
    uv_update_time(d->loop);
    uv_timer_start(&d->wake, on_wake, ms, 0);
}

/* ---- Carrying out the node's effects ---- */

static void fail_dial(struct uv_driver *d, uint32_t tag)
{
    if (d->n_failed < NODE_DIALS_MAX)
        d->failed[d->n_failed++] = tag;
}

static void connect_to(struct uv_driver *d, uint32_t tag, const union uv_address *a, uint32_t n)
{
    struct uv_link *l = uv_accept_free_slot(d->slot, UV_DRIVER_SLOTS);
    if (l == NULL || uv_link_dial(l, &d->net, a, n) < 0)
        fail_dial(d, tag);
    else
        l->tag = tag;
}

static void on_dial_resolved(struct uv_resolve *r, const union uv_address *a, uint32_t n)
{
    struct uv_driver *d = r->self;
    if (d->exiting)
        return;
    if (n == 0) {
        uv_feed(d, &(struct node_event){.type = NODE_DIAL_FAILED,
                                        .dial = {.tag = r->tag, .why = NODE_WHY_UNRESOLVED}});
        return;
    }
    connect_to(d, r->tag, a, n);
    schedule_wake(d);
}

static void dial(struct uv_driver *d, const struct node_dial *dial)
{
    union uv_address a;
    if (uv_resolve_numeric(dial->address, &a) == 0) {
        connect_to(d, dial->tag, &a, 1);
        return;
    }
    for (uint32_t i = 0; i < NODE_DIALS_MAX; i++) {
        struct uv_resolve *r = &d->dial[i];
        if (r->busy)
            continue;
        r->done = on_dial_resolved;
        r->self = d;
        r->tag = dial->tag;
        if (uv_resolve_start(d->loop, r, dial->address) == 0)
            return;
        break;
    }
    fail_dial(d, dial->tag);
}

static void on_seed_resolved(struct uv_resolve *r, const union uv_address *a, uint32_t n)
{
    char text[UV_RESOLVE_MAX][UV_RESOLVE_TEXT];
    const char *pointer[UV_RESOLVE_MAX];
    for (uint32_t i = 0; i < n; i++) {
        uv_resolve_text(&a[i].any, text[i]);
        pointer[i] = text[i];
    }
    uv_feed(r->self, &(struct node_event){.type = NODE_RESOLVED, .resolved = {r->tag, pointer, n}});
}

/* Starts a lookup of a bootstrap name. If an earlier lookup of the name is still running
 * (-EBUSY), its answer is used. */
static void resolve(struct uv_driver *d, uint32_t seed, const char *name)
{
    assert(seed < NODE_SEEDS_MAX);
    struct uv_resolve *r = &d->seed[seed];
    r->done = on_seed_resolved;
    r->self = d;
    r->tag = seed;
    int err = uv_resolve_start(d->loop, r, name);
    d->ripe |= r->ripe;
    if (err < 0 && err != -EBUSY && d->config->note)
        d->config->note(d->config->self, NOTE_WARNING, "resolve",
                        "cannot look up a name of --bootstrap");
}

static void tell(struct uv_driver *d)
{
    const struct uv_driver_config *c = d->config;
    for (uint32_t i = 0; c->note && i < d->fx->n_notes; i++)
        c->note(c->self, d->fx->notes[i].level, d->fx->notes[i].module, d->fx->notes[i].text);
    if (d->fx->measured && c->measured) {
        struct node_progress p;
        node_progress(d->node, &p);
        c->measured(c->self, &p);
    }
    if (d->fx->write_model)
        d->unstored = c->write_model != NULL ? c->write_model(c->self, d->node) : NULL;
}

/* Copies the node's state and starts to write it as a checkpoint. */
static void write_checkpoint(struct uv_driver *d)
{
    char run[WIRE_RUN_MAX + 1], owner[2 * WIRE_ID_BYTES + 1];
    const struct uv_driver_config *c = d->config;
    int64_t begin = uv_worker_clock_us();
    struct checkpoint_file_label label = {
        .run = run,
        .name = d->config->node.name,
        .beat = node_checkpoint(d->node, &d->copy),
        .owner = owner,
        .trained_on = c->trained_on != NULL ? c->trained_on(c->self) : NULL};
    uv_identity_text(d->config->node.id, owner);
    d->copy_us += uv_worker_clock_us() - begin;
    run_text(node_run(d->node), run);
    int err = d->config->slots != NULL ? uv_writer_keep(&d->writer, &d->copy, &label) : -ENOENT;
    if (err == 0)
        return;
    d->unwritten = label.beat;
    tell_unkept(d, "cannot start to write a checkpoint");
}

static void carry_out(struct uv_driver *d)
{
    struct node_effects *fx = d->fx;
    for (uint32_t i = 0; i < fx->n_sends; i++) {
        const struct node_send *s = &fx->sends[i];
        struct uv_link *l = find_link(d, s->link);
        if (l)
            uv_link_send(l, s->bulk, s->head, s->n_head, s->body);
    }
    for (uint32_t i = 0; i < fx->n_hangups; i++) {
        struct uv_link *l = find_link(d, fx->hangups[i].link);
        if (l)
            uv_link_hangup(l, !fx->hangups[i].violation);
    }
    for (uint32_t i = 0; i < fx->n_dials; i++)
        dial(d, &fx->dials[i]);
    for (uint32_t i = 0; i < fx->n_resolves; i++)
        resolve(d, fx->resolves[i].seed, fx->resolves[i].name);
    if (fx->resumed > 0 && d->config->slots != NULL)
        checkpoint_store_set_newest(d->config->slots,
                                    (int)d->config->node.resume[fx->resumed - 1].slot);
    if (fx->checkpoint)
        write_checkpoint(d);
    tell(d);
    if (fx->work)
        uv_worker_post(&d->worker);
    d->wake_us = fx->wake_us;
    if (fx->exit)
        uv_driver_end(d, fx->exit_code);
    else
        schedule_wake(d);
}

void uv_feed_net(struct uv_driver *d)
{
    d->net.self = d;
    d->net.up = on_up;
    d->net.recv = on_recv;
    d->net.heard = on_heard;
    d->net.sent = on_sent;
    d->net.ended = on_ended;
    d->net.limit = limit;
    d->net.versions = (struct channel_versions){WIRE_VERSION_LEAST, WIRE_VERSION};
}
