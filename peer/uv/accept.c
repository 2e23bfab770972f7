/* peer/uv/accept.c -- accepts connections while slots are free, and replaces half-open ones when
 * too many are open.
 */
#include "peer/uv/accept.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 512 };

const struct uv_accept_limits uv_accept_limits_default = {
    .half_open = 64,
    .per_address = 8,
    /* Limit of half-open connections from loopback addresses. It is larger than `per_address`,
     * because many peers of one host may start at the same time and connect to each other over
     * loopback. */
    .per_loopback = 64,
    .reserve = 32,
    .rest_ms = 250,
    .batch_ms = 10,
    .crowd = {.calm_per_s = 200,
              /* A burst of up to 400 connections is accepted without a limit per address, because
               * hundreds of peers may start at the same time. */
              .calm_burst = 400,
              .per_s = 10,
              .burst = 32,
              .loopback_per_s = 50,
              .loopback_burst = 128,
              .looks_per_s = 1000},
    .sieve = {.per_s = 1000, .pass_per_s = 250, .window_ms = 250},
};

struct uv_link *uv_accept_free_slot(struct uv_link *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (slots[i].state == UV_LINK_FREE)
            return &slots[i];
    }
    return NULL;
}

/* Returns a free slot (unused link struct) for an accepted connection. Leaves `reserve` slots free
 * for outgoing connections. */
static struct uv_link *slot_for_stranger(struct uv_accept *a)
{
    uint32_t n_free = 0;
    struct uv_link *found = NULL;
    for (uint32_t i = 0; i < a->n_slots && n_free <= a->limits.reserve; i++) {
        if (a->slots[i].state == UV_LINK_FREE) {
            found = &a->slots[i];
            n_free++;
        }
    }
    return n_free > a->limits.reserve ? found : NULL;
}

/* ---- Limits of half-open connections ---- */

/* Adds a link to the half-open links. uncount() removes the link when it becomes a session or
 * ends. */
static void count(struct uv_accept *a, struct uv_link *l)
{
    assert(a->n_half_open < UV_ACCEPT_HALF_OPEN_MAX);
    l->counted = true;
    a->half_open[a->n_half_open++] = l;
}

static void uncount(struct uv_accept *a, struct uv_link *l)
{
    for (uint32_t i = 0; i < a->n_half_open && l->counted; i++) {
        if (a->half_open[i] != l)
            continue;
        a->half_open[i] = a->half_open[--a->n_half_open];
        l->counted = false;
    }
}

static uint32_t n_from(const struct uv_accept *a, uint64_t host)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_half_open; i++)
        n += a->half_open[i]->host == host;
    return n;
}

/* Closes a random half-open connection of the address that has the most half-open connections. The
 * choice is random, so that an attacker cannot predict which connection is closed. */
static void evict_one(struct uv_accept *a)
{
    uint32_t most = 0;
    uint64_t host = 0;
    for (uint32_t i = 0; i < a->n_half_open; i++) {
        uint32_t n = n_from(a, a->half_open[i]->host);
        host = n > most ? a->half_open[i]->host : host;
        most = n > most ? n : most;
    }
    uint64_t k = rng_at(a->random++, 0) % most;
    for (uint32_t i = 0; i < a->n_half_open; i++) {
        struct uv_link *l = a->half_open[i];
        if (l->host == host && k-- == 0) {
            a->counts.evicted++;
            uncount(a, l);
            uv_link_hangup(l, false);
            return;
        }
    }
    /* Unreachable: the address has more than k half-open connections, so the loop above finds one
     * to close. */
    assert(false);
}

static bool over_for_address(const struct uv_accept *a, const struct uv_link *l)
{
    uint32_t most =
        uv_resolve_loopback(&l->remote) ? a->limits.per_loopback : a->limits.per_address;
    return n_from(a, l->host) > most;
}

/* ---- Accepting connections ---- */

/* Returns whether an accepted connection may continue. If the address exceeds its rate limit, the
 * first handshake message must have arrived already, and this function answers the message. sieved:
 * the SYN filter is active for the address. The connection is then treated like one above the rate
 * limit, and is not counted. */
