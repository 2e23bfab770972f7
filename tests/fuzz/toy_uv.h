/* tests/fuzz/toy_uv.h -- replaces the functions of libuv that a link calls, without sockets and
 * clock.
 *
 * The program defines these functions itself, so the linker does not use the library's. The real
 * peer/uv/link.c and session.c then run with the same bytes as from a socket. As in libuv, no
 * callback is called within a call: toy_uv_settle() runs all pending callbacks. There are
 * TOY_HANDLES places for handles. A closed handle frees its place. */
#ifndef TESTS_FUZZ_TOY_UV_H
#define TESTS_FUZZ_TOY_UV_H

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <uv.h>

enum { TOY_HANDLES = 8, TOY_REQUESTS = 64, TOY_WRITTEN = 256 * 1024 };

struct toy_handle
{
    uv_handle_t *handle; /* The registered handle. NULL: the entry is free. */
    bool timer, closing, reading;
    uv_close_cb on_closed;
    uv_alloc_cb on_room;
    uv_read_cb on_read;
    uv_timer_cb on_time;
    uint64_t due_ms; /* Time at which the timer fires, in milliseconds. 0: the timer is stopped. */
};

struct toy_request
{
    uv_req_t *request;
    uv_handle_t *handle;
    uv_write_cb on_written;
    uv_shutdown_cb on_shut;
    uv_connect_cb on_connected;
};

static struct
{
    uint64_t now_ms;
    struct toy_handle at[TOY_HANDLES];
    struct toy_request asked[TOY_REQUESTS];
    uint32_t n_asked;
    int status;      /* Result of the write and connect requests made from now on. */
    uint64_t random; /* State of the random number generator. */
    /* Bytes that links wrote and the test has not taken yet, and the total number of bytes
     * written. */
    uint8_t written[TOY_WRITTEN];
    size_t n_written, n_total;
} toy;

static struct toy_handle *toy_find(const uv_handle_t *h)
{
    for (int i = 0; i < TOY_HANDLES; i++)
        if (toy.at[i].handle == h)
            return &toy.at[i];
    return NULL;
}

static void toy_open(uv_handle_t *h, bool timer)
{
    struct toy_handle *t = toy_find(NULL);
    assert(toy_find(h) == NULL && t != NULL);
    *t = (struct toy_handle){.handle = h, .timer = timer};
}

static void toy_ask(struct toy_request r)
{
    assert(toy.n_asked < TOY_REQUESTS);
    toy.asked[toy.n_asked++] = r;
}

/* ---- functions of libuv that a link calls ---- */

int uv_tcp_init(uv_loop_t *loop, uv_tcp_t *h)
{
    (void)loop;
    toy_open((uv_handle_t *)h, false);
    return 0;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *h)
{
    (void)loop;
    toy_open((uv_handle_t *)h, true);
    return 0;
}

int uv_timer_start(uv_timer_t *h, uv_timer_cb cb, uint64_t ms, uint64_t repeat)
{
    struct toy_handle *t = toy_find((uv_handle_t *)h);
    assert(t != NULL && t->timer && !t->closing && repeat == 0);
    t->on_time = cb;
    t->due_ms = toy.now_ms + ms;
    return 0;
}

int uv_timer_stop(uv_timer_t *h)
{
    struct toy_handle *t = toy_find((uv_handle_t *)h);
    assert(t != NULL && t->timer);
    t->due_ms = 0;
    return 0;
}

void uv_close(uv_handle_t *h, uv_close_cb cb)
{
    struct toy_handle *t = toy_find(h);
    assert(t != NULL && !t->closing);
    t->closing = true;
    t->on_closed = cb;
    t->due_ms = 0;
    t->reading = false;
}

int uv_is_closing(const uv_handle_t *h)
{
    struct toy_handle *t = toy_find(h);
    assert(t != NULL);
    return t->closing;
}

int uv_accept(uv_stream_t *server, uv_stream_t *client)
{
    (void)server;
    assert(toy_find((uv_handle_t *)client) != NULL);
    return 0;
}

int uv_tcp_connect(uv_connect_t *r, uv_tcp_t *h, const struct sockaddr *to, uv_connect_cb cb)
{
    (void)to;
    r->handle = (uv_stream_t *)h;
    toy_ask((struct toy_request){
        .request = (uv_req_t *)r, .handle = (uv_handle_t *)h, .on_connected = cb});
    return 0;
}

int uv_read_start(uv_stream_t *h, uv_alloc_cb room, uv_read_cb read)
{
    struct toy_handle *t = toy_find((uv_handle_t *)h);
    assert(t != NULL && !t->timer);
    if (t->closing)
        return UV_EINVAL;
    t->on_room = room;
    t->on_read = read;
    t->reading = true;
    return 0;
}

