/* peer/secure/replay.h -- which first messages of a handshake have been answered already.
 *
 * The first message of XXpsk0 is sealed with the cluster key, but nothing in it is fresh from
 * us: whoever has recorded one can send it again, and the answer costs key agreements and
 * tells that a peer of the cluster is here. (No session comes of it: the third message
 * needs the secret of the ephemeral key.) An honest initiator never uses an ephemeral key
 * twice, so the second message with the same one is refused.
 *
 *   young: what has been answered since --- REPLAY_EACH reached ---> old, and a new young
 *   old:   the REPLAY_EACH before that                             (what was old is forgotten)
 *
 * So at least the last REPLAY_EACH answered are known, and at most twice as many: as long as
 * the process lives, since a restart forgets. Only messages that hold the cluster key's seal
 * are entered, so that a stranger's flood makes nothing be forgotten.
 *
 * An entry is the SipHash-2-4 of the ephemeral key, under a key of the process: nobody
 * outside can aim at a slot, and one message in 2^50 is refused by mistake.
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