static bool let_in(struct uv_accept *a, struct uv_link *l, bool sieved)
{
    uint64_t now_ms = uv_now(a->net->loop);
    if (l->remote.any.sa_family == AF_UNSPEC)
        /* The other end has closed the connection already, so its address is unknown. */
        return false;
    if (!sieved && rate_limit_knock(&a->crowd, &l->remote, now_ms) == RATE_LIMIT_WELCOME)
        return true;
    if (!uv_link_look(l) || !rate_limit_look(&a->crowd, &l->remote, now_ms))
        return false;
    uv_link_take(l);
    return true;
}

static void refuse(struct uv_accept *a, struct uv_link *l)
{
    a->counts.refused++;
    uncount(a, l);
    uv_link_hangup(l, false);
}

/* Ends one counting period of the SYN filter. While an address is filtered, this timer runs even if
 * no connection arrives, so that the filter is removed after the flood. */
static void on_sift(uv_timer_t *timer);

static void sift(struct uv_accept *a)
{
    if (syn_filter_turn(&a->sieve, uv_now(a->net->loop)) && syn_filter_attach(&a->sieve, a->fd) < 0)
        /* This system cannot attach filters to sockets, so the SYN filter is switched off and only
         * the other limits apply. */
        a->sieve.limits.per_s = 0;
    if (syn_filter_is_on(&a->sieve) && !uv_is_active((uv_handle_t *)&a->sift))
        uv_timer_start(&a->sift, on_sift, a->limits.sieve.window_ms, 0);
}

static void on_sift(uv_timer_t *timer)
{
    struct uv_accept *a = timer->data;
    if (!a->closing)
        sift(a);
}

static void take_connection(struct uv_accept *a)
{
    struct uv_link *l = slot_for_stranger(a);
    /* If all slots (link structs) are in use, the connection stays in the kernel, and libuv does
     * not poll the listening socket until this connection is accepted. */
    a->waiting = l == NULL;
    if (l == NULL || uv_link_accept(l, a->net, (uv_stream_t *)&a->tcp) < 0)
        return;
    a->counts.accepted++;
    if (l->state != UV_LINK_HANDSHAKE)
        return;
    l->host = rate_limit_key(&a->crowd, &l->remote);
    bool sieved = syn_filter_knock(&a->sieve, &l->remote);
    sift(a);
    if (!let_in(a, l, sieved)) {
        refuse(a, l);
        return;
    }
    if (l->state != UV_LINK_HANDSHAKE)
        return; /* let_in() has already ended the link, because its first message was invalid. */
    if (a->n_half_open >= a->limits.half_open)
        evict_one(a);
    count(a, l);
    if (over_for_address(a, l))
        refuse(a, l);
}

static void on_batch(uv_timer_t *timer)
{
    struct uv_accept *a = timer->data;
    a->pausing = false;
    a->batch_ms = uv_now(a->net->loop);
    if (!a->closing && !a->resting)
        take_connection(a);
}

static void listen_again(uv_timer_t *timer);

static void on_rest(uv_handle_t *h)
{
    struct uv_accept *a = h->data;
    if (!a->closing)
        uv_timer_start(&a->timer, listen_again, a->limits.rest_ms, 0);
}

static void on_connection(uv_stream_t *server, int status)
{
    struct uv_accept *a = server->data;
    if (a->resting || a->closing)
        return;
    uint64_t now_ms = uv_now(a->net->loop);
    bool thick = rate_limit_is_thick(&a->crowd, now_ms) || syn_filter_is_on(&a->sieve);
    if (status == 0 && now_ms > a->batch_ms + 1 && thick) {
        /* While this connection is not accepted, libuv does not poll the listening socket.
         * on_batch() accepts the connection after batch_ms. */
        a->pausing = true;
        uv_timer_start(&a->batch, on_batch, a->limits.batch_ms, 0);
    } else if (status == 0) {
        take_connection(a);
    } else if (status == UV_EMFILE || status == UV_ENFILE || status == UV_ENOMEM
               || status == UV_ENOBUFS) {
        /* No file descriptor is free, and libuv would retry accept() in a busy loop. The handle of
         * the listening socket is therefore closed. a->fd, a duplicate of the descriptor, keeps the
         * socket open, so connections still wait in the kernel. */
        a->counts.rests++;
        a->resting = true;
        a->waiting = false;
        uv_close((uv_handle_t *)&a->tcp, on_rest);
    }
}

