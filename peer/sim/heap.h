/* peer/sim/heap.h -- pending events of a simulated world, earliest first.
 *
 * A binary heap ordered by (at_us, seq): seq counts pushes, so ties never
 * depend on where an event happens to lie. An event owns its message's bytes.
 */
#ifndef PEER_SIM_HEAP_H
#define PEER_SIM_HEAP_H

#include "peer/node/node.h"

/* What happens to a peer: something that its node hears of as it is, or, in the
 * network with sessions, something that its kernel hears of first. */
enum sim_kind {
    SIM_FOR_NODE,
    SIM_SYN,      /* A dial reaches us. */
    SIM_REPLY,    /* The dialled end has answered the handshake: our session is up. */
    SIM_ACCEPTED, /* The dialling end has finished it: so is that of the dialled one. */
    SIM_DATA,
    SIM_FIN,     /* The other end is gone. */
    SIM_REFUSED, /* Nobody listens there. */
    SIM_GIVE_UP, /* A dial took too long. */
    SIM_DRAINED, /* We hung up a while ago. */
    SIM_UNACKED, /* What we sent has not been taken for too long. */
    SIM_RESET    /* A fault: our end is told that the session is over. */
};

struct sim_event
{
    int64_t at_us;
    uint64_t seq;
    uint32_t peer, boot; /* To whom; to which of its lives. */
    enum node_event_type type;
    enum sim_kind kind;
    int side; /* What is under way between two ends: which has sent it. */
    uint32_t link, tag;
    bool flag;      /* LINK_UP: dialled. LINK_DOWN: clean. Data: bulk. KEPT: stored. */
    uint8_t *bytes; /* RECV; ADMIT: identities. */
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

/* Events that wait for something else than a time, in order of arrival. */
struct sim_queue
{
    struct sim_event *at;
    size_t n, cap;
};

void sim_queue_add(struct sim_queue *q, struct sim_event e);
void sim_queue_close(struct sim_queue *q);

#endif
