/* peer/secure/hash.h -- 128-bit BLAKE2b checksum that detects corrupted data. The hash is not a
 * signature: an attacker with write access to a file can also write its hash. Call sodium_init()
 * once before hash_128(), so that libsodium selects its fast implementation (about 1 GB/s). */
#ifndef PEER_SECURE_HASH_H
#define PEER_SECURE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_BYTES = 16 };

/* Writes the unkeyed hash of the `n` bytes at `p` to `out`. `p` may be NULL if `n` is 0. */
void hash_128(const void *p, size_t n, uint8_t out[HASH_BYTES]);
/* Returns whether `hash` is the hash of the `n` bytes at `p`. */
bool hash_128_matches(const void *p, size_t n, const uint8_t hash[HASH_BYTES]);

#endif
