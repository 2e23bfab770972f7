/* compress/coding/pack.h -- codes of 2 to 16 bits, packed low bit first.
 *
 * Code i occupies bits i*bits .. (i+1)*bits of the stream, and the last byte
 * is padded with zeros.
 */
#ifndef COMPRESS_CODING_PACK_H
#define COMPRESS_CODING_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t pack_size(size_t n, unsigned bits)
{
    return (n * bits + 7) / 8;
}

/* Write pack_size() bytes. Codes are below 1 << bits. */
void pack_put(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits);

/* Read n codes from exactly pack_size() bytes. */
void pack_get(const uint8_t *src, uint16_t *code, size_t n, unsigned bits);

/* Are the bits behind the last code zero? */
bool pack_padded(const uint8_t *src, size_t n, unsigned bits);

#endif