int uv_write(uv_write_t *r, uv_stream_t *h, const uv_buf_t *buf, unsigned n, uv_write_cb cb)
{
    assert(toy_find((uv_handle_t *)h) != NULL && n == 1);
    /* Bytes that do not fit into toy.written are dropped. The fuzz target does not read them. */
    if (buf->len <= sizeof toy.written - toy.n_written)
        memcpy(toy.written + toy.n_written, buf->base, buf->len);
    toy.n_written += buf->len <= sizeof toy.written - toy.n_written ? buf->len : 0;
    toy.n_total += buf->len;
    r->handle = h;
    toy_ask((struct toy_request){
        .request = (uv_req_t *)r, .handle = (uv_handle_t *)h, .on_written = cb});
    return 0;
}

int uv_shutdown(uv_shutdown_t *r, uv_stream_t *h, uv_shutdown_cb cb)
{
    r->handle = h;
    toy_ask(
        (struct toy_request){.request = (uv_req_t *)r, .handle = (uv_handle_t *)h, .on_shut = cb});
    return 0;
}

int uv_random(uv_loop_t *loop, uv_random_t *r, void *out, size_t n, unsigned flags, uv_random_cb cb)
{
    (void)loop, (void)r, (void)flags, (void)cb;
    memset(out, (int)(++toy.random & 0x7f), n);
    return 0;
}

int uv_fileno(const uv_handle_t *h, uv_os_fd_t *fd)
{
    (void)h, (void)fd;
    return UV_EBADF; /* No socket exists, so no socket option is set. */
}

int uv_tcp_getpeername(const uv_tcp_t *h, struct sockaddr *name, int *n)
{
    (void)h, (void)name, (void)n;
    return UV_ENOTCONN;
}

int uv_tcp_keepalive(uv_tcp_t *h, int enable, unsigned delay)
{
    (void)h, (void)enable, (void)delay;
    return 0;
}

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return toy.now_ms;
}

uint64_t uv_hrtime(void)
{
    return toy.now_ms * 1000 * 1000;
}

/* ---- functions that the test calls ---- */

/* Runs all pending callbacks: first of requests, then of closed handles. */
static void toy_uv_settle(void)
{
    bool more = true;
    while (more) {
        more = toy.n_asked > 0;
        struct toy_request now[TOY_REQUESTS];
        uint32_t n = toy.n_asked;
        memcpy(now, toy.asked, n * sizeof *now);
        toy.n_asked = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct toy_handle *t = toy_find(now[i].handle);
            int status = t == NULL || t->closing ? UV_ECANCELED : toy.status;
            if (now[i].on_written != NULL)
                now[i].on_written((uv_write_t *)now[i].request, status);
            else if (now[i].on_shut != NULL)
                now[i].on_shut((uv_shutdown_t *)now[i].request, status);
            else
                now[i].on_connected((uv_connect_t *)now[i].request, status);
        }
        for (int i = 0; i < TOY_HANDLES && toy.n_asked == 0; i++) {
            struct toy_handle t = toy.at[i];
            if (t.handle == NULL || !t.closing)
                continue;
            toy.at[i].handle = NULL;
            more = true;
            if (t.on_closed != NULL)
                t.on_closed(t.handle);
        }
    }
}

static void toy_uv_time(uint64_t ms)
{
    toy.now_ms += ms;
    for (int i = 0; i < TOY_HANDLES; i++) {
        struct toy_handle *t = &toy.at[i];
        if (t->handle == NULL || t->due_ms == 0 || t->due_ms > toy.now_ms)
            continue;
        t->due_ms = 0;
        t->on_time((uv_timer_t *)t->handle);
    }
    toy_uv_settle();
}

/* Delivers bytes to a stream, at most `piece` bytes per callback, until the stream stops
 * reading. */
static void toy_uv_arrive(uv_handle_t *h, const uint8_t *p, size_t n, size_t piece)
{
    while (n > 0) {
        struct toy_handle *t = toy_find(h);
        uv_buf_t buf = {0};
        if (t == NULL || t->closing || !t->reading)
            return;
        t->on_room(h, 65536, &buf);
        assert(buf.base != NULL && buf.len > 0);
        size_t k = n < buf.len ? n : buf.len;
        k = piece > 0 && k > piece ? piece : k;
        memcpy(buf.base, p, k);
        t->on_read((uv_stream_t *)h, (ssize_t)k, &buf);
        toy_uv_settle();
        p += k;
        n -= k;
    }
}

static void toy_uv_end(uv_handle_t *h, int error)
{
    struct toy_handle *t = toy_find(h);
    uv_buf_t buf = {0};
    if (t == NULL || t->closing || !t->reading)
        return;
    t->on_room(h, 65536, &buf);
    t->on_read((uv_stream_t *)h, error, &buf);
    toy_uv_settle();
}

#endif
