/* peer/uv/link.h -- one TCP session: connect or accept, handshake, records, end.
 *
 *   dial --> CONNECTING --+
 *                         v
 *   accept ----------> HANDSHAKE --> OPEN --hang up--> DRAINING --> CLOSED --> (FREE)
 *                         |            |                              ^
 *                         +--failure---+---failure, or peer's CLOSE --+
 *
 * A link is a slot that its owner preallocates. Until the handshake is done, everything that it
 * needs is in the slot, so an unauthenticated connection costs no allocation. An authenticated
 * session gets buffers and queues (peer/uv/session.h).
 *
 * A link ends cleanly if one side has sent an authenticated CLOSE. After sending CLOSE this side
 * half-closes the connection, and then reads and drops data until the other side closes. If it
 * closed at once, a TCP reset could make the other side lose the CLOSE.
 */
#ifndef PEER_UV_LINK_H
#define PEER_UV_LINK_H

#include "peer/node/node.h"
#include "peer/secure/channel.h"
#include "peer/uv/resolve.h"

#include <uv.h>

enum {
    /* Minimum interval between two heard() callbacks of a link, in milliseconds. */
    UV_LINK_HEARD_MS = 250,
    /* Maximum number of bytes that the kernel may hold and has not sent yet (TCP_NOTSENT_LOWAT). */
    UV_LINK_NOTSENT = 128 * 1024,
    UV_LINK_DIAL_MAX = 8 /* Maximum number of addresses that one dial tries in turn. */
};

enum uv_link_state {
    UV_LINK_FREE,
    UV_LINK_CONNECTING,
    UV_LINK_HANDSHAKE,
    UV_LINK_OPEN,
    UV_LINK_DRAINING, /* This side has sent CLOSE, or has queued it. */
    UV_LINK_CLOSED    /* The connection has ended, and its libuv handles are closing. */
};

struct uv_link_limits
{
    uint32_t connect_ms;   /* Time limit of connecting to one address, in milliseconds. */
    uint32_t handshake_ms; /* Time limit of the whole handshake, in milliseconds. */
    /* Time limit from queuing CLOSE to the end of the connection, in milliseconds. */
    uint32_t drain_ms;
    uint32_t rekey_ms;
    uint64_t rekey_bytes;
    size_t control_queue; /* Maximum number of bytes in the control queue. */
};
extern const struct uv_link_limits uv_link_limits_default;

struct uv_link;

/* Settings and callbacks that all links of an owner share. Callbacks are made only from libuv's
 * callbacks, never during a call of the owner into a link. */
struct uv_link_net
{
    uv_loop_t *loop;
    const struct channel_identity *identity;
    /* Cluster key, CHANNEL_KEY bytes. NULL: a dial connects and then ends. */
    const uint8_t *psk;
    /* Versions of the message protocol that this peer supports. */
    struct channel_versions versions;
    /* Replay filter: remembers the first messages that links have answered. NULL: the owner accepts
     * no connections. */
    struct replay *answered;
    struct uv_link_limits limits;
    bool watches; /* True: the throughput of sessions is measured (throughput_probe.h). */
    void *self;
    void (*up)(void *self, struct uv_link *l);
    /* Called when one whole message was received. `bytes` is borrowed for the call. The callback
     * may hang up the link. */
    void (*recv)(void *self, struct uv_link *l, const uint8_t *bytes, size_t n);
    /* Called when bytes of an incomplete message have arrived, at most once per UV_LINK_HEARD_MS.
     * `record`: the bytes complete at least one sealed record. May be NULL. */
    void (*heard)(void *self, struct uv_link *l, bool record);
    /* Called when the last bytes of a bulk message were passed to the kernel. */
    void (*sent)(void *self, struct uv_link *l);
    /* Called when all handles of the link are closed, so that its slot may be reused. The fields
     * was_up, clean and error of the link describe how it ended. */
    void (*ended)(void *self, struct uv_link *l);
    /* Returns the maximum length of a message to accept now, bulk or control. */
    size_t (*limit)(void *self, bool bulk);
    /* Total bytes at the sockets of all links, including handshakes and connections that never
     * became a session. */
    uint64_t bytes_sent, bytes_received;
};

struct uv_session; /* Buffers and queues of an open session (peer/uv/session.h). */

