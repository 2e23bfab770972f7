/* compress/coding/positions.h -- encodes k ascending positions below n in few bytes.
 *
 *   k (varint) | code (1 byte) | length of the stream in bytes (varint) | stream
 *
 *   code 0..31     Rice code with this parameter       (rice.h)
 *   code 32..63    Elias-Fano with code - 32 low bits  (elias.h)
 *   code 64        bitmap of n bits                    (bitmap.h)
 *
 * The user chooses the code in the specification: "/rice", "/ef", "/bitmap" or "/auto". "auto"
 * means the shortest of the three codes, which is always Rice. Proof: with the parameter b of
 * Elias-Fano, the Rice code takes k (1 + b) bits plus the sum of floor(gap / 2^b) over all gaps
 * between positions. This sum is at most (n - k) >> b, while Elias-Fano takes k
 * (1 + b) + ((n - 1) >> b) bits. With b = 0, the Rice code is the bitmap without its tail. The
 * other codes are useful if positions must be read faster, or if the length of the message must not
 * depend on the positions.
 *
 * A set of positions has exactly one encoding: Rice uses the smallest parameter that gives the
 * shortest code, the parameter of Elias-Fano follows from k and n, and padding is zero. A receiver
 * rejects all other encodings, and every code that the specification does not name.
 */
#ifndef COMPRESS_CODING_POSITIONS_H
#define COMPRESS_CODING_POSITIONS_H

#include "compress/coding/bitmap.h"
#include "compress/coding/elias.h"
#include "compress/coding/rice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code of the positions, as the user chose it in a specification. */
enum positions_how { POSITIONS_AUTO, POSITIONS_RICE, POSITIONS_EF, POSITIONS_BITMAP };

/* Values of the code byte. POSITIONS_CODE_EF: smallest value that means Elias-Fano.
 * POSITIONS_CODE_BITMAP: value that means a bitmap. */
enum { POSITIONS_CODE_EF = 32, POSITIONS_CODE_BITMAP = 64 };

/* Names of the codes in a specification, in the order of enum positions_how, ended by NULL. */
extern const char *const positions_names[];

/* positions_bound() returns the largest encoded size in bytes of at most k positions below n.
 * positions_nominal() returns a typical size for k positions. */
size_t positions_bound(enum positions_how how, size_t k, size_t n);
size_t positions_nominal(enum positions_how how, size_t k, size_t n);

/* Encodes the positions index[0..k) for k >= 1. Returns the number of bytes, which is at most
 * positions_bound(). */
size_t positions_put(enum positions_how how, const uint32_t *index, size_t k, size_t n,
                     uint8_t *dst);

/* Reader that returns encoded positions in ascending order. */
struct positions
{
    size_t n, k;
    size_t used; /* Number of bytes of the encoded positions, including k, code and length. */
    /* Byte that names the code of the positions (Rice, Elias-Fano or bitmap) and its parameter. */
    unsigned code;
    union
    { /* State of the reader for the code (Rice, Elias-Fano or bitmap) that `code` names. */
        struct rice_reader rice;
        struct elias_reader elias;
        struct bitmap_reader bitmap;
    };
};

/* Parses the head (k, code and length of the stream) at src[0..len), and prepares reading the
 * stream. Returns false if the head is invalid or k is not in 1..most. */
bool positions_open(struct positions *p, enum positions_how how, size_t most, size_t n,
                    const uint8_t *src, size_t len);

/* Reads the next `count` >= 1 positions. All calls together must read k positions. Returns false if
 * the stream is invalid. The cost is bounded by the number of bytes read. */
bool positions_next(struct positions *p, uint32_t *index, size_t count);

/* Returns true if the encoding is exactly the one that positions_put() writes for the positions
 * read. To be called after the last position. */
bool positions_end(const struct positions *p);

#endif
