/* peer/secure/replay.c -- stores the hashes of answered handshake messages in two tables: the young
 * table gets the new hashes, and the old table keeps the hashes before them. */
#include "peer/secure/replay.h"

#include <sodium.h>
#include <string.h>

_Static_assert(REPLAY_KEY == crypto_shorthash_KEYBYTES, "SipHash's key");
_Static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "one entry");

void replay_init(struct replay *r, const uint8_t key[REPLAY_KEY])
{
    memset(r, 0, sizeof *r);
    memcpy(r->key, key, REPLAY_KEY);
}

/* Returns the slot that holds the entry, or the free slot where it belongs. A free slot always
 * exists, because at most half of the slots are in use. */
static uint64_t *find(uint64_t slot[REPLAY_SLOTS], uint64_t entry)
{
    uint64_t i = entry % REPLAY_SLOTS;
    while (slot[i] != 0 && slot[i] != entry)
        i = (i + 1) % REPLAY_SLOTS;
    return &slot[i];
}

static void turn(struct replay *r)
{
    r->young = 1 - r->young;
    r->n_young = 0;
    memset(r->slot[r->young], 0, sizeof r->slot[r->young]);
}

bool replay_is_new(struct replay *r, const uint8_t ephemeral[32])
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint64_t entry;
    crypto_shorthash(hash, ephemeral, 32, r->key);
    memcpy(&entry, hash, sizeof entry);
    entry += entry == 0;
    if (*find(r->slot[0], entry) == entry || *find(r->slot[1], entry) == entry)
        return false;
    if (r->n_young == REPLAY_EACH)
        turn(r);
    *find(r->slot[r->young], entry) = entry;
    r->n_young++;
    return true;
}
