/* peer/uv/link.c -- the life of one TCP session: dial or accept, handshake, deadline, end. */
#include "peer/uv/link.h"

#include "peer/uv/session.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

const struct uv_link_limits uv_link_limits_default = {
    .connect_ms = 3000,
    .handshake_ms = 3000,
    .drain_ms = 1000,
    .rekey_ms = 120 * 1000,
    .rekey_bytes = 1024u * 1024 * 1024,
    .control_queue = 256 * 1024,
};

enum {
    /* Interval of TCP keepalives, in seconds. Keepalives detect a dead host if heartbeats do
     * not. */
    KEEPALIVE_S = 15,
    /* Milliseconds after which unacknowledged bytes end the connection. Heartbeats detect a dead
     * peer earlier. */
    USER_TIMEOUT_MS = 30000
};

static void try_next(struct uv_link *l);
static void on_deadline(uv_timer_t *timer);
static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

/* ---- Ending a link ---- */

static void finish(struct uv_link *l)
{
    struct uv_link_net *net = l->net;
    uv_session_free(l);
    channel_close(&l->channel);
    l->state = UV_LINK_FREE;
    net->ended(net->self, l);
}

static void on_closed(uv_handle_t *h)
{
    struct uv_link *l = h->data;
    if (--l->n_handles == 0)
        finish(l);
}

/* Returns why a link ended that never became a session. */
static enum node_why why(const struct uv_link *l, int error)
{
    bool late = error == -ETIMEDOUT;
    if (error == -ECANCELED)
        return NODE_WHY_UNKNOWN; /* -ECANCELED means that this peer ended the link. */
    if (l->reached_ns == 0)
        return late                     ? NODE_WHY_TIMEOUT
               : error == -ECONNREFUSED ? NODE_WHY_REFUSED
               : error == -ENOENT       ? NODE_WHY_UNRESOLVED
               : error == -EHOSTUNREACH ? NODE_WHY_UNREACHABLE
               : error == -ENETUNREACH  ? NODE_WHY_UNREACHABLE
                                        : NODE_WHY_UNKNOWN;
    if (l->channel.state == CHANNEL_NO_VERSION)
        return NODE_WHY_VERSION;
    if (!l->heard)
        return late ? NODE_WHY_MUTE : NODE_WHY_CLOSED;
    if (error == -EPROTO)
        return NODE_WHY_JUNK;
    return late ? NODE_WHY_SLOW : NODE_WHY_BROKEN;
}

void uv_link_end(struct uv_link *l, int error, bool clean)
{
    if (l->state == UV_LINK_CLOSED)
        return;
    assert(l->state != UV_LINK_FREE);
    if (!l->was_up) {
        l->why = why(l, error);
        l->theirs = l->channel.theirs;
    }
    l->state = UV_LINK_CLOSED;
    l->error = error;
    l->clean |= clean;
    if (!uv_is_closing((uv_handle_t *)&l->tcp))
        uv_close((uv_handle_t *)&l->tcp, on_closed);
    uv_close((uv_handle_t *)&l->timer, on_closed);
}

void uv_link_hangup(struct uv_link *l, bool politely)
{
    switch (l->state) {
    case UV_LINK_OPEN:
        if (politely) {
            l->state = UV_LINK_DRAINING;
            uv_timer_start(&l->timer, on_deadline, l->net->limits.drain_ms, 0);
            (void)uv_read_start((uv_stream_t *)&l->tcp, on_room, on_read);
            uv_session_hangup(l);
            return;
        }
        break;
    case UV_LINK_CONNECTING:
    case UV_LINK_HANDSHAKE:
        break;
    case UV_LINK_DRAINING:
        /* Nothing remains to do for a link that is ending already: CLOSE is queued or sent. */
        if (politely)
            return;
        break;
    case UV_LINK_FREE:
    case UV_LINK_CLOSED:
        return;
    }
    uv_link_end(l, -ECANCELED, false);
}

