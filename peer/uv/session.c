/* peer/uv/session.c -- queues of an open link, the chunks that libuv is writing, and received
 * records. */
#include "peer/uv/session.h"

#include "gossip/exchange/packet.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void pump(struct uv_link *l);

/* ---- The queues of messages ---- */

/* Removes the first item of a message queue. Keeps the item for a later message, or frees it if
 * UV_SESSION_SPARES items are kept already. */
static void drop_first(struct uv_session *s, enum frame_lane lane)
{
    struct uv_session_queue *q = &s->queue[lane];
    struct uv_session_item *i = q->first;
    q->bytes -= frame_left(&i->cut);
    q->n--;
    q->first = i->next;
    if (q->first == NULL)
        q->end = &q->first;
    packet_release(i->body);
    if (s->n_spare == UV_SESSION_SPARES) {
        free(i);
        return;
    }
    i->next = s->spare;
    s->spare = i;
    s->n_spare++;
}

static void drop_all(struct uv_session *s, enum frame_lane lane)
{
    while (s->queue[lane].first)
        drop_first(s, lane);
}

/* Returns the smallest unused queue item with room for n_head bytes, or a new item. NULL: out of
 * memory. */
static struct uv_session_item *get_item(struct uv_session *s, size_t n_head)
{
    struct uv_session_item **best = NULL, *i;
    for (struct uv_session_item **at = &s->spare; *at; at = &(*at)->next)
        if ((*at)->cap >= n_head && (best == NULL || (*at)->cap < (*best)->cap))
            best = at;
    if (best) {
        i = *best;
        *best = i->next;
        s->n_spare--;
        return i;
    }
    size_t cap = UV_SESSION_HEAD_LEAST;
    while (cap < n_head)
        cap *= 2;
    i = malloc(sizeof *i + cap);
    if (i)
        i->cap = cap;
    return i;
}

static struct uv_session_item *make_item(struct uv_session *s, enum frame_lane lane,
                                         const uint8_t *head, size_t n_head, struct packet *body)
{
    struct uv_session_item *i = get_item(s, n_head);
    if (i == NULL)
        return NULL;
    const uint8_t *bytes = NULL;
    size_t n = 0;
    if (body) {
        packet_hold(body);
        bytes = body->bytes;
        n = body->len;
    }
    i->next = NULL;
    i->body = body;
    if (n_head > 0)
        memcpy(i->head, head, n_head);
    frame_cut_init(&i->cut, lane, i->head, n_head, bytes, n);
    return i;
}

void uv_session_send(struct uv_link *l, enum frame_lane lane, const uint8_t *head, size_t n_head,
                     struct packet *body)
{
    struct uv_session_queue *q = &l->session->queue[lane];
    struct uv_session_item *i = make_item(l->session, lane, head, n_head, body);
    if (i == NULL) {
        uv_link_end(l, -ENOMEM, false);
        return;
    }
    *q->end = i;
    q->end = &i->next;
    q->n++;
    q->bytes += frame_left(&i->cut);
    pump(l);
    bool over =
        lane == FRAME_BULK ? q->n > UV_SESSION_BULK_MAX : q->bytes > l->net->limits.control_queue;
    if (over)
        uv_link_end(l, -ENOBUFS, false);
}

/* ---- Sealing and sending ---- */

static void seal(struct uv_link *l, struct uv_session_chunk *c, const struct frame_record *r)
{
    assert(c->n + r->n + r->n2 + UV_SESSION_EMPTY <= UV_SESSION_CHUNK);
    c->n += (uint32_t)channel_seal(&l->channel, r->kind, r->data, r->n, r->data2, r->n2,
                                   c->bytes + c->n);
}

static bool room_for(const struct uv_session_chunk *c, size_t n)
{
    if (n > CHANNEL_PLAIN_MAX)
        n = CHANNEL_PLAIN_MAX;
    return c->n + n + UV_SESSION_EMPTY <= UV_SESSION_CHUNK;
}

/* Changes the encryption key if rekey_ms have passed, or rekey_bytes were sent, since the last
 * change. The next record uses the new key. */
static void rekey_if_due(struct uv_link *l, struct uv_session_chunk *c)
{
    struct uv_session *s = l->session;
    const struct uv_link_limits *limits = &l->net->limits;
    uint64_t now = uv_now(l->net->loop);
    if (now < s->rekey_at_ms && l->channel.sent_since_rekey < limits->rekey_bytes)
        return;
    seal(l, c, &(struct frame_record){.kind = CHANNEL_REKEY});
    s->rekey_at_ms = now + limits->rekey_ms;
}

/* Encrypts the next record of the queue's first message into the chunk (the records of one socket
 * write). Returns false if the queue is empty or the chunk is full. */
