/* compress/coding/positions.h -- encodes k ascending positions below n in few bytes.
 *
 *   k (varint) | code (1 byte) | length of the stream in bytes (varint) | stream
 *
 *   code 0..31     Rice code with this parameter       (rice.h)
 *   code 32..63    Elias-Fano with code - 32 low bits  (elias.h)
 *   code 64        bitmap of n bits                    (bitmap.h)
 *
 * The specification chooses the code: "/rice", "/ef", "/bitmap" or "/auto". "auto" is the shortest
 * of the three, which is always Rice: with Elias-Fano's parameter b, Rice takes k (1 + b) + sum
 * floor(gap / 2^b) bits. The sum of floors is at most (n - k) >> b, where Elias-Fano has (n - 1) >>
 * b. With b = 0, Rice is the bitmap without its tail. The other codes are useful if positions must
 * be read faster, or if the length of the message must not depend on the positions.
 *
 * A set of positions has exactly one encoding. Rice uses the lowest parameter of minimal length,
 * the parameter of Elias-Fano follows from k and n, and padding is zero. A receiver rejects other
 * encodings, and any code except the one in the specification.
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

/* Names of the codings in the order of the enum, ended by NULL. */
extern const char *const positions_names[];

/* positions_bound() returns the largest size in bytes of at most k positions below n.
 * positions_nominal() returns a typical size for k positions. */
size_t positions_bound(enum positions_how how, size_t k, size_t n);
size_t positions_nominal(enum positions_how how, size_t k, size_t n);

/* Writes the positions index[0..k), k >= 1. Returns the number of bytes, at most
 * positions_bound(). */
size_t positions_put(enum positions_how how, const uint32_t *index, size_t k, size_t n,
                     uint8_t *dst);

/* Reader that returns encoded positions in ascending order. */
struct positions
{
    size_t n, k;
    size_t used; /* Size of the whole encoding in bytes, including the head. */
    unsigned code;
    union
    { /* State of the reader for the code in use. */
        struct rice_reader rice;
        struct elias_reader elias;
        struct bitmap_reader bitmap;
    };
};

/* Parses the head at src[0..len) and checks that 1 <= k <= most. Returns false if it is invalid. */
bool positions_open(struct positions *p, enum positions_how how, size_t most, size_t n,
                    const uint8_t *src, size_t len);

/* Reads the next `count` >= 1 positions; all calls together read k. Returns false if the stream is
 * invalid. The cost is bounded by the bytes read. */
bool positions_next(struct positions *p, uint32_t *index, size_t count);

/* After the last position: returns true if this is exactly the encoding that positions_put()
 * writes. */
bool positions_end(const struct positions *p);

#endif
