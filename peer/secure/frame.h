/* peer/secure/frame.h -- converts whole messages to the records of one link, and back.
 *
 * A link has two lanes, control and bulk. Each lane is a sequence of messages. A message is split
 * into records, and its last record has the END kind of the lane. Records of the two lanes may be
 * interleaved in any way: a heartbeat can pass between two records of a model.
 *
 *   sender    head | body --frame_next()--> BULK, BULK, ..., BULK_END
 *   channel   encrypts and decrypts records, keeps their order
 *   receiver  frame_room(), frame_push(record) ... -> one complete message
 *
 * A record is decrypted to the end of the bulk lane's buffer, so that bulk data need not be copied:
 *
 *   bulk lane  [ BULK ][ BULK ][ room for the next record      ]
 *              0               n                               capacity
 *
 * A control record is copied from there to the buffer of the control lane, except that a control
 * message of a single record is returned without a copy.
 *
 * The functions are pure. The receiver has one buffer per lane, which it reuses. The size of a
 * buffer is proportional to the bytes that an authenticated peer has sent. Every record of a
 * message has at least one byte.
 */
#ifndef PEER_SECURE_FRAME_H
#define PEER_SECURE_FRAME_H

#include "peer/secure/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_lane { FRAME_CONTROL, FRAME_BULK, FRAME_LANES };

/* Receiving end of one link. The fields are private to frame.c. */
struct frame
{
    struct
    {
        uint8_t *bytes;
        /* n: received bytes of the incomplete message. max: largest length of a message, in
         * bytes. */
        size_t n, capacity, max;
    } lane[FRAME_LANES];
};

struct frame_message
{
    enum frame_lane lane;
    const uint8_t *bytes;
    size_t n; /* Length of the message in bytes, at least 1. */
};

/* frame_init() sets the largest message of each lane (control messages, bulk messages), in bytes.
 * frame_limit() changes the limit of a lane at any time; the new limit applies from the next record
 * on. */
void frame_init(struct frame *f, size_t max_control, size_t max_bulk);
void frame_limit(struct frame *f, enum frame_lane lane, size_t max);
void frame_close(struct frame *f);

/* Returns the buffer for the next record: CHANNEL_OPEN_MAX bytes, valid until the next call of
 * frame_room() or frame_push(). Returns NULL if there is no memory. */
uint8_t *frame_room(struct frame *f);

/* Adds one decrypted record: data[0..n), in the buffer of frame_room() or elsewhere. Returns
 *
 *   1        a message is complete: *m, valid until the next frame_room() or
 *            frame_push(), and only while data[0..n) is valid, because a message
 *            of one record is not copied
 *   0        the message needs more records
 *   -EPROTO  the kind belongs to no lane, the record is empty, or the message
 *            exceeds the limit of its lane: close the connection
 *   -ENOMEM  the message cannot be completed: close the connection */
__attribute__((warn_unused_result)) int frame_push(struct frame *f, enum channel_kind kind,
                                                   const uint8_t *data, size_t n,
                                                   struct frame_message *m);

/* Position in a message that is being sent. The message is head followed by body, one of which may
 * be empty. Both are borrowed until frame_next() returns false. */
struct frame_cut
{
    enum frame_lane lane;
    const uint8_t *head, *body;
    size_t n_head, n_body;
    size_t at; /* Number of bytes of the message that are in records already. */
};

/* The data of one record, in two parts (head and body) that channel_seal() joins. */
struct frame_record
{
    enum channel_kind kind;
    const uint8_t *data, *data2;
    size_t n, n2;
};

void frame_cut_init(struct frame_cut *c, enum frame_lane lane, const uint8_t *head, size_t n_head,
                    const uint8_t *body, size_t n_body);

/* Gets the next record of the message, at most CHANNEL_PLAIN_MAX bytes. Returns false after the
 * last record. */
bool frame_next(struct frame_cut *c, struct frame_record *r);

/* Returns the number of bytes of the message that are not in a record yet. */
size_t frame_left(const struct frame_cut *c);

#endif
