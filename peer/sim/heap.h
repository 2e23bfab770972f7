/* peer/sim/heap.h -- pending events of a simulated world, earliest first.
 *
 * A binary heap ordered by (at_us, seq): seq counts pushes, so ties never
 * depend on where an event happens to lie. An event owns its message's bytes.
 */
#ifndef PEER_SIM_HEAP_H
#define PEER_SIM_HEAP_H

#include "peer/node/node.h"

struct sim_event
{
    int64_t at_us;
    uint64_t seq;
    uint32_t peer, boot; /* To whom; to which of its lives. */
    enum node_event_type type;
    uint32_t link, tag;
    bool flag;      /* LINK_UP: dialled. LINK_DOWN: clean. */
    uint8_t *bytes; /* RECV. */
    size_t n_bytes;
};

struct sim_heap
{
    struct sim_event *at;
    size_t n, cap;
    uint64_t seq;
};

/* Takes e.bytes. Aborts without memory: a simulation cannot go on. */
void sim_heap_push(struct sim_heap *h, struct sim_event e);
/* The earliest; its bytes are the caller's to free. Asserts n > 0. */
struct sim_event sim_heap_pop(struct sim_heap *h);
void sim_heap_close(struct sim_heap *h);

#endif
