/* compress/coding/rice.h -- increasing positions as Rice-coded gaps.
 *
 * Position i+1 follows position i at a gap g = p[i+1] - p[i] - 1 (the first
 * from -1). With parameter b, a gap is g >> b zero bits, a one bit, and the b
 * low bits of g; bits fill each byte from the low end. Positions are thus
 * increasing whatever the bits say; the last byte is padded with zeros. At
 * b = 0 the stream is the bitmap of the positions without its tail.
 *
 * The cost k (1 + b) + sum (g >> b) is convex in b, as g >> b falls by
 * ceil((g >> b) / 2) at each step: a parameter with none better beside it is
 * the best. Of several the lowest is meant, so a set has one stream.
 *
 * Costs 8.11 bits a position at 1 % (the entropy is 8.08), 4.76 at 10 %.
 */
#ifndef COMPRESS_CODING_RICE_H
#define COMPRESS_CODING_RICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RICE_B_MAX = 31 };

/* Longest stream of k positions below n at the best parameter, in bytes;
 * grows with k. And a typical stream. */
size_t rice_bound(size_t k, size_t n);
size_t rice_nominal(size_t k, size_t n);

/* Exact length of the stream of index[0..k), k >= 1, in bits. */
uint64_t rice_bits(const uint32_t *index, size_t k, unsigned b);

/* The lowest parameter of least cost, and rice_bits() with it in *bits, which
 * is never above rice_bound(). One pass where the gaps are as they usually
 * are. */
unsigned rice_best(const uint32_t *index, size_t k, size_t n, uint64_t *bits);

/* Write the stream: exactly len = ceil(rice_bits() / 8) bytes. */
void rice_put(const uint32_t *index, size_t k, unsigned b, uint8_t *dst, size_t len);

struct rice_reader
{
    const uint8_t *src;
    size_t len;    /* Bytes. */
    size_t at;     /* Bits read. */
    uint64_t next; /* Lowest position that may come. */
    uint64_t n;    /* Positions are below n. */
    unsigned b;
    size_t k; /* Positions read; of them, those whose high part is odd,
                    * and those whose low part has its top bit set: */
    uint64_t odd, top;
};

/* Read count positions. False if the stream ends early or a position is not
 * below n. Cost is bounded by the bits read. */
bool rice_get(struct rice_reader *r, uint32_t *index, size_t count);

/* Has the stream been read to its last byte, and is the padding zero? */
bool rice_ended(const struct rice_reader *r);

/* Is the reader's parameter rice_best() of the positions it has read? */
bool rice_least(const struct rice_reader *r);

#endif
