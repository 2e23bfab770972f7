/* peer/uv/link.h -- one TCP session: connect or accept, handshake, records, end.
 *
 *   dial --> CONNECTING --+
 *                         v
 *   accept ----------> HANDSHAKE --> OPEN --hang up--> DRAINING --> CLOSED --> (FREE)
 *                         |            |                              ^
 *                         +--failure---+---failure, or peer's CLOSE --+
 *
 * A link is a slot that its owner preallocates. Until the handshake is done it
 * holds all that is needed in itself: a stranger costs no allocation. An
 * authenticated session gets its buffers and queues (peer/uv/session.h).
 *
 * An end is clean after an authenticated CLOSE from either side. Our CLOSE is
 * followed by a half-close, and we read on (and drop it) until the peer's end,
 * so that no reset overtakes the CLOSE.
 */
#ifndef PEER_UV_LINK_H
#define PEER_UV_LINK_H

#include "peer/node/node.h"
#include "peer/secure/channel.h"
#include "peer/uv/resolve.h"

#include <uv.h>

enum {
    UV_LINK_HEARD_MS = 250,       /* Between two words that part of a message came in. */
    UV_LINK_NOTSENT = 128 * 1024, /* Bytes the kernel may hold unsent. */
    UV_LINK_DIAL_MAX = 8          /* Addresses tried one after the other in one dial. */
};

enum uv_link_state {
    UV_LINK_FREE,
    UV_LINK_CONNECTING,
    UV_LINK_HANDSHAKE,
    UV_LINK_OPEN,
    UV_LINK_DRAINING, /* We have said CLOSE, or are about to. */
    UV_LINK_CLOSED    /* uv_close() is under way. */
};

struct uv_link_limits
{
    uint32_t connect_ms;   /* Each address of a dial. */
    uint32_t handshake_ms; /* All of it, not each read. */
    uint32_t drain_ms;     /* Our CLOSE to the peer's end. */
    uint32_t rekey_ms;
    uint64_t rekey_bytes;
    size_t control_queue; /* Bytes. */
};
extern const struct uv_link_limits uv_link_limits_default;

struct uv_link;

/* Settings and callbacks that all links of an owner share. Callbacks are made only from libuv's
 * callbacks, never during a call of the owner into a link. */
struct uv_link_net
{
    uv_loop_t *loop;
    const struct channel_identity *identity;
    const uint8_t *psk;               /* CHANNEL_KEY bytes; NULL: a dial only connects, and ends. */
    struct channel_versions versions; /* Message versions of this peer. */
    struct replay *answered; /* First messages that links have answered; NULL where none accepts. */
    struct uv_link_limits limits;
    bool watches; /* Measure the throughput of sessions (throughput_probe.h). */
    void *self;
    void (*up)(void *self, struct uv_link *l);
    /* `bytes` is borrowed for the call. The link may be hung up in it. */
    void (*recv)(void *self, struct uv_link *l, const uint8_t *bytes, size_t n);
    /* May be NULL. Bytes came, of a message that is not whole; `record`: some whole record was among
     * them. Every UV_LINK_HEARD_MS at most. */
    void (*heard)(void *self, struct uv_link *l, bool record);
    void (*sent)(void *self, struct uv_link *l); /* A bulk message has left. */
    /* All handles are closed, and the slot may be reused. was_up, clean and error describe the
     * end. */
    void (*ended)(void *self, struct uv_link *l);
    /* The longest message to take now, by lane. */
    size_t (*limit)(void *self, bool bulk);
    uint64_t bytes_sent, bytes_received; /* At the sockets, handshakes and strangers included. */
};

struct uv_session; /* peer/uv/session.h: buffers and queues of an open session. */

struct uv_link
{
    enum uv_link_state state;
    bool dialled;
    bool was_up;
    bool clean;
    uint64_t reached_ns; /* Time of the TCP connection by uv_hrtime(). 0: never connected. */
    bool heard;          /* The other end has sent a handshake message. */
    /* The other end's first message or reply was sealed with the cluster key. */
    bool knows_key;
    bool counted;                   /* The acceptor's: counts among its half-open ones. */
    uint64_t host;                  /* Likewise: where it comes from (rate_limit_key()). */
    int error;                      /* Why it ended: 0, or a negative errno. -EPROTO: bad bytes. */
    enum node_why why;              /* Reason for the end of a link that was never a session. */
    struct channel_versions theirs; /* With NODE_WHY_VERSION: what they speak. */
    uint32_t number;                /* The owner's. */
    uint32_t tag;                   /* The owner's, of a dial. */
    uint64_t bytes_sent, bytes_received; /* At its socket, the handshake included. */
    union uv_address remote;

    struct uv_link_net *net;
    uv_tcp_t tcp;
    uv_timer_t timer;   /* Deadline of the state. */
    uint32_t n_handles; /* Not yet closed. */
    struct channel channel;
    bool began; /* The channel has its keys. */
    struct uv_session *session;

    /* Before the session: the dial, and the handshake's buffers. */
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

/* Take the connection that waits at `server`. 0 or a negative errno: then the
 * slot is FREE and ended() will not come. */
int uv_link_accept(struct uv_link *l, struct uv_link_net *net, uv_stream_t *server);

/* A link that was accepted just now: is its first message there already, whole? What of it is there
 * has been read; where it is not whole, the link is good for nothing but to be hung up. */
bool uv_link_look(struct uv_link *l);
/* Accepts the connection that waits on the listening socket. */
void uv_link_take(struct uv_link *l);

/* Tries the addresses in order (at most UV_LINK_DIAL_MAX are kept) until one connects. Failures
 * are reported by ended() only. With n == 0 the link ends with -ENOENT. Returns a negative errno
 * only if the slot could not be set up and is FREE. */
int uv_link_dial(struct uv_link *l, struct uv_link_net *net, const union uv_address *address,
                 uint32_t n);

/* Queue one message: head[0..n_head), copied, then body, which is held until
 * it is sealed. Ignored where the link is not open. */
void uv_link_send(struct uv_link *l, bool bulk, const uint8_t *head, size_t n_head,
                  struct packet *body);

/* End it. Politely: what control is queued goes first, then CLOSE. Otherwise
 * at once without a word. ended() follows. */
void uv_link_hangup(struct uv_link *l, bool politely);

/* Returns the bursts of an open link since the last call. n = 0: none, or the throughput is not
 * known. rtt_us: smallest round-trip time, in microseconds. */
struct uplink_bursts uv_link_carried(struct uv_link *l, double *rtt_us);

/* Adds bytes that went through the link's socket. */
static inline void uv_link_count(struct uv_link *l, uint64_t sent, uint64_t received)
{
    l->bytes_sent += sent;
    l->bytes_received += received;
    l->net->bytes_sent += sent;
    l->net->bytes_received += received;
}

/* For peer/uv/session.c: end it now; error as in the struct. */
void uv_link_end(struct uv_link *l, int error, bool clean);

#endif
