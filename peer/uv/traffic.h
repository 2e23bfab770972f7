/* peer/uv/traffic.h -- bytes sent to and received from each peer in sessions that have ended. If
 * a peer connects again, its counts continue. The table has a fixed size: a new peer replaces
 * the one that was counted longest ago, so that observers with new identities cannot make it
 * grow. */
#ifndef PEER_UV_TRAFFIC_H
#define PEER_UV_TRAFFIC_H

#include "gossip/wire/wire.h"

enum { TRAFFIC_PEERS = 512 };

/* Begin with zeros. */
struct traffic
{
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        uint64_t sent, received; /* Bytes. */
        uint64_t counted;        /* The number of the session that was the last; 0: a free row. */
    } row[TRAFFIC_PEERS];
    uint64_t n_sessions;
};

/* A session with `id` has ended: so much went over it. */
void traffic_add(struct traffic *t, const uint8_t id[WIRE_ID_BYTES], uint64_t sent,
                 uint64_t received);

/* Bytes of all sessions with `id` that have ended; zeros where it is not in the table. */
void traffic_of(const struct traffic *t, const uint8_t id[WIRE_ID_BYTES], uint64_t *sent,
                uint64_t *received);

#endif
