/* compress/coding/bitmap.h -- ascending positions encoded as a bitmap of n bits.
 *
 * Bit p is set if p is one of the positions. Bits are numbered from the low end of each byte. The
 * last byte is padded with zeros.
 */
#ifndef COMPRESS_CODING_BITMAP_H
#define COMPRESS_CODING_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the number of bytes that a bitmap of n bits takes. */
static inline size_t bitmap_size(size_t n)
{
    return (n + 7) / 8;
}

/* Writes the positions index[0..k) as bitmap_size(n) bytes. */
void bitmap_put(const uint32_t *index, size_t k, size_t n, uint8_t *dst);

/* Reader of a bitmap of n bits at src. */
struct bitmap_reader
{
    const uint8_t *src;
    size_t n;
    size_t word;   /* Number of 64-bit words loaded so far. */
    uint64_t bits; /* Set bits of the last loaded word that have not been read yet. */
};

/* Starts reading a bitmap of n bits. src has bitmap_size(n) bytes. */
void bitmap_open(struct bitmap_reader *r, size_t n, const uint8_t *src);

/* Reads the next `count` >= 1 positions. Returns false if fewer positions are left, or if a
 * position is n or more. All calls together cost at most one pass over the bitmap. */
bool bitmap_get(struct bitmap_reader *r, uint32_t *index, size_t count);

/* Returns true if all set bits have been read. */
bool bitmap_ended(const struct bitmap_reader *r);

#endif
