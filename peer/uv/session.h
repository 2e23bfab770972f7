/* peer/uv/session.h -- traffic of an open link: converts messages to sealed records on the stream,
 * and received records to messages.
 *
 *   uv_session_send --> [control queue] --\  cut, seal   chunk 0 --> uv_write
 *                   --> [bulk queue]    --/              chunk 1 --> uv_write
 *
 * Sending. There are two queues. Messages are cut into records as late as possible, so that a
 * control message can be sent between two records of a bulk message. libuv gets at most
 * UV_SESSION_CHUNKS chunks at a time, and TCP_NOTSENT_LOWAT limits the unsent bytes in the kernel.
 * A heartbeat therefore waits for at most 128 KiB and the data in flight, and never for a whole
 * model. If the control queue exceeds its limit, the link is closed, because the other end has
 * stopped reading. The node sends one round at a time, which limits the bulk queue;
 * UV_SESSION_BULK_MAX is a second limit.
 *
 * Receiving. Each message is delivered in the call that reads its last bytes, and the next read
 * follows after the delivery. The socket's receive window is therefore the only inbound queue, and
 * a slow reader slows down the sender.
 */
#ifndef PEER_UV_SESSION_H
#define PEER_UV_SESSION_H

#include "peer/secure/frame.h"
#include "peer/uv/link.h"
#include "peer/uv/throughput_probe.h"

enum {
    UV_SESSION_CHUNKS = 2,
    UV_SESSION_RECORD = CHANNEL_HEADER + CHANNEL_RECORD_MAX,
    /* Bytes of a record without data: REKEY or CLOSE. */
    UV_SESSION_EMPTY = CHANNEL_HEADER + 1 + 16,
    /* Size of a chunk (the records of one socket write), in bytes: room for a REKEY record and the
     * longest record. */
    UV_SESSION_CHUNK = UV_SESSION_EMPTY + UV_SESSION_RECORD,
    UV_SESSION_IN = 2 * UV_SESSION_RECORD,
    UV_SESSION_BULK_MAX = 24, /* Maximum number of messages in the bulk queue. */
    /* Maximum number of unused queue items that are kept for later messages. */
    UV_SESSION_SPARES = 8,
    /* Bytes of head[] in the smallest item. Only MEMBERS messages and the heads of deltas with a
     * sketch are longer. */
    UV_SESSION_HEAD_LEAST = 1024
};

/* A queued message. Items are reused, so a steady run does not allocate. */
struct uv_session_item
{
    struct uv_session_item *next; /* Next item of the queue or of the list of unused items. */
    size_t cap;                   /* Size of head[] in bytes: a power of two. */
    /* Body of the message. The queue item holds one reference. NULL: the message has no body. */
    struct packet *body;
    struct frame_cut cut;
    uint8_t head[];
};

struct uv_session_queue
{
    struct uv_session_item *first, **end;
    uint32_t n;
    size_t bytes; /* Bytes of the queued messages that are not yet cut into records. */
};

struct uv_session_chunk
{
    uv_write_t request;
    struct uv_link *link;
    bool flying;
    uint32_t n;
    uint32_t n_ended; /* Number of bulk messages whose last record is in this chunk. */
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
    bool closing; /* True: a CLOSE record must be sent after the messages of the control queue. */
    bool closed;  /* True: the CLOSE record was sealed. */
    int fd;       /* File descriptor of the socket. */
    struct uv_carried carried;
    /* rekey_at_ms: time of the next change of the encryption key. heard_ms: earliest time of the
     * next heard() callback. Both in milliseconds of the loop's clock. */
    uint64_t rekey_at_ms, heard_ms;
    /* opened: a record that does not complete its message has arrived since the last heard()
     * callback. whole: the last read completed a message. */
    bool opened, whole;
    uint32_t n_in;
    uint8_t in[UV_SESSION_IN];
};

/* Opens the session of a link. Returns 0 or -ENOMEM. This function and the following ones are for
 * peer/uv/link.c. */
__attribute__((warn_unused_result)) int uv_session_open(struct uv_link *l);
/* Frees the session's data. Called after all handles of the link are closed. */
void uv_session_free(struct uv_link *l);
/* Returns the buffer for received bytes, with room for at least one byte. */
uv_buf_t uv_session_room(struct uv_link *l);
/* Handles n bytes that were read into the buffer of uv_session_room(): decrypts records and
 * delivers messages. May end the link. */
void uv_session_read(struct uv_link *l, size_t n);
/* Queues one message, as uv_link_send() does. May end the link. */
void uv_session_send(struct uv_link *l, enum frame_lane lane, const uint8_t *head, size_t n_head,
                     struct packet *body);
/* Implements uv_link_carried() for an open session: returns the throughput measurements since the
 * last call. */
struct uplink_bursts uv_session_carried(struct uv_link *l, double *rtt_us);
/* Ends the session: sends the queued control messages, then CLOSE, and then half-closes the
 * connection. Queued bulk messages are dropped. */
void uv_session_hangup(struct uv_link *l);

#endif
