/* peer/node/collectives/outbox.h -- the messages that a round protocol sends, and their packets.
 *
 * A packet is taken in a step of the node, filled, sent to any number of members, and released when
 * the next step begins: until then the driver reads it.
 */
#ifndef PEER_NODE_COLLECTIVES_OUTBOX_H
#define PEER_NODE_COLLECTIVES_OUTBOX_H

#include "gossip/collectives/collective.h"
#include "peer/node/sessions.h"

/* Zero it before the first call. */
struct outbox
{
    struct packet_pool pool;
    size_t most; /* Packets of a step, COLLECTIVE_OPS_MAX at most. 0: the outbox is not open. */
    size_t n;
    struct packet *taken[COLLECTIVE_OPS_MAX];
};

/* Packets have room for `bytes` bytes. */
void outbox_open(struct outbox *o, size_t bytes, size_t most);
void outbox_close(struct outbox *o);
/* Gives the packets of the last step back. */
void outbox_release(struct outbox *o);

/* Can another packet be taken in this step? */
bool outbox_has_room(const struct outbox *o);
/* Returns an empty packet, or NULL: out of memory, or there is no room. */
struct packet *outbox_take(struct outbox *o);
/* The same, with a copy of these n bytes. */
struct packet *outbox_copy(struct outbox *o, const void *bytes, size_t n);

/* Returns the session by which one may talk with this member about the run, or NULL. */
const struct link *outbox_link(const struct sessions *s, const uint8_t *id);
/* Sends the message with this packet for its payload. NULL: with none. */
void outbox_send(struct sessions *s, const struct link *l, struct wire_round_protocol m,
                 struct packet *payload);

#endif
