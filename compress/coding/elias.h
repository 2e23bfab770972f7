/* compress/coding/elias.h -- ascending positions in the Elias-Fano code (Elias 1974, Fano 1971).
 *
 * A position is split into its low b bits and its high part, where b = floor(log2(n / k)): position
 * number i is high(i) * 2^b + low(i). The code of k positions below n consists of two streams:
 *
 *   high parts, k + ((n-1) >> b) bits    bit high(i) + i is set for each i: one set bit per
 *                                        position, one zero bit per increment of the high part
 *   low parts, k * b bits                b bits per position, one after the other
 *
 * Bits fill each byte from the low end. Both parts are padded with zeros to whole bytes. The length
 * follows from k and n: 8.56 bits per position for k = 1 % of n, 5.25 bits for 10 %. The Rice code
 * is shorter (positions.h), but takes about 1.5 times as long to read.
 */
#ifndef COMPRESS_CODING_ELIAS_H
#define COMPRESS_CODING_ELIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELIAS_B_MAX = 31 }; /* Largest number b of low bits of a position. */

/* Returns the number b of low bits of a position, for 1 <= k <= n < 2^32. */
unsigned elias_low_bits(size_t k, size_t n);

/* elias_size() returns the exact size in bytes of the code of k positions. elias_bound() returns an
 * upper limit for the sizes of the codes of at most k positions. */
size_t elias_size(size_t k, size_t n);
size_t elias_bound(size_t k, size_t n);

/* Writes the positions index[0..k) as elias_size(k, n) bytes. */
void elias_put(const uint32_t *index, size_t k, size_t n, uint8_t *dst);

/* Reader of an Elias-Fano code of positions below n, with b low bits. */
struct elias_reader
{
    /* The stream of high parts, n_high bytes, and the stream of low parts, n_low bytes. */
    const uint8_t *high, *low;
    size_t n_high, n_low;
    size_t n;
    unsigned b;
    size_t i; /* Number of positions read so far. */
    /* Number of 64-bit words of the stream of high parts that have been loaded so far. */
    size_t word;
    uint64_t bits; /* Set bits of the last loaded word that have not been read yet. */
    uint64_t next; /* Smallest valid value of the next position: the last position plus 1. */
};

/* Starts reading k positions below n. src has elias_size(k, n) bytes. */
void elias_open(struct elias_reader *r, size_t k, size_t n, const uint8_t *src);

/* Reads the next `count` >= 1 positions. All calls together must not read more than k. Returns
 * false if fewer positions are left, if positions do not ascend, or if one is n or more. The cost
 * is bounded by the number of bytes read. */
bool elias_get(struct elias_reader *r, uint32_t *index, size_t count);

/* Returns true if no further bit is set and the padding is zero. To be called after all k positions
 * have been read. */
bool elias_ended(const struct elias_reader *r);

#endif
