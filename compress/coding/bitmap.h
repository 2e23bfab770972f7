/* compress/coding/bitmap.h -- increasing positions as a bitmap of n bits.
 *
 * Bit p, from the low end of each byte, is one for each position p. The last
 * byte is padded with zeros.
 */
#ifndef COMPRESS_CODING_BITMAP_H
#define COMPRESS_CODING_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bitmap_size(size_t n)
{
    return (n + 7) / 8;
}

/* Write bitmap_size() bytes. */
void bitmap_put(const uint32_t *index, size_t k, size_t n, uint8_t *dst);

struct bitmap_reader
{
    const uint8_t *src;
    size_t n;
    size_t word;   /* Words of eight bytes taken, */
    uint64_t bits; /* and the ones of the last that have not been read. */
};

/* src has bitmap_size(n) bytes. */
void bitmap_open(struct bitmap_reader *r, size_t n, const uint8_t *src);

/* Read count >= 1 positions. False if there are fewer, or one is not below n.
 * Cost is bounded by the bitmap. */
bool bitmap_get(struct bitmap_reader *r, uint32_t *index, size_t count);

/* Are there no more? */
bool bitmap_ended(const struct bitmap_reader *r);

#endif