static int start(struct uv_accept *a, int fd)
{
    int err = uv_tcp_init(a->net->loop, &a->tcp);
    assert(err == 0); /* uv_tcp_init() makes no socket, so it cannot fail. */
    a->tcp.data = a;
    err = uv_tcp_open(&a->tcp, fd);
    if (err < 0)
        close(fd);
    if (err == 0)
        err = uv_listen((uv_stream_t *)&a->tcp, BACKLOG, on_connection);
    return err;
}

/* Ends the pause after a lack of file descriptors: listens on a new duplicate of a->fd. */
static void listen_again(uv_timer_t *timer)
{
    struct uv_accept *a = timer->data;
    int fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        uv_timer_start(&a->timer, listen_again, a->limits.rest_ms, 0);
        return;
    }
    a->resting = false;
    if (start(a, fd) < 0) {
        a->resting = true;
        uv_close((uv_handle_t *)&a->tcp, on_rest);
    }
}

void uv_accept_up(struct uv_accept *a, struct uv_link *l)
{
    uncount(a, l);
}

void uv_accept_ended(struct uv_accept *a, struct uv_link *l)
{
    uncount(a, l);
    a->counts.strangers += !l->dialled && !l->was_up;
    if (a->waiting && !a->closing && !a->resting)
        take_connection(a);
}

/* ---- Opening and closing the acceptor ---- */

static void close_copy(struct uv_accept *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

/* Returns a socket bound to the address, or a negative errno. start() makes it listen. */
static int make_socket(const union uv_address *address)
{
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -errno;
    socklen_t n = address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0
        || bind(fd, &address->any, n) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

int uv_accept_try(const union uv_address *address)
{
    int fd = make_socket(address);
    if (fd < 0)
        return fd;
    int err = listen(fd, 1) < 0 ? -errno : 0;
    close(fd);
    return err;
}

void uv_accept_slots(struct uv_accept *a, struct uv_link *slots, uint32_t n)
{
    a->slots = slots;
    a->n_slots = n;
}

int uv_accept_open(struct uv_accept *a, struct uv_link_net *net,
                   const struct uv_accept_limits *limits, const union uv_address *address, int fd)
{
    assert(limits->half_open > 0 && limits->half_open <= UV_ACCEPT_HALF_OPEN_MAX);
    *a = (struct uv_accept){.net = net, .limits = *limits, .fd = -1};
    if (fd < 0)
        fd = make_socket(address);
    if (fd < 0)
        return fd;
    a->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int err = a->fd < 0 ? -errno : 0;
    if (err == 0)
        err = uv_random(NULL, NULL, &a->random, sizeof a->random, 0, NULL);
    if (err == 0)
        err = uv_timer_init(net->loop, &a->timer);
    if (err < 0) {
        close(fd);
        close_copy(a);
        return err;
    }
    err = uv_timer_init(net->loop, &a->batch);
    assert(err == 0); /* uv_timer_init() cannot fail. */
    err = uv_timer_init(net->loop, &a->sift);
    assert(err == 0);
    a->timer.data = a->batch.data = a->sift.data = a;
    rate_limit_init(&a->crowd, &limits->crowd, a->random, uv_now(net->loop));
    syn_filter_init(&a->sieve, &limits->sieve, uv_now(net->loop));
    err = start(a, fd);
    if (err < 0) {
        uv_accept_close(a);
        return err;
    }
    union uv_address local = {0};
    int n = sizeof local;
    (void)uv_tcp_getsockname(&a->tcp, &local.any, &n);
    /* sin_port also reads the port of an IPv6 address, because it is at the same offset as
     * sin6_port. */
    a->port = ntohs(local.v4.sin_port);
    return 0;
}

void uv_accept_close(struct uv_accept *a)
{
    if (a->closing)
        return;
    a->closing = true;
    if (!a->resting)
        uv_close((uv_handle_t *)&a->tcp, NULL);
    uv_close((uv_handle_t *)&a->timer, NULL);
    uv_close((uv_handle_t *)&a->batch, NULL);
    uv_close((uv_handle_t *)&a->sift, NULL);
    close_copy(a);
}
