/* peer/secure/frame.h -- whole messages <-> the records of one link.
 *
 * A link has two lanes, each a stream of messages in order. A message is cut
 * into records; the last carries its lane's END kind. Records of the two lanes
 * may come in any interleaving: a heartbeat passes between two pieces of a
 * model.
 *
 *   sender    head | body --frame_next()--> BULK, BULK, ..., BULK_END
 *   channel   seals, opens, keeps the order
 *   receiver  frame_room(), frame_push(record) ... -> one message, in one piece
 *
 * A record is opened where a bulk record belongs, so that bulk is not copied:
 *
 *   bulk lane  [ BULK ][ BULK ][ room for the next record      ]
 *              0               n                               capacity
 *
 * If it turns out to be a control record, it is handed out from there, or, one
 * of several, copied to the control lane.
 *
 * Pure. Receiving allocates (one buffer a lane, kept for the next message),
 * and only in proportion to bytes that came from an authenticated peer. Every
 * record of a message carries at least one byte.
 */
#ifndef PEER_SECURE_FRAME_H
#define PEER_SECURE_FRAME_H

#include "peer/secure/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_lane { FRAME_CONTROL, FRAME_BULK, FRAME_LANES };

/* Receiving: one a link. The fields are frame.c's. */
struct frame
{
    struct
    {
        uint8_t *bytes;
        size_t n, capacity, max; /* n: of the message so far. */
    } lane[FRAME_LANES];
};

struct frame_message
{
    enum frame_lane lane;
    const uint8_t *bytes;
    size_t n; /* >= 1 */
};

/* The longest message of each lane, in bytes. frame_limit() may change a
 * lane's at any time; it counts from the next record on. */
void frame_init(struct frame *f, size_t max_control, size_t max_bulk);
void frame_limit(struct frame *f, enum frame_lane lane, size_t max);
void frame_close(struct frame *f);

/* Returns the buffer for the next record: CHANNEL_OPEN_MAX bytes, valid until the next call of
 * frame_room() or frame_push(). Returns NULL if there is no memory. */
uint8_t *frame_room(struct frame *f);

/* Take one opened record, in frame_room() or anywhere else. Returns
 *   1        a message is whole: *m, valid until the next frame_room() or
 *            frame_push() and while data[0..n) is: a message of one record is
 *            not copied
 *   0        it needs more records
 *   -EPROTO  not a kind of a lane, an empty record, or a message over its
 *            lane's limit: hang up
 *   -ENOMEM  hang up, too: the message cannot be completed
 */
__attribute__((warn_unused_result)) int frame_push(struct frame *f, enum channel_kind kind,
                                                   const uint8_t *data, size_t n,
                                                   struct frame_message *m);

/* Sending: a cursor over one message, head then body (either may be empty, not
 * both). Borrows both until the last record is cut. */
struct frame_cut
{
    enum frame_lane lane;
    const uint8_t *head, *body;
    size_t n_head, n_body;
    size_t at; /* Bytes cut so far. */
};

/* Just what channel_seal() takes: data in two parts. */
struct frame_record
{
    enum channel_kind kind;
    const uint8_t *data, *data2;
    size_t n, n2;
};

void frame_cut_init(struct frame_cut *c, enum frame_lane lane, const uint8_t *head, size_t n_head,
                    const uint8_t *body, size_t n_body);

/* The next record of the message, at most CHANNEL_PLAIN_MAX bytes; false once
 * all are cut. */
bool frame_next(struct frame_cut *c, struct frame_record *r);

/* Bytes still to be cut. */
size_t frame_left(const struct frame_cut *c);

#endif
