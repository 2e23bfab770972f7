/* gossip/exchange/packet.h -- byte buffers shared by reference, from a pool.
 *
 * One encoded delta goes to several neighbours, waits in their send queues and
 * stays in the edges' slots until it is known to have arrived: one buffer,
 * counted. A released packet goes back to its pool, so that a steady run
 * allocates nothing. All calls come from one thread (the loop's); the worker
 * only fills the bytes of packets it was handed.
 */
#ifndef GOSSIP_EXCHANGE_PACKET_H
#define GOSSIP_EXCHANGE_PACKET_H

#include <stddef.h>
#include <stdint.h>

struct packet
{
    uint32_t refs;
    size_t len, cap;
    struct packet_pool *pool;
    struct packet *next; /* In the pool's free list. */
    uint8_t bytes[];
};

struct packet_pool
{
    struct packet *free;
    size_t cap;  /* Bytes that each packet has room for. */
    size_t live; /* Packets that somebody holds. */
};

void packet_pool_init(struct packet_pool *pool, size_t cap);

/* Frees what is in the pool. Every packet must have come back (asserted). */
void packet_pool_close(struct packet_pool *pool);

/* A packet with one reference and len 0, or NULL without memory. */
struct packet *packet_get(struct packet_pool *pool);

/* The len bytes that were written to it. */
const uint8_t *packet_bytes(const struct packet *p, size_t *n);
/* One reference more, or one less; release allows NULL. */
void packet_hold(struct packet *p);
void packet_release(struct packet *p);

#endif