static void on_deadline(uv_timer_t *timer)
{
    struct uv_link *l = timer->data;
    if (l->state == UV_LINK_CONNECTING) {
        l->error = -ETIMEDOUT;
        try_next(l);
    } else {
        uv_link_end(l, -ETIMEDOUT, false);
    }
}

/* ---- The handshake ---- */

static void on_handshake_written(uv_write_t *request, int status)
{
    struct uv_link *l = request->data;
    if (status == 0)
        uv_link_count(l, l->write_size[request - l->write], 0);
    else if (l->state != UV_LINK_CLOSED)
        uv_link_end(l, status, false);
}

/* Passes received handshake bytes to the channel and sends its reply. Returns 0 or a negative
 * errno. */
static int handshake(struct uv_link *l, const uint8_t *in, size_t n_in)
{
    uint8_t *out = l->out + l->n_out;
    size_t n_out = 0;
    int err = channel_handshake(&l->channel, in, n_in, out, &n_out);
    if (err < 0 || n_out == 0)
        return err;
    assert(l->n_writes < 2 && l->n_out + n_out <= sizeof l->out);
    uint32_t i = l->n_writes++;
    l->n_out += (uint32_t)n_out;
    l->write_size[i] = (uint32_t)n_out;
    l->write[i].data = l;
    uv_buf_t buf = uv_buf_init((char *)out, (unsigned)n_out);
    return uv_write(&l->write[i], (uv_stream_t *)&l->tcp, &buf, 1, on_handshake_written);
}

static void set_options(struct uv_link *l);

static void go_up(struct uv_link *l)
{
    /* The socket options are set only after the handshake, so that an unauthenticated connection
     * costs fewer system calls. */
    set_options(l);
    int err = uv_session_open(l);
    if (err < 0) {
        uv_link_end(l, err, false);
        return;
    }
    uv_timer_stop(&l->timer);
    l->state = UV_LINK_OPEN;
    l->was_up = true;
    l->net->up(l->net->self, l);
}

static int begin_channel(struct uv_link *l)
{
    uint8_t ephemeral[32];
    int err = uv_random(NULL, NULL, ephemeral, sizeof ephemeral, 0, NULL);
    if (err < 0)
        return err;
    channel_init(&l->channel, l->dialled, l->net->identity, l->net->psk, ephemeral);
    explicit_bzero(ephemeral, sizeof ephemeral);
    channel_speak(&l->channel, l->net->versions);
    if (!l->dialled)
        channel_remember(&l->channel, l->net->answered);
    l->began = true;
    return 0;
}

/* Returns whether the other end has closed the connection. The other end does so if this process
 * was too busy to read the first message in time. A reply to a closed connection is not computed,
 * because key agreements are expensive. */
