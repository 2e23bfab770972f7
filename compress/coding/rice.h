/* compress/coding/rice.h -- ascending positions as Rice-coded gaps.
 *
 * The gap between two positions is g = p[i+1] - p[i] - 1, and the first gap is p[0]. With parameter
 * b, a gap is encoded as g >> b zero bits (its high part), a one bit, and the b low bits of g (its
 * low part). Bits fill each byte from the low end, and the last byte is padded with zeros. Decoded
 * positions always ascend, whatever the bits are. With b = 0 the stream equals the bitmap of the
 * positions, cut off after the last position.
 *
 * The length in bits, k (1 + b) + sum of (g >> b), is a convex function of b, because g >> b falls
 * by ceil((g >> b) / 2) when b grows by one. Therefore, if neither b - 1 nor b + 1 gives a shorter
 * stream, b is the best parameter. If several parameters are equally good, the smallest is used, so
 * that a set of positions has exactly one stream.
 *
 * Length: 8.11 bits per position for k = 1 % of n (the entropy is 8.08 bits), 4.76 bits for 10 %.
 */
#ifndef COMPRESS_CODING_RICE_H
#define COMPRESS_CODING_RICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RICE_B_MAX = 31 }; /* Largest parameter b. */

/* rice_bound() returns the size in bytes of the longest stream of k positions below n, with the
 * best parameter. The result does not decrease as k grows. rice_nominal() returns the size in bytes
 * of a typical stream. */
size_t rice_bound(size_t k, size_t n);
size_t rice_nominal(size_t k, size_t n);

/* Returns the exact length in bits of the stream of the positions index[0..k) with parameter b, for
 * k >= 1. */
uint64_t rice_bits(const uint32_t *index, size_t k, unsigned b);

/* Returns the smallest parameter that gives the shortest stream. Sets *bits to the length of that
 * stream, which is at most 8 * rice_bound(). One pass over the positions is usually enough. */
unsigned rice_best(const uint32_t *index, size_t k, size_t n, uint64_t *bits);

/* Writes the stream of the positions index[0..k) with parameter b. `len` must be its exact length
 * in bytes, rice_bits() / 8 rounded up. */
void rice_put(const uint32_t *index, size_t k, unsigned b, uint8_t *dst, size_t len);

/* Reader of a Rice stream. The caller sets src, len, n and b, and all other fields to 0. */
struct rice_reader
{
    const uint8_t *src;
    size_t len;    /* Length of the stream in bytes. */
    size_t at;     /* Number of bits read so far. */
    uint64_t next; /* Smallest valid value of the next position: the last position plus 1. */
    uint64_t n;    /* Number of possible positions: each position is below n. */
    unsigned b;    /* Parameter b of the Rice code: the number of low bits in the code of a gap. */
    /* Number of positions read so far. `odd` is the number of gaps with an odd high part. `top` is
     * the number of gaps in which the highest of the b low bits is set. */
    size_t k;
    uint64_t odd, top;
};

/* Reads the next `count` positions. Returns false if the stream ends early or if a position is n or
 * more. The cost is bounded by the number of bits read. */
bool rice_get(struct rice_reader *r, uint32_t *index, size_t count);

/* Returns true if all bytes of the stream have been read and the padding is zero. */
bool rice_ended(const struct rice_reader *r);

/* Returns true if the parameter b of the stream is the one that rice_best() gives for the positions
 * read. */
bool rice_least(const struct rice_reader *r);

#endif
