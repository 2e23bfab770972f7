/* gossip/exchange/packet.c -- the pool of byte buffers that are counted by reference. */
#include "gossip/exchange/packet.h"

#include <assert.h>
#include <stdlib.h>

void packet_pool_init(struct packet_pool *pool, size_t cap)
{
    *pool = (struct packet_pool){.cap = cap};
}

void packet_pool_close(struct packet_pool *pool)
{
    assert(pool->live == 0); /* Else somebody would write to what is freed here. */
    while (pool->free != NULL) {
        struct packet *p = pool->free;
        pool->free = p->next;
        free(p);
    }
}

/* A packet keeps its cap for life, so that any free one will do. */
struct packet *packet_get(struct packet_pool *pool)
{
    struct packet *p = pool->free;
    if (p != NULL)
        pool->free = p->next;
    else if ((p = malloc(sizeof *p + pool->cap)) == NULL)
        return NULL;
    *p = (struct packet){.refs = 1, .cap = pool->cap, .pool = pool};
    pool->live++; /* Counted, so that one that is never released is found at the end. */
    return p;
}

const uint8_t *packet_bytes(const struct packet *p, size_t *n)
{
    *n = p->len;
    return p->bytes;
}

void packet_hold(struct packet *p)
{
    assert(p->refs > 0);
    p->refs++;
}

void packet_release(struct packet *p)
{
    if (p == NULL)
        return;
    assert(p->refs > 0);
    if (--p->refs > 0)
        return;
    /* The last reference is gone: the pool keeps it for the next packet_get(). */
    struct packet_pool *pool = p->pool;
    p->next = pool->free;
    pool->free = p;
    pool->live--;
}
