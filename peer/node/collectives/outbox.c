/* peer/node/collectives/outbox.c -- sends messages, and holds the packets of one step. */
#include "peer/node/collectives/outbox.h"

#include <assert.h>
#include <string.h>

static void outbox_check(const struct outbox *o)
{
    assert(o->n <= o->most && o->most <= COLLECTIVE_OPS_MAX);
    assert(o->pool.live >= o->n);
}

void outbox_open(struct outbox *o, size_t bytes, size_t most)
{
    assert(o->most == 0 && most >= 1 && most <= COLLECTIVE_OPS_MAX);
    packet_pool_init(&o->pool, bytes);
    o->most = most;
}

void outbox_close(struct outbox *o)
{
    outbox_release(o);
    if (o->most > 0)
        packet_pool_close(&o->pool);
    o->most = 0;
}

void outbox_release(struct outbox *o)
{
    while (o->n > 0)
        packet_release(o->taken[--o->n]);
}

bool outbox_has_room(const struct outbox *o)
{
    return o->n < o->most;
}

struct packet *outbox_take(struct outbox *o)
{
    assert(o->most > 0);
    struct packet *p = outbox_has_room(o) ? packet_get(&o->pool) : NULL;
    if (p != NULL)
        o->taken[o->n++] = p;
    outbox_check(o);
    return p;
}

struct packet *outbox_copy(struct outbox *o, const void *bytes, size_t n)
{
    struct packet *p = outbox_take(o);
    if (p == NULL)
        return NULL;
    assert(n <= p->cap);
    if (n > 0)
        memcpy(p->bytes, bytes, n);
    p->len = n;
    return p;
}

const struct link *outbox_link(const struct sessions *s, const uint8_t *id)
{
    const struct link *l = sessions_to(s, id);
    return l != NULL && l->same_run ? l : NULL;
}

void outbox_send(struct sessions *s, const struct link *l, struct wire_round_protocol m,
                 struct packet *payload)
{
    uint8_t head[WIRE_HEAD_MAX];
    assert(l != NULL && l->used && (payload == NULL || payload->refs > 0));
    if (payload != NULL)
        m.payload.p = packet_bytes(payload, &m.payload.n);
    size_t n = wire_put_round_protocol(head, sizeof head, &m);
    assert(n > 0);
    bool any = payload != NULL && m.payload.n > 0;
    sessions_send(s, l, true, head, n, any ? payload : NULL);
}
