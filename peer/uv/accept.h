/* peer/uv/accept.h -- accepts connections and limits what they can cost before they are
 * authenticated.
 *
 *   connection --> a free slot, half-open --handshake--> session
 *                        |
 *                        +-- invalid bytes, no end of the handshake before the deadline, closed by
 *                            the other end, or replaced by a newer connection: counted, closed
 *
 * At most limits.half_open handshakes are open. A further connection replaces a random one of the
 * address that has the most open handshakes. A flood therefore replaces its own connections. An
 * honest peer needs about one millisecond for its handshake and is not locked out.
 *
 * If connections arrive faster than the limits of peer/uv/rate_limit.h, they are accepted in
 * batches, one batch every batch_ms, so that the process does not wake up for each connection. A
 * connection from an address that exceeds its own rate limit is kept only if its first handshake
 * message has arrived already and is sealed with the cluster key. If an address connects even
 * faster, the kernel drops most of its connections (peer/uv/syn_filter.h).
 *
 * The owner preallocates the slots. If no slot is free, connections wait in the kernel and are
 * not polled. If file descriptors run out, the acceptor pauses: connections wait in the kernel's
 * backlog, and open sessions continue.
 */
#ifndef PEER_UV_ACCEPT_H
#define PEER_UV_ACCEPT_H

#include "peer/uv/link.h"
#include "peer/uv/rate_limit.h"
#include "peer/uv/syn_filter.h"

enum { UV_ACCEPT_HALF_OPEN_MAX = 256 };

struct uv_accept_limits
{
    /* Largest number of half-open connections, at most UV_ACCEPT_HALF_OPEN_MAX. */
    uint32_t half_open;
    uint32_t per_address; /* Largest number of half-open connections of one remote address. */
    /* Largest number of half-open connections from this host's loopback addresses. */
    uint32_t per_loopback;
    /* Number of free slots (unused link structs) that only outgoing connections may use. */
    uint32_t reserve;
    /* After file descriptors have run out, no connection is accepted for this time, in
     * milliseconds. */
    uint32_t rest_ms;
    uint32_t batch_ms;
    struct rate_limit_limits crowd;
    struct syn_filter_limits sieve;
};
extern const struct uv_accept_limits uv_accept_limits_default;

struct uv_accept_counts
{
    uint64_t accepted;
    /* Accepted connections that ended before their handshake was complete. Includes `refused` and
     * `evicted`. */
    uint64_t strangers;
    /* Connections that were closed because their remote address exceeded a limit. */
    uint64_t refused;
    uint64_t evicted; /* Half-open connections that were closed in favour of a newer connection. */
    /* Number of times that the acceptor paused because file descriptors had run out. */
    uint64_t rests;
};

struct uv_accept
{
    uv_tcp_t tcp;
    uv_timer_t timer, batch, sift;
    struct uv_link_net *net;
    struct uv_accept_limits limits;
    struct uv_accept_counts counts;
    struct uv_link *slots; /* Array of n_slots links, owned by the caller of uv_accept_slots(). */
    uint32_t n_slots;
    /* Links whose handshake is not complete, in no order. The first n_half_open entries are
     * used. */
    struct uv_link *half_open[UV_ACCEPT_HALF_OPEN_MAX];
    uint32_t n_half_open;
    struct rate_limit crowd;
    struct syn_filter sieve;
    /* Time at which the current batch of accepted connections began, in milliseconds of the loop's
     * clock. */
    uint64_t batch_ms;
    /* Duplicate of the listening socket. The acceptor listens on it again after a pause. */
    int fd;
    /* True: a connection waits in the kernel, because all slots (link structs) are in use. */
    bool waiting;
    /* True: a connection waits in the kernel until the next batch of connections is accepted. */
    bool pausing;
    bool resting, closing;
    uint64_t random;
    uint16_t port; /* Port on which the peer listens, as requested or as chosen by the kernel. */
};

/* Listens on `address`, or on the inherited socket `fd` if fd >= 0. The acceptor takes ownership
 * of `fd`, also on failure. Returns 0 or a negative errno. After an error some handles are still
 * closing, so the loop must run once before *a is freed. */
int uv_accept_open(struct uv_accept *a, struct uv_link_net *net,
                   const struct uv_accept_limits *limits, const union uv_address *address, int fd);
/* Returns 0 if this process can listen on `address` now, else a negative errno such as -EADDRINUSE.
 * Closes the socket again, so another process may take the port later. */
int uv_accept_try(const union uv_address *address);
/* Sets the array of link structs (slots) in which the acceptor finds a free one for each new link.
 * Call it before the first connection. The array must exist as long as the acceptor. */
void uv_accept_slots(struct uv_accept *a, struct uv_link *slots, uint32_t n);
/* The owner calls uv_accept_up() for each link that became a session, and uv_accept_ended() for
 * each link that ended. */
void uv_accept_up(struct uv_accept *a, struct uv_link *l);
void uv_accept_ended(struct uv_accept *a, struct uv_link *l);
/* Returns a free slot (unused link struct), for example for an outgoing connection. NULL: no slot
 * is free. */
struct uv_link *uv_accept_free_slot(struct uv_link *slots, uint32_t n);
void uv_accept_close(struct uv_accept *a);

#endif