static bool has_left(const struct uv_link *l)
{
    uint8_t byte;
    int fd;
    return uv_fileno((const uv_handle_t *)&l->tcp, &fd) == 0
           && recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Handles n received handshake bytes. No key or random bytes are computed for an accepted
 * connection until its first message is complete. */
static void take_handshake(struct uv_link *l, size_t n)
{
    l->heard = true;
    l->n_in += (uint32_t)n;
    if (l->n_in < channel_wants(&l->channel))
        return;
    size_t n_in = l->n_in;
    l->n_in = 0;
    int err = l->began ? 0 : has_left(l) ? -ECONNRESET : begin_channel(l);
    if (err == 0)
        err = handshake(l, l->in, n_in);
    l->knows_key |= err == 0;
    if (err == 0 && l->channel.state == CHANNEL_NO_VERSION)
        /* The two ends have no protocol version in common. handshake() has already sent a message
         * with the versions of this end. */
        err = -EPROTONOSUPPORT;
    if (err < 0)
        uv_link_end(l, err, false);
    else if (l->channel.state == CHANNEL_OPEN)
        go_up(l);
}

bool uv_link_look(struct uv_link *l)
{
    int fd;
    assert(l->state == UV_LINK_HANDSHAKE && !l->dialled && l->n_in == 0);
    if (uv_fileno((uv_handle_t *)&l->tcp, &fd) < 0)
        return false;
    ssize_t n = recv(fd, l->in, CHANNEL_MSG1, MSG_DONTWAIT);
    l->n_in = n > 0 ? (uint32_t)n : 0;
    uv_link_count(l, 0, l->n_in);
    l->heard = n > 0;
    return n == CHANNEL_MSG1;
}

void uv_link_take(struct uv_link *l)
{
    take_handshake(l, 0);
}

/* ---- Reading and sending ---- */

/* Gives libuv the buffer for the next read. During the handshake the buffer has only room for the
 * rest of the current message, so that bytes after this message stay in the kernel. */
static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct uv_link *l = h->data;
    if (l->session) {
        *buf = uv_session_room(l);
        return;
    }
    size_t wants = channel_wants(&l->channel);
    assert(wants > l->n_in && wants <= sizeof l->in);
    *buf = uv_buf_init((char *)l->in + l->n_in, (unsigned)(wants - l->n_in));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    (void)buf;
    struct uv_link *l = stream->data;
    if (n > 0)
        uv_link_count(l, 0, (uint64_t)n);
    switch (l->state) {
    case UV_LINK_HANDSHAKE:
        if (n > 0)
            take_handshake(l, (size_t)n);
        break;
    case UV_LINK_OPEN:
        if (n > 0)
            uv_session_read(l, (size_t)n);
        break;
    case UV_LINK_DRAINING: /* Data that arrive after this side queued CLOSE are dropped. */
        break;
    case UV_LINK_CONNECTING:
    case UV_LINK_FREE:
    case UV_LINK_CLOSED:
        return;
    }
    /* An end of the stream without a CLOSE record counts as an error. */
    if (n < 0)
        uv_link_end(l, n == UV_EOF ? -ECONNRESET : (int)n, false);
}

void uv_link_send(struct uv_link *l, bool bulk, const uint8_t *head, size_t n_head,
                  struct packet *body)
{
    if (l->state == UV_LINK_OPEN)
        uv_session_send(l, bulk ? FRAME_BULK : FRAME_CONTROL, head, n_head, body);
}

struct uplink_bursts uv_link_carried(struct uv_link *l, double *rtt_us)
{
    struct uplink_bursts none = {.n = 0};
    *rtt_us = 0;
    if (l->state != UV_LINK_OPEN)
        return none;
    return uv_session_carried(l, rtt_us);
}

/* ---- Starting a link ---- */

static void set_options(struct uv_link *l)
{
    int fd, on = 1;
    if (uv_fileno((uv_handle_t *)&l->tcp, &fd) < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)uv_tcp_keepalive(&l->tcp, 1, KEEPALIVE_S);
#ifdef TCP_NOTSENT_LOWAT
    int unsent = UV_LINK_NOTSENT;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
#endif
#ifdef TCP_USER_TIMEOUT
    unsigned ms = USER_TIMEOUT_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
#endif
}

/* Starts the handshake of an established connection. Returns 0, or a negative errno if the link
 * must end. */
static int begin_handshake(struct uv_link *l)
{
    l->state = UV_LINK_HANDSHAKE;
    l->reached_ns = uv_hrtime();
    if (l->net->psk == NULL)
        return -ECANCELED;
    int err = uv_timer_start(&l->timer, on_deadline, l->net->limits.handshake_ms, 0);
    if (err == 0 && l->dialled)
        err = begin_channel(l);
    if (err == 0 && l->dialled)
        err = handshake(l, NULL, 0);
    if (err == 0)
        err = uv_read_start((uv_stream_t *)&l->tcp, on_room, on_read);
    return err;
}

static int open_tcp(struct uv_link *l)
{
    int err = uv_tcp_init(l->net->loop, &l->tcp);
    if (err < 0)
        return err;
    l->tcp.data = l;
    l->n_handles++;
    return 0;
}

