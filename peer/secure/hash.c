/* peer/secure/hash.c -- computes the 128-bit BLAKE2b checksum with libsodium. */
#include "peer/secure/hash.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

void hash_128(const void *p, size_t n, uint8_t out[HASH_BYTES])
{
    static_assert(HASH_BYTES >= crypto_generichash_BYTES_MIN, "libsodium has no shorter hashes");
    int err = crypto_generichash(out, HASH_BYTES, p, n, NULL, 0);
    assert(err == 0);
}

bool hash_128_matches(const void *p, size_t n, const uint8_t hash[HASH_BYTES])
{
    uint8_t found[HASH_BYTES];
    hash_128(p, n, found);
    return memcmp(found, hash, HASH_BYTES) == 0;
}
