/* compress/rice.h -- increasing positions as Rice-coded gaps.
 *
 * Position i+1 follows position i at a gap g = p[i+1] - p[i] - 1 (the first
 * from -1). With parameter b, a gap is g >> b zero bits, a one bit, and the b
 * low bits of g; bits fill each byte from the low end. Positions are thus
 * increasing whatever the bits say; the last byte is padded with zeros.
 *
 * Costs 8.11 bits a position at 1 % (the entropy is 8.08), 4.76 at 10 %.
 */
#ifndef COMPRESS_RICE_H
#define COMPRESS_RICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RICE_B_MAX = 31
};

/* Longest stream of k positions below n at the best parameter, in bytes;
 * grows with k. And a typical stream. */
size_t rice_bound(size_t k, size_t n);
size_t rice_nominal(size_t k, size_t n);

/* The parameter of least cost for these positions (a local minimum, and never
 * above rice_bound()). */
unsigned rice_best(const uint32_t *index, size_t k, size_t n);

/* Write the stream; returns its bytes. Needs rice_bound() of room if b is
 * rice_best(). */
size_t rice_put(const uint32_t *index, size_t k, unsigned b, uint8_t *dst);

struct rice_reader
{
    const uint8_t *src;
    size_t len; /* Bytes. */
    size_t at;  /* Bits read. */
    uint64_t next; /* Lowest position that may come. */
    uint64_t n;    /* Positions are below n. */
    unsigned b;
};

/* Read count positions. False if the stream ends early or a position is not
 * below n. Cost is bounded by the bits read. */
bool rice_get(struct rice_reader *r, uint32_t *index, size_t count);

/* Has the stream been read to its last byte, and is the padding zero? */
bool rice_ended(const struct rice_reader *r);

#endif
