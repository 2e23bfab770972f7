/* peer/uv/client.c -- implements an observer, with its own event loop, sessions and name
 * lookups. */
#include "peer/uv/client.h"

#include "peer/uv/accept.h"
#include "peer/uv/fd_reserve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct uv_client
{
    uv_loop_t loop;
    uv_timer_t timer;
    struct uv_link_net net;
    struct uv_client_calls calls;
    struct channel_identity identity;
    bool late;    /* True: the time limit of uv_client_wait() has passed. */
    bool closing; /* True: the client is closing and makes no more callbacks. */
    struct wire_batch batch;
    struct uv_resolve lookup[UV_CLIENT_LOOKUPS_MAX];
    struct uv_link slot[UV_CLIENT_SESSIONS_MAX];
};

static uint32_t session_of(const struct uv_client *c, const struct uv_link *l)
{
    return (uint32_t)(l - c->slot);
}

static void on_up(void *self, struct uv_link *l)
{
    struct uv_client *c = self;
    uint8_t head[256];
    struct wire_hello hello = {.version = l->channel.version, .role = WIRE_OBSERVER};
    size_t n = wire_put_hello(head, sizeof head, &hello);
    uv_link_send(l, false, head, n, NULL);
    if (!c->closing)
        c->calls.up(c->calls.self, l->tag, session_of(c, l), l->channel.peer_id);
}

static void on_recv(void *self, struct uv_link *l, const uint8_t *p, size_t n)
{
    struct uv_client *c = self;
    struct wire_message m;
    if (!c->closing && wire_read(p, n, &c->batch, &m))
        c->calls.message(c->calls.self, session_of(c, l), &m);
}

static void on_sent(void *self, struct uv_link *l)
{
    (void)self; /* The client never gets this callback, because observers send no bulk messages. */
    (void)l;
}

static void on_ended(void *self, struct uv_link *l)
{
    struct uv_client *c = self;
    if (!c->closing && !l->was_up && c->calls.failed)
        c->calls.failed(c->calls.self, l->tag, l);
    if (!c->closing)
        c->calls.ended(c->calls.self, l->tag, l->was_up ? session_of(c, l) : UINT32_MAX);
}

static size_t limit(void *self, bool bulk)
{
    (void)self;
    return bulk ? (size_t)UV_CLIENT_BULK_MAX : (size_t)WIRE_CONTROL_MAX;
}

int uv_client_open(struct uv_client **out, const uint8_t *psk,
                   const struct channel_identity *identity, const struct uv_client_calls *calls)
{
    uint8_t seed[32];
    struct uv_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    int err = uv_random(NULL, NULL, seed, sizeof seed, 0, NULL);
    if (err == 0)
        err = uv_spare_loop_init(&c->loop);
    if (err < 0) {
        free(c);
        return err;
    }
    uv_timer_init(&c->loop, &c->timer);
    c->timer.data = c;
    channel_identity_from_seed(&c->identity, seed);
    explicit_bzero(seed, sizeof seed);
    c->calls = *calls;
    c->net = (struct uv_link_net){.loop = &c->loop,
                                  .identity = identity != NULL ? identity : &c->identity,
                                  .psk = psk,
                                  .versions = {WIRE_VERSION_LEAST, WIRE_VERSION},
                                  .limits = uv_link_limits_default,
                                  .self = c,
                                  .up = on_up,
                                  .recv = on_recv,
                                  .sent = on_sent,
                                  .ended = on_ended,
                                  .limit = limit};
    *out = c;
    return 0;
}

/* Runs when the time limit of uv_client_wait() has passed. Calls uv_stop(), because otherwise libuv
 * would go on to wait for the sockets without a limit. */
static void on_late(uv_timer_t *timer)
{
    struct uv_client *c = timer->data;
    c->late = true;
    uv_stop(timer->loop);
}

void uv_client_close(struct uv_client *c)
{
    bool hangs = false;
    c->closing = true;
    for (uint32_t i = 0; i < UV_CLIENT_SESSIONS_MAX; i++)
        uv_link_hangup(&c->slot[i], true);
    for (uint32_t i = 0; i < UV_CLIENT_LOOKUPS_MAX; i++)
        hangs |= !uv_resolve_cancel(&c->lookup[i]);
    uv_close((uv_handle_t *)&c->timer, NULL);
    channel_identity_close(&c->identity);
    if (hangs)
        return; /* The lookup still runs in a thread of libuv, so its memory cannot be freed. */
    uv_run(&c->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&c->loop);
    free(c);
}

static void on_resolved(struct uv_resolve *r, const union uv_address *a, uint32_t n)
{
    struct uv_client *c = r->self;
    if (!c->closing)
        c->calls.resolved(c->calls.self, r->tag, a, n);
}

int uv_client_resolve(struct uv_client *c, uint32_t tag, const char *address)
{
    for (uint32_t i = 0; i < UV_CLIENT_LOOKUPS_MAX; i++) {
        struct uv_resolve *r = &c->lookup[i];
        if (r->busy)
            continue;
        r->done = on_resolved;
        r->self = c;
        r->tag = tag;
        return uv_resolve_start(&c->loop, r, address);
    }
    return -EAGAIN;
}

int uv_client_dial(struct uv_client *c, uint32_t tag, const union uv_address *a, uint32_t n)
{
    struct uv_link *l = uv_accept_free_slot(c->slot, UV_CLIENT_SESSIONS_MAX);
    if (l == NULL)
        return -EMFILE;
    int err = uv_link_dial(l, &c->net, a, n);
    l->tag = tag;
    return err;
}

void uv_client_send(struct uv_client *c, uint32_t session, const uint8_t *p, size_t n)
{
    uv_link_send(&c->slot[session], false, p, n, NULL);
}

const struct uv_link *uv_client_link(const struct uv_client *c, uint32_t session)
{
    return &c->slot[session];
}

void uv_client_deadline(struct uv_client *c, uint32_t ms)
{
    c->net.limits.connect_ms = c->net.limits.handshake_ms = ms;
}

void uv_client_hangup(struct uv_client *c, uint32_t session)
{
    uv_link_hangup(&c->slot[session], true);
}

/* Reports the results of lookups of numeric addresses. libuv does not report them, because such an
 * address needs no lookup. Returns the result of done(). */
static bool ripen(struct uv_client *c, bool (*done)(void *self))
{
    for (uint32_t i = 0; i < UV_CLIENT_LOOKUPS_MAX; i++)
        uv_resolve_ripe(&c->lookup[i]);
    return done(c->calls.self);
}

bool uv_client_wait(struct uv_client *c, uint32_t ms, bool (*done)(void *self))
{
    c->late = false;
    uv_update_time(&c->loop);
    uv_timer_start(&c->timer, on_late, ms, 0);
    while (!c->late && !ripen(c, done))
        uv_run(&c->loop, UV_RUN_ONCE);
    uv_timer_stop(&c->timer);
    return done(c->calls.self);
}
