/* peer/secure/replay.h -- remembers first handshake messages that were answered, to refuse copies.
 *
 * The first message of XXpsk0 is sealed with the cluster key, but it contains nothing from the
 * responder. An attacker with a recording can therefore send the message again. The reply costs key
 * agreements and reveals that a peer of the cluster is at this address. (The attacker gets no
 * session, because message 3 needs the secret of the ephemeral key.) An honest initiator uses each
 * ephemeral key once, so a second message with the same key is refused.
 *
 * There are two tables of REPLAY_EACH entries:
 *
 *   young   new entries. When it is full, it becomes the old table, and an
 *           empty table becomes the young one
 *   old     the REPLAY_EACH entries before the young ones. They are deleted
 *           when the young table is full
 *
 * Between REPLAY_EACH and 2 REPLAY_EACH answered messages are remembered while the process runs. A
 * restart forgets all. Only messages with a valid seal are stored, so a flood without the cluster
 * key cannot displace entries.
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
    /* Number of slots of one table. At most half of the slots are in use. */
    REPLAY_SLOTS = 2 * REPLAY_EACH,
    REPLAY_KEY = 16
};

/* Two tables of handshake messages that were answered, together 128 KiB: the young table has the
 * newest ones, the old table those before. The fields are private to replay.c. */
struct replay
{
    uint8_t key[REPLAY_KEY];
    uint32_t young;   /* Index of the table that new entries go to. */
    uint32_t n_young; /* Number of entries in the young table, which gets the new entries. */
    uint64_t slot[2][REPLAY_SLOTS]; /* The two tables of entries. 0: the slot is free. */
};

/* Initialises empty tables. `key`: REPLAY_KEY fresh random bytes, the key of the hash. */
void replay_init(struct replay *r, const uint8_t key[REPLAY_KEY]);

/* Returns whether no answered handshake message in the tables has this ephemeral key, and stores
 * the key. Constant cost, allocates nothing. */
bool replay_is_new(struct replay *r, const uint8_t ephemeral[32]);

#endif
