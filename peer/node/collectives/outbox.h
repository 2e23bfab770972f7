/* peer/node/collectives/outbox.h -- sends the messages of a round protocol
 * (peer/node/round_protocol.h), and holds their packets until the driver has read them.
 *
 * In a step of the node, the protocol takes an empty packet from the outbox, fills it and sends it
 * to any number of members. The driver reads the packet before the next step begins. The outbox
 * then releases the packet.
 */
#ifndef PEER_NODE_COLLECTIVES_OUTBOX_H
#define PEER_NODE_COLLECTIVES_OUTBOX_H

#include "gossip/collectives/collective.h"
#include "peer/node/session/sessions.h"

/* Packets that a round protocol sends in one step. Must be zero before the first call. */
struct outbox
{
    struct packet_pool pool;
    /* Largest number of packets in a step, at most COLLECTIVE_OPS_MAX. 0: the outbox is not
     * open. */
    size_t most;
    /* Number of packets taken in this step. */
    size_t n;
    struct packet *taken[COLLECTIVE_OPS_MAX];
};

/* Opens the outbox for packets of at most `bytes` bytes, at most `most` of them per step. */
void outbox_open(struct outbox *o, size_t bytes, size_t most);
void outbox_close(struct outbox *o);
/* Releases the packets of the last step. */
void outbox_release(struct outbox *o);

/* Returns whether another packet can be taken in this step. */
bool outbox_has_room(const struct outbox *o);
/* Returns an empty packet. NULL: there is no memory, or the limit of the step is reached. */
struct packet *outbox_take(struct outbox *o);
/* Returns a packet with a copy of the n bytes. NULL: there is no memory, or the limit of the step
 * is reached. */
struct packet *outbox_copy(struct outbox *o, const void *bytes, size_t n);

/* Returns the session on which messages of the run can be sent to member `id`, or NULL. */
const struct link *outbox_link(const struct sessions *s, const uint8_t *id);
/* Sends message m with the packet as its payload. NULL: the message has no payload. */
void outbox_send(struct sessions *s, const struct link *l, struct wire_round_protocol m,
                 struct packet *payload);

#endif