static bool take_record(struct uv_link *l, struct uv_session_chunk *c, enum frame_lane lane)
{
    struct frame_record r;
    struct uv_session_queue *q = &l->session->queue[lane];
    struct uv_session_item *i = q->first;
    if (i == NULL || !room_for(c, frame_left(&i->cut)))
        return false;
    bool more = frame_next(&i->cut, &r);
    assert(more);
    q->bytes -= r.n + r.n2;
    seal(l, c, &r);
    if (frame_left(&i->cut) == 0) {
        c->n_ended += lane == FRAME_BULK;
        drop_first(l->session, lane);
    }
    return true;
}

/* Fills a chunk (the records of one socket write): control messages first, then bulk messages if no
 * control message is left. */
static void fill(struct uv_link *l, struct uv_session_chunk *c)
{
    struct uv_session *s = l->session;
    struct uv_session_queue *control = &s->queue[FRAME_CONTROL];
    c->n = c->n_ended = 0;
    if (control->first == NULL && s->queue[FRAME_BULK].first == NULL && !s->closing)
        return;
    rekey_if_due(l, c);
    while (take_record(l, c, FRAME_CONTROL))
        ;
    if (control->first)
        return;
    while (take_record(l, c, FRAME_BULK))
        ;
    if (s->closing && !s->closed && room_for(c, 0)) {
        seal(l, c, &(struct frame_record){.kind = CHANNEL_CLOSE});
        s->closed = true;
    }
}

static void on_half_closed(uv_shutdown_t *request, int status)
{
    /* Errors of the half-close are ignored, because the drain deadline ends the link anyway. */
    (void)request;
    (void)status;
}

static void on_written(uv_write_t *request, int status)
{
    struct uv_session_chunk *c = request->data;
    struct uv_link *l = c->link;
    c->flying = false;
    if (status == 0)
        uv_link_count(l, c->n, 0);
    if (l->state == UV_LINK_CLOSED)
        return;
    if (status < 0) {
        uv_link_end(l, status, false);
        return;
    }
    uint32_t n_ended = c->n_ended;
    pump(l);
    while (n_ended-- > 0 && l->state == UV_LINK_OPEN)
        l->net->sent(l->net->self, l);
}

/* Called before bytes are sent. If the other end has acknowledged all bytes sent so far, the
 * throughput probe ends the current burst of its measurement. */
static void look(struct uv_link *l)
{
    struct uv_session *s = l->session;
    bool flies = false;
    for (uint32_t i = 0; i < UV_SESSION_CHUNKS; i++)
        flies |= s->chunk[i].flying;
    if (l->net->watches && !flies)
        uv_carried_look(&s->carried, s->fd);
}

struct uplink_bursts uv_session_carried(struct uv_link *l, double *rtt_us)
{
    struct uv_session *s = l->session;
    struct uplink_bursts bursts = uv_carried_take(&s->carried, s->fd);
    *rtt_us = s->carried.rtt_us;
    return bursts;
}

/* Passes chunks (the records of one socket write each) to libuv while messages are queued and a
 * chunk is free. */
static void pump(struct uv_link *l)
{
    struct uv_session *s = l->session;
    look(l);
    for (uint32_t i = 0; i < UV_SESSION_CHUNKS && !s->closed; i++) {
        struct uv_session_chunk *c = &s->chunk[i];
        if (c->flying)
            continue;
        fill(l, c);
        if (c->n == 0)
            return;
        c->flying = true;
        c->request.data = c;
        uv_buf_t buf = uv_buf_init((char *)c->bytes, c->n);
        int err = uv_write(&c->request, (uv_stream_t *)&l->tcp, &buf, 1, on_written);
        if (err == 0 && s->closed)
            err = uv_shutdown(&s->shutdown, (uv_stream_t *)&l->tcp, on_half_closed);
        if (err < 0) {
            uv_link_end(l, err, false);
            return;
        }
        l->clean |= s->closed;
    }
}

void uv_session_hangup(struct uv_link *l)
{
    drop_all(l->session, FRAME_BULK);
    l->session->closing = true;
    pump(l);
}

/* ---- Receiving and decrypting ---- */

uv_buf_t uv_session_room(struct uv_link *l)
{
    struct uv_session *s = l->session;
    if (l->state == UV_LINK_DRAINING)
        s->n_in = 0;
    assert(s->n_in < sizeof s->in);
    return uv_buf_init((char *)s->in + s->n_in, (unsigned)(sizeof s->in - s->n_in));
}

