/* peer/uv/traffic.h -- bytes sent to and received from each peer in sessions that have ended.
 *
 * If a peer connects again, its counts continue. The table has a fixed size: a new peer replaces
 * the peer whose last session ended the longest time ago. Observers with new identities
 * therefore cannot make it grow.
 */
#ifndef PEER_UV_TRAFFIC_H
#define PEER_UV_TRAFFIC_H

#include "gossip/wire/wire.h"

enum { TRAFFIC_PEERS = 512 };

/* Table of byte counts by peer. Initialise all fields with zeros. */
struct traffic
{
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        /* Bytes sent to and received from the peer in sessions that have ended. */
        uint64_t sent, received;
        /* Sequence number of the peer's last session among the ended sessions of all peers. 0: the
         * row is free. */
        uint64_t counted;
    } row[TRAFFIC_PEERS];
    uint64_t n_sessions;
};

/* Adds the bytes of a session with `id` that has ended. */
void traffic_add(struct traffic *t, const uint8_t id[WIRE_ID_BYTES], uint64_t sent,
                 uint64_t received);

/* Returns the bytes of all ended sessions with `id`. 0 if `id` is not in the table. */
void traffic_of(const struct traffic *t, const uint8_t id[WIRE_ID_BYTES], uint64_t *sent,
                uint64_t *received);

#endif
