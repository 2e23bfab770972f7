/* peer/node/round_outbox.h -- the messages that a round protocol sends, and their packets.
 *
 * A packet is taken in a step of the node, filled, sent to any number of members, and released when
 * the next step begins: until then the driver reads it.
 */
#ifndef PEER_NODE_ROUND_OUTBOX_H
#define PEER_NODE_ROUND_OUTBOX_H

#include "gossip/collective/collective.h"
#include "peer/node/sessions.h"

/* Zero it before the first call. */
struct round_outbox
{
    struct packet_pool pool;
    size_t most; /* Packets of a step, COLLECTIVE_OPS_MAX at most. 0: the outbox is not open. */
    size_t n;
    struct packet *taken[COLLECTIVE_OPS_MAX];
};

/* Packets have room for `bytes` bytes. */
void round_outbox_open(struct round_outbox *o, size_t bytes, size_t most);
void round_outbox_close(struct round_outbox *o);
/* Gives the packets of the last step back. */
void round_outbox_release(struct round_outbox *o);

/* Can another packet be taken in this step? */
bool round_outbox_has_room(const struct round_outbox *o);
/* Returns an empty packet, or NULL: out of memory, or there is no room. */
struct packet *round_outbox_take(struct round_outbox *o);
/* The same, with a copy of these n bytes. */
struct packet *round_outbox_copy(struct round_outbox *o, const void *bytes, size_t n);

/* Returns the session by which one may talk with this member about the run, or NULL. */
const struct link *round_outbox_link(const struct sessions *s, const uint8_t *id);
/* Sends the message with this packet for its payload. NULL: with none. */
void round_outbox_send(struct sessions *s, const struct link *l, struct wire_collect m,
                       struct packet *payload);

#endif
