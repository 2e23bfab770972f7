/* peer/sim/heap.h -- priority queue of pending events of a simulated world, earliest first.
 *
 * A binary heap ordered by (at_us, seq). seq counts pushes, so events with equal times leave in
 * the order of arrival. An event owns the bytes of its message.
 */
#ifndef PEER_SIM_HEAP_H
#define PEER_SIM_HEAP_H

#include "peer/node/node.h"

/* Kind of an event. SIM_FOR_NODE is passed to the node. The other kinds are handled by the
 * simulated kernel and occur only in the network with sessions. */
enum sim_kind {
    SIM_FOR_NODE,
    SIM_SYN, /* The first packet of a dial reaches the dialled peer. */
    /* The dialled end has answered the handshake: the session is up at the dialling end. */
    SIM_REPLY,
    /* The dialling end has finished the handshake: the session is up at the dialled end. */
    SIM_ACCEPTED,
    SIM_DATA,
    SIM_FIN,     /* The other end has closed the session. */
    SIM_REFUSED, /* No process listens at the dialled address. */
    SIM_GIVE_UP, /* A dial has timed out. */
    /* This end has closed the session, and the other end has not answered in time. */
    SIM_DRAINED,
    SIM_UNACKED, /* Sent data were not acknowledged for too long. */
    SIM_RESET    /* Injected fault: this end is notified that the session is over. */
};

struct sim_event
{
    int64_t at_us;
    uint64_t seq;
    /* peer: peer that receives the event. boot: number of the process start of this peer to which
     * the event belongs. If the peer has been started again since then, the event is dropped. */
    uint32_t peer, boot;
    enum node_event_type type;
    enum sim_kind kind;
    int side; /* Index (0 or 1) of the end of the link that sent the event. */
    uint32_t link, tag;
    /* A flag whose meaning depends on the event. LINK_UP: this end dialled. LINK_DOWN and FIN:
     * closed cleanly. DIAL_FAILED: refused, not timed out. DATA: bulk message. HEARD: a complete
     * record arrived. KEPT: the model was stored. */
    bool flag;
    /* Owned by the event. RECV: the message. ADMIT: the identities of the allow-list. */
    uint8_t *bytes;
    size_t n_bytes;
};

struct sim_heap
{
    struct sim_event *at;
    size_t n, cap;
    uint64_t seq;
};

/* Adds an event and takes ownership of e.bytes. Aborts if memory is exhausted, because the
 * simulation cannot continue. */
void sim_heap_push(struct sim_heap *h, struct sim_event e);
/* Removes and returns the earliest event. The caller frees its bytes. Asserts n > 0. */
struct sim_event sim_heap_pop(struct sim_heap *h);
void sim_heap_close(struct sim_heap *h);

/* Events that wait for a condition instead of a time, such as the end of a cut, in order of
 * arrival. */
struct sim_queue
{
    struct sim_event *at;
    size_t n, cap;
};

void sim_queue_add(struct sim_queue *q, struct sim_event e);
void sim_queue_close(struct sim_queue *q);

#endif
