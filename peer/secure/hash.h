/* peer/secure/hash.h -- BLAKE2b with 128 bits: is it what was written?
 *
 * Not a signature: who can write a file can write its hashes too. Call sodium_init() once
 * before; libsodium then picks its fast code (some 1 GB/s).
 */
#ifndef PEER_SECURE_HASH_H
#define PEER_SECURE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_BYTES = 16 };

/* The hash of p[0..n), without a key. p may be NULL where n is 0. */
void hash_128(const void *p, size_t n, uint8_t out[HASH_BYTES]);

#endif
