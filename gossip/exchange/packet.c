/* gossip/exchange/packet.c -- a pool of byte buffers with reference counts. */
#include "gossip/exchange/packet.h"

#include <assert.h>
#include <stdlib.h>

void packet_pool_init(struct packet_pool *pool, size_t cap)
{
    *pool = (struct packet_pool){.cap = cap};
}

void packet_pool_close(struct packet_pool *pool)
{
    /* No packet may be in use when the pool is closed, because its user would access freed
     * memory. */
    assert(pool->live == 0);
    while (pool->free != NULL) {
        struct packet *p = pool->free;
        pool->free = p->next;
        free(p);
    }
}

/* All packets of a pool have the same capacity, so any free packet can be used. */
struct packet *packet_get(struct packet_pool *pool)
{
    struct packet *p = pool->free;
    if (p != NULL)
        pool->free = p->next;
    else if ((p = malloc(sizeof *p + pool->cap)) == NULL)
        return NULL;
    *p = (struct packet){.refs = 1, .cap = pool->cap, .pool = pool};
    /* packet_pool_close() asserts that the number of live packets is 0, and so detects packets that
     * were never released. */
    pool->live++;
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
    /* The packet has no reference left, so it can be used by the next packet_get(). */
    struct packet_pool *pool = p->pool;
    p->next = pool->free;
    pool->free = p;
    pool->live--;
}
