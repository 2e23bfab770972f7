/* gossip/exchange/packet.h -- a pool of byte buffers with reference counts.
 *
 * One encoded delta is sent to several neighbours. The delta waits in several send queues, and the
 * edges keep it until it is known to have arrived. All queues and edges share one buffer. A packet
 * without references returns to its pool, so a run in a steady state does not allocate memory. Only
 * the loop thread calls these functions. The worker only writes the bytes of packets that the loop
 * thread has given to it.
 */
#ifndef GOSSIP_EXCHANGE_PACKET_H
#define GOSSIP_EXCHANGE_PACKET_H

#include <stddef.h>
#include <stdint.h>

struct packet
{
    uint32_t refs; /* Number of references. 0: the packet is in the pool's free list. */
    /* len: number of bytes that are used. cap: number of bytes for which there is room. */
    size_t len, cap;
    struct packet_pool *pool;
    struct packet *next; /* Next packet in the pool's free list. */
    uint8_t bytes[];
};

struct packet_pool
{
    struct packet *free; /* List of the packets without references. */
    size_t cap;          /* Bytes that each packet has room for. */
    size_t live;         /* Number of packets with at least one reference. */
};

/* Initialises an empty pool of packets with room for `cap` bytes each. Allocates nothing. */
void packet_pool_init(struct packet_pool *pool, size_t cap);

/* Frees all packets. Asserts that no packet has a reference. */
void packet_pool_close(struct packet_pool *pool);

/* Returns a packet with one reference and len 0, or NULL if memory is exhausted. */
struct packet *packet_get(struct packet_pool *pool);

/* Returns the packet's bytes and sets *n to their number, `len`. */
const uint8_t *packet_bytes(const struct packet *p, size_t *n);
/* packet_hold() adds one reference to a packet. packet_release() drops one, and accepts NULL. */
void packet_hold(struct packet *p);
void packet_release(struct packet *p);

#endif
