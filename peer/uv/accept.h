/* peer/uv/accept.h -- accepts connections and limits what they can cost before they are authenticated.
 *
 *   connection --> a free slot, half-open --handshake--> session
 *                        |
 *                        +-- bad bytes, silence until the deadline, end,
 *                            or pushed out by a newer one: counted, closed
 *
 * At most limits.half_open handshakes are open. A further connection replaces a random one of the
 * address with the most open handshakes, so that a flood replaces its own connections. An honest peer
 * needs about one millisecond for its handshake and is not locked out.
 *
 * If connections arrive faster than the limits of peer/uv/rate_limit.h, they are accepted in batches,
 * one every batch_ms, so that the process does not wake up for each of them. From an address over its
 * rate, only connections are accepted whose first message has arrived and is sealed with the cluster
 * key. If an address is still faster, the kernel drops most of its connections (peer/uv/syn_filter.h).
 *
 * The owner preallocates the slots. Without a free slot, connections wait in the kernel and are not
 * polled. If file descriptors run out, the acceptor pauses: connections wait in the backlog, and
 * sessions continue.
 */
#ifndef PEER_UV_ACCEPT_H
#define PEER_UV_ACCEPT_H

#include "peer/uv/link.h"
#include "peer/uv/rate_limit.h"
#include "peer/uv/syn_filter.h"

enum { UV_ACCEPT_HALF_OPEN_MAX = 256 };

struct uv_accept_limits
{
    uint32_t half_open;    /* At most UV_ACCEPT_HALF_OPEN_MAX. */
    uint32_t per_address;  /* Largest number of half-open connections of one address. */
    uint32_t per_loopback; /* The same for connections from this host. */
    uint32_t reserve;      /* Free slots left for dialling. */
    uint32_t rest_ms;      /* How long to rest when file descriptors have run out. */
    uint32_t batch_ms;
    struct rate_limit_limits crowd;
    struct syn_filter_limits sieve;
};
extern const struct uv_accept_limits uv_accept_limits_default;

struct uv_accept_counts
{
    uint64_t accepted;
    uint64_t strangers; /* Ended before a session, for whatever reason; includes the next two. */
    uint64_t refused;   /* Over a limit of their address. */
    uint64_t evicted;   /* Pushed out by a newer one. */
    uint64_t rests;     /* Times that file descriptors ran out. */
};

struct uv_accept
{
    uv_tcp_t tcp;
    uv_timer_t timer, batch, sift;
    struct uv_link_net *net;
    struct uv_accept_limits limits;
    struct uv_accept_counts counts;
    struct uv_link *slots; /* The owner has made them and frees them. */
    uint32_t n_slots;
    struct uv_link *half_open[UV_ACCEPT_HALF_OPEN_MAX]; /* In no order. */
    uint32_t n_half_open;
    struct rate_limit crowd;
    struct syn_filter sieve;
    uint64_t batch_ms; /* When the present batch was begun. */
    int fd;            /* A second descriptor of the listening socket, for after a rest. */
    bool waiting;      /* A connection waits for a free slot. */
    bool pausing;      /* A connection waits for the next batch. */
    bool resting, closing;
    uint64_t random;
    uint16_t port; /* Port on which the peer listens, as requested or as chosen by the kernel. */
};

/* Listen on `address`, or on the inherited socket `fd` where fd >= 0 (taken
 * over, also on failure). The slots are used as long as the acceptor lives.
 * 0 or a negative errno; on failure nothing is left but handles that close:
 * run the loop once. */
int uv_accept_open(struct uv_accept *a, struct uv_link_net *net,
                   const struct uv_accept_limits *limits, const union uv_address *address, int fd);
/* Returns 0 if this process can listen on `address` now, else a negative errno such as -EADDRINUSE.
 * Closes the socket again, so another process may take the port later. */
int uv_accept_try(const union uv_address *address);
/* Before the first connection: where links come from. */
void uv_accept_slots(struct uv_accept *a, struct uv_link *slots, uint32_t n);
/* The owner tells of every link that came up and of every one that ended. */
void uv_accept_up(struct uv_accept *a, struct uv_link *l);
void uv_accept_ended(struct uv_accept *a, struct uv_link *l);
/* A free slot for the owner's own use, or NULL. */
struct uv_link *uv_accept_free_slot(struct uv_link *slots, uint32_t n);
void uv_accept_close(struct uv_accept *a);

#endif
