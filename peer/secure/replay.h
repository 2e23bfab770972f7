/* peer/secure/replay.h -- remembers the first handshake messages that were answered, to refuse copies.
 *
 * The first message of XXpsk0 is sealed with the cluster key, but it contains nothing from the
 * responder. An attacker with a recording can therefore send the message again. The reply costs key
 * agreements and shows that a peer of the cluster is at this address. (The attacker gets no session,
 * because message 3 needs the secret of the ephemeral key.) An honest initiator uses each ephemeral
 * key once, so a second message with the same key is refused.
 *
 *   young: what has been answered since --- REPLAY_EACH reached ---> old, and a new young
 *   old:   the REPLAY_EACH before that                             (what was old is forgotten)
 *
 * Between REPLAY_EACH and 2 REPLAY_EACH answered messages are remembered while the process runs. A
 * restart forgets all. Only messages with a valid seal are stored, so that a flood without the
 * cluster key cannot displace entries.
 *
 * An entry is the SipHash-2-4 of the ephemeral key under a random key of the process, so that an
 * attacker cannot choose a slot. One message in 2^50 is refused by mistake.
 */
#ifndef PEER_SECURE_REPLAY_H
#define PEER_SECURE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    REPLAY_EACH = 4096,
    REPLAY_SLOTS = 2 * REPLAY_EACH, /* At most half of them are taken. */
    REPLAY_KEY = 16
};

/* The struct's fields are replay.c's; embed it. 128 KiB. */
struct replay
{
    uint8_t key[REPLAY_KEY];
    uint32_t young;                 /* Index of the table that new entries go to. */
    uint32_t n_young;               /* Number of entries in the young table. */
    uint64_t slot[2][REPLAY_SLOTS]; /* 0: free. */
};

/* `key` is REPLAY_KEY fresh random bytes. */
void replay_init(struct replay *r, const uint8_t key[REPLAY_KEY]);

/* Has this ephemeral key not been seen? It has been from now on. Constant cost, no
 * allocation. */
bool replay_is_new(struct replay *r, const uint8_t ephemeral[32]);

#endif
