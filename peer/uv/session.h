/* peer/uv/session.h -- an open link's traffic: messages to sealed records on the stream, and back.
 *
 *   uv_session_send --> [control queue] --\  cut, seal   chunk 0 --> uv_write
 *                   --> [bulk queue]    --/              chunk 1 --> uv_write
 *
 * Two queues, cut into records as late as possible; control overtakes bulk
 * between records. At most UV_SESSION_CHUNKS chunks are with libuv at a time,
 * and TCP_NOTSENT_LOWAT keeps the kernel's backlog as short, so that a
 * heartbeat waits behind 128 KiB and what is in flight, never behind a model.
 * A control queue over its limit hangs up: the other end has stopped reading.
 * Bulk is bounded by the node's lock step; UV_SESSION_BULK_MAX is the backstop.
 *
 * What arrives is handed on message by message in the very call that reads it,
 * and the next read follows only then: the socket's window is the only inbound
 * queue, and a reader that is slow slows the sender.
 */
#ifndef PEER_UV_SESSION_H
#define PEER_UV_SESSION_H

#include "peer/secure/frame.h"
#include "peer/uv/link.h"
#include "peer/uv/throughput_probe.h"

enum {
    UV_SESSION_CHUNKS = 2,
    UV_SESSION_RECORD = CHANNEL_HEADER + CHANNEL_RECORD_MAX,
    UV_SESSION_EMPTY = CHANNEL_HEADER + 1 + 16, /* A record without data: REKEY, CLOSE. */
    UV_SESSION_CHUNK =
        UV_SESSION_EMPTY + UV_SESSION_RECORD, /* Bytes: a whole record fits even behind a REKEY. */
    UV_SESSION_IN = 2 * UV_SESSION_RECORD,
    UV_SESSION_BULK_MAX = 24,    /* Messages. */
    UV_SESSION_SPARES = 8,       /* Items that have left a queue, kept for the next messages. */
    UV_SESSION_HEAD_LEAST = 1024 /* Bytes of the smallest item: all but gossip and sketches fit. */
};

/* A queued message. A steady run allocates none: those that have left their
 * queue are used again. */
struct uv_session_item
{
    struct uv_session_item *next; /* In its queue, or among the spare ones. */
    size_t cap;                   /* Bytes of head[]: a power of two. */
    struct packet *body;          /* Held, or NULL. */
    struct frame_cut cut;
    uint8_t head[];
};

struct uv_session_queue
{
    struct uv_session_item *first, **end;
    uint32_t n;
    size_t bytes; /* Not yet cut. */
};

struct uv_session_chunk
{
    uv_write_t request;
    struct uv_link *link;
    bool flying;
    uint32_t n;
    uint32_t n_ended; /* Number of bulk messages whose last record is in the chunk. */
    uint8_t bytes[UV_SESSION_CHUNK];
};

struct uv_session
{
    struct frame frame;
    struct uv_session_queue queue[FRAME_LANES];
    struct uv_session_item *spare;
    uint32_t n_spare;
    struct uv_session_chunk chunk[UV_SESSION_CHUNKS];
    uv_shutdown_t shutdown;
    bool closing; /* A CLOSE record is to be sent. */
    bool closed;  /* The CLOSE record was sealed. */
    int fd;       /* The socket's. */
    struct uv_carried carried;
    /* Times of the next rekeying and of the last received record, in milliseconds. */
    uint64_t rekey_at_ms, heard_ms;
    bool opened, whole; /* A record of a part of a message, since the last word; a message, in what
                         * has just been read. */
    uint32_t n_in;
    uint8_t in[UV_SESSION_IN];
};

/* For peer/uv/link.c. Open: -ENOMEM, nothing else. */
__attribute__((warn_unused_result)) int uv_session_open(struct uv_link *l);
void uv_session_free(struct uv_link *l); /* When the handles are closed. */
/* Returns the buffer for received bytes, with room for at least one byte. */
uv_buf_t uv_session_room(struct uv_link *l);
/* n bytes have come there: open, deliver. May end the link. */
void uv_session_read(struct uv_link *l, size_t n);
/* Queue one message, as uv_link_send() does. May end the link. */
void uv_session_send(struct uv_link *l, enum frame_lane lane, const uint8_t *head, size_t n_head,
                     struct packet *body);
/* Does the same as uv_link_carried(). */
struct uplink_bursts uv_session_carried(struct uv_link *l, double *rtt_us);
/* No more messages: what control is queued, then CLOSE, then a half-close. */
void uv_session_hangup(struct uv_link *l);

#endif