struct uv_link
{
    enum uv_link_state state;
    bool dialled;
    bool was_up;
    bool clean;
    /* Time at which the TCP connection was established, by uv_hrtime(). 0: never connected. */
    uint64_t reached_ns;
    bool heard; /* True: the other end has sent bytes of the handshake. */
    /* True: the other end's first message or reply was sealed with the cluster key. */
    bool knows_key;
    /* Used by the acceptor (accept.h). True: the link is in the acceptor's half_open[]. */
    bool counted;
    /* Used by the acceptor (accept.h): key of the remote address, from rate_limit_key(). */
    uint64_t host;
    /* Cause of the end: 0 or a negative errno. -EPROTO: invalid bytes. */
    int error;
    enum node_why why; /* Reason for the end of a link that was never a session. */
    /* Versions that the other end supports. Valid if `why` is NODE_WHY_VERSION. */
    struct channel_versions theirs;
    uint32_t number;                     /* Number of the session, set by the owner of the link. */
    uint32_t tag;                        /* Tag that the owner of the link gave to this dial. */
    uint64_t bytes_sent, bytes_received; /* Bytes at this link's socket, including the handshake. */
    union uv_address remote;

    struct uv_link_net *net;
    uv_tcp_t tcp;
    uv_timer_t timer;   /* Timer for the deadline of the current state. */
    uint32_t n_handles; /* Number of handles that are not closed yet. */
    struct channel channel;
    bool began; /* True: begin_channel() has initialised `channel`. */
    struct uv_session *session;

    /* All fields from `connect` on are used by the dial and the handshake only. */
    uv_connect_t connect;
    union uv_address address[UV_LINK_DIAL_MAX];
    uint32_t n_addresses, next_address;
    uint8_t in[CHANNEL_MSG2];
    uint32_t n_in;
    uint8_t out[CHANNEL_MSG1 + CHANNEL_MSG2]; /* Room for two handshake messages of this end. */
    uint32_t n_out;
    uv_write_t write[2];
    uint32_t write_size[2], n_writes;
};

/* Accepts the connection that waits at `server`. Returns 0 or a negative errno; after an error
 * the slot is FREE and ended() is not called. */
int uv_link_accept(struct uv_link *l, struct uv_link_net *net, uv_stream_t *server);

/* Reads the bytes that an accepted link has already received. Returns whether they are the complete
 * first handshake message. If not, the caller must hang up the link. */
bool uv_link_look(struct uv_link *l);
/* Continues the handshake of an accepted link with its first message, which uv_link_look() has
 * read. */
void uv_link_take(struct uv_link *l);

/* Tries the addresses in order (at most UV_LINK_DIAL_MAX are kept) until one connects. Failures
 * are reported by ended() only. With n == 0 the link ends with -ENOENT. Returns a negative errno
 * only if the slot could not be set up and is FREE. */
int uv_link_dial(struct uv_link *l, struct uv_link_net *net, const union uv_address *address,
                 uint32_t n);

/* Queues one message: head[0..n_head), which is copied, followed by `body`, which may be NULL
 * and is referenced until it is sealed. Does nothing if the link is not open. */
void uv_link_send(struct uv_link *l, bool bulk, const uint8_t *head, size_t n_head,
                  struct packet *body);

/* Ends the link. The callback ended() follows. politely: queued control messages and then CLOSE are
 * sent first. Otherwise the link closes at once without CLOSE. */
void uv_link_hangup(struct uv_link *l, bool politely);

/* Returns the throughput measurements of an open link since the last call
 * (gossip/exchange/uplink.h). The result has n = 0 if there was no measurement. *rtt_us: smallest
 * round-trip time, in microseconds. */
struct uplink_bursts uv_link_carried(struct uv_link *l, double *rtt_us);

/* Adds sent and received bytes to the counters of the link and of its owner. */
static inline void uv_link_count(struct uv_link *l, uint64_t sent, uint64_t received)
{
    l->bytes_sent += sent;
    l->bytes_received += received;
    l->net->bytes_sent += sent;
    l->net->bytes_received += received;
}

/* For peer/uv/session.c: ends the link at once, and stores `error` and `clean` in the link. */
void uv_link_end(struct uv_link *l, int error, bool clean);

#endif
