/* compress/coding/positions.h -- k increasing positions below n, in few bytes.
 *
 *   k varint | code u8 | bytes varint | stream
 *
 *   code 0..31     Rice with that parameter          (rice.h)
 *   code 32..63    Elias-Fano with code - 32 low bits (elias.h)
 *   code 64        bitmap of n bits                 (bitmap.h)
 *
 * `how` is the spec's "/rice", "/ef", "/bitmap" or "/auto": the shortest of the
 * three, Rice where they tie. That is always Rice. At Elias-Fano's parameter b
 * it takes k (1 + b) + sum floor(gap / 2^b) bits, and the sum of the floors is
 * at most the floor of the sum, (n - k) >> b, where Elias-Fano has (n-1) >> b
 * in its place; and Rice with b = 0 is the bitmap without its tail. The others
 * are there for who wants positions read faster, or of a length that says
 * nothing of them.
 *
 * A set of positions has one encoding: Rice's parameter is the lowest of least
 * cost, Elias-Fano's follows from k and n, padding is zero, and a receiver
 * refuses the rest, and every code but the named one.
 */
#ifndef COMPRESS_CODING_POSITIONS_H
#define COMPRESS_CODING_POSITIONS_H

#include "compress/coding/bitmap.h"
#include "compress/coding/elias.h"
#include "compress/coding/rice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum positions_how { POSITIONS_AUTO, POSITIONS_RICE, POSITIONS_EF, POSITIONS_BITMAP };

enum { POSITIONS_CODE_EF = 32, POSITIONS_CODE_BITMAP = 64 };

/* Names in the order of the enum, ended by NULL. */
extern const char *const positions_names[];

/* Longest encoding of at most k positions below n, in bytes, and a typical
 * one of k. */
size_t positions_bound(enum positions_how how, size_t k, size_t n);
size_t positions_nominal(enum positions_how how, size_t k, size_t n);

/* Write index[0..k), k >= 1; returns the bytes, at most positions_bound(). */
size_t positions_put(enum positions_how how, const uint32_t *index, size_t k, size_t n,
                     uint8_t *dst);

/* Reads positions in order. */
struct positions
{
    size_t n, k;
    size_t used; /* Bytes of the whole encoding. */
    unsigned code;
    union
    { /* By the code. */
        struct rice_reader rice;
        struct elias_reader elias;
        struct bitmap_reader bitmap;
    };
};

/* Parse the head at src[0..len): 1 <= k <= most. False if malformed. */
bool positions_open(struct positions *p, enum positions_how how, size_t most, size_t n,
                    const uint8_t *src, size_t len);

/* The next count >= 1 positions, k in all calls together. False if malformed.
 * Cost is bounded by the stream read. */
bool positions_next(struct positions *p, uint32_t *index, size_t count);

/* After the last: is this the encoding that positions_put() gives them? */
bool positions_end(const struct positions *p);

#endif