/* Handles the plaintext of one record: a fragment of a message, or a REKEY or CLOSE. */
static int take_plain(struct uv_link *l, enum channel_kind kind, const uint8_t *plain, size_t n)
{
    struct uv_session *s = l->session;
    struct uv_link_net *net = l->net;
    struct frame_message m;
    int whole;
    switch (kind) {
    case CHANNEL_CLOSE:
        uv_link_end(l, 0, true);
        return 0;
    /* A REKEY record needs no action here, because channel_open() has already changed the
     * decryption key. */
    case CHANNEL_REKEY:
        return 0;
    case CHANNEL_CONTROL:
    case CHANNEL_CONTROL_END:
    case CHANNEL_BULK:
    case CHANNEL_BULK_END:
        frame_limit(&s->frame, FRAME_CONTROL, net->limit(net->self, false));
        frame_limit(&s->frame, FRAME_BULK, net->limit(net->self, true));
        whole = frame_push(&s->frame, kind, plain, n, &m);
        if (whole == 1 && kind == CHANNEL_BULK_END)
            uv_carried_acknowledge(s->fd);
        s->whole |= whole == 1;
        s->opened |= whole == 0;
        if (whole == 1)
            net->recv(net->self, l, m.bytes, m.n);
        return whole < 0 ? whole : 0;
    }
    return -EPROTO;
}

/* Decrypts each complete record of s->in[0..n_in). Returns the number of bytes used, or a
 * negative errno. */
static ptrdiff_t take_records(struct uv_link *l)
{
    struct uv_session *s = l->session;
    size_t at = 0;
    while (l->state == UV_LINK_OPEN && s->n_in - at >= CHANNEL_HEADER) {
        const uint8_t *p = s->in + at;
        size_t n = (size_t)p[0] << 8 | p[1], n_plain;
        enum channel_kind kind;
        if (n <= 16)
            return -EPROTO;
        if (s->n_in - at < CHANNEL_HEADER + n)
            break;
        uint8_t *plain = frame_room(&s->frame);
        if (plain == NULL)
            return -ENOMEM;
        int err = channel_open(&l->channel, p + CHANNEL_HEADER, n, plain, &n_plain, &kind);
        if (err == 0)
            err = take_plain(l, kind, plain, n_plain);
        if (err < 0)
            return err;
        at += CHANNEL_HEADER + n;
    }
    return (ptrdiff_t)at;
}

/* Reports that bytes of an incomplete message have arrived. Without this report, a peer on a slow
 * link would be suspected while a long message arrives. */
static void tell_heard(struct uv_link *l)
{
    struct uv_session *s = l->session;
    uint64_t now_ms = uv_now(l->net->loop);
    if (l->net->heard == NULL || l->state != UV_LINK_OPEN || s->whole || now_ms < s->heard_ms)
        return;
    bool opened = s->opened;
    s->heard_ms = now_ms + UV_LINK_HEARD_MS;
    s->opened = false;
    l->net->heard(l->net->self, l, opened);
}

void uv_session_read(struct uv_link *l, size_t n)
{
    struct uv_session *s = l->session;
    s->n_in += (uint32_t)n;
    assert(s->n_in <= sizeof s->in);
    s->whole = false;
    ptrdiff_t used = take_records(l);
    if (used < 0) {
        uv_link_end(l, (int)used, false);
        return;
    }
    s->n_in -= (uint32_t)used;
    memmove(s->in, s->in + used, s->n_in);
    tell_heard(l);
}

/* ---- Opening and closing a session ---- */

int uv_session_open(struct uv_link *l)
{
    struct uv_session *s = malloc(sizeof *s);
    if (s == NULL)
        return -ENOMEM;
    s->fd = -1;
    (void)uv_fileno((uv_handle_t *)&l->tcp, &s->fd);
    uv_carried_init(&s->carried, s->fd);
    frame_init(&s->frame, 0, 0);
    s->heard_ms = 0;
    s->opened = s->whole = false;
    for (uint32_t i = 0; i < FRAME_LANES; i++)
        s->queue[i] = (struct uv_session_queue){.end = &s->queue[i].first};
    for (uint32_t i = 0; i < UV_SESSION_CHUNKS; i++) {
        s->chunk[i].link = l;
        s->chunk[i].flying = false;
    }
    s->spare = NULL;
    s->n_spare = 0;
    s->closing = s->closed = false;
    s->rekey_at_ms = uv_now(l->net->loop) + l->net->limits.rekey_ms;
    s->n_in = 0;
    l->session = s;
    return 0;
}

void uv_session_free(struct uv_link *l)
{
    struct uv_session *s = l->session;
    if (s == NULL)
        return;
    drop_all(s, FRAME_CONTROL);
    drop_all(s, FRAME_BULK);
    while (s->spare) {
        struct uv_session_item *i = s->spare;
        s->spare = i->next;
        free(i);
    }
    frame_close(&s->frame);
    free(s);
    l->session = NULL;
}
