/* compress/coding/pack.h -- codes of 2 to 16 bits, packed with the low bit first.
 *
 * Code i occupies the bits [i * bits, (i + 1) * bits) of the stream. The last byte is padded with
 * zeros.
 */
#ifndef COMPRESS_CODING_PACK_H
#define COMPRESS_CODING_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the number of bytes that n codes take. */
static inline size_t pack_size(size_t n, unsigned bits)
{
    return (n * bits + 7) / 8;
}

/* Writes n codes, each below 2^bits, as pack_size(n, bits) bytes. */
void pack_put(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits);

/* Reads n codes from pack_size(n, bits) bytes. */
void pack_get(const uint8_t *src, uint16_t *code, size_t n, unsigned bits);

/* Returns true if the padding bits after the last code are zero. */
bool pack_padded(const uint8_t *src, size_t n, unsigned bits);

#endif