static int open_handles(struct uv_link *l, struct uv_link_net *net, bool dialled)
{
    assert(l->state == UV_LINK_FREE);
    l->net = net;
    l->dialled = dialled;
    l->was_up = l->clean = l->counted = l->heard = l->knows_key = l->began = false;
    l->error = 0;
    l->reached_ns = 0;
    l->why = NODE_WHY_UNKNOWN;
    l->theirs = (struct channel_versions){0};
    l->session = NULL;
    l->n_in = l->n_out = l->n_writes = l->n_handles = 0;
    l->bytes_sent = l->bytes_received = 0;
    memset(&l->remote, 0, sizeof l->remote);
    memset(&l->channel, 0, sizeof l->channel);
    int err = open_tcp(l);
    if (err < 0)
        return err;
    err = uv_timer_init(net->loop, &l->timer);
    assert(err == 0); /* uv_timer_init() cannot fail. */
    l->timer.data = l;
    l->n_handles++;
    return 0;
}

int uv_link_accept(struct uv_link *l, struct uv_link_net *net, uv_stream_t *server)
{
    int err = open_handles(l, net, false);
    if (err < 0)
        return err;
    l->state = UV_LINK_HANDSHAKE;
    err = uv_accept(server, (uv_stream_t *)&l->tcp);
    if (err == 0) {
        int n = sizeof l->remote;
        (void)uv_tcp_getpeername(&l->tcp, &l->remote.any, &n);
        err = begin_handshake(l);
    }
    if (err < 0)
        uv_link_end(l, err, false);
    return 0;
}

/* ---- Dialling an address ---- */

/* Continues a dial with a new socket, because a socket that failed to connect cannot be reused. */
static void on_retry_closed(uv_handle_t *h)
{
    struct uv_link *l = h->data;
    l->n_handles--;
    if (l->state != UV_LINK_CONNECTING) {
        if (l->n_handles == 0)
            finish(l);
        return;
    }
    int err = open_tcp(l);
    if (err < 0) {
        /* The socket could not be made. Only the timer handle is open, and its close callback ends
         * the link. */
        l->state = UV_LINK_CLOSED;
        l->error = err;
        uv_close((uv_handle_t *)&l->timer, on_closed);
        return;
    }
    try_next(l);
}

static void on_connect(uv_connect_t *request, int status)
{
    struct uv_link *l = request->data;
    if (l->state != UV_LINK_CONNECTING || status == UV_ECANCELED)
        return;
    int err = status < 0 ? status : begin_handshake(l);
    if (status < 0) {
        l->error = status;
        try_next(l);
    } else if (err < 0) {
        uv_link_end(l, err, false);
    }
}

/* Connects to the next address that the dial has not tried. If the link still has the socket of the
 * previous try, closes this socket first, and on_retry_closed() calls this function again. */
static void try_next(struct uv_link *l)
{
    int fd;
    if (l->next_address == l->n_addresses) {
        uv_link_end(l, l->error, false);
        return;
    }
    if (uv_is_closing((uv_handle_t *)&l->tcp))
        return;
    if (uv_fileno((uv_handle_t *)&l->tcp, &fd) == 0) {
        uv_close((uv_handle_t *)&l->tcp, on_retry_closed);
        return;
    }
    l->remote = l->address[l->next_address++];
    l->connect.data = l;
    int err = uv_timer_start(&l->timer, on_deadline, l->net->limits.connect_ms, 0);
    if (err == 0)
        err = uv_tcp_connect(&l->connect, &l->tcp, &l->remote.any, on_connect);
    if (err < 0) {
        l->error = err;
        uv_close((uv_handle_t *)&l->tcp, on_retry_closed);
    }
}

int uv_link_dial(struct uv_link *l, struct uv_link_net *net, const union uv_address *address,
                 uint32_t n)
{
    int err = open_handles(l, net, true);
    if (err < 0)
        return err;
    l->state = UV_LINK_CONNECTING;
    l->n_addresses = n < UV_LINK_DIAL_MAX ? n : UV_LINK_DIAL_MAX;
    l->next_address = 0;
    for (uint32_t i = 0; i < l->n_addresses; i++)
        l->address[i] = address[i];
    l->error = -ENOENT;
    try_next(l);
    return 0;
}
