/* compress/coding/words.h -- reads and writes 64-bit words near the end of a buffer.
 *
 * Bit i of a stream is bit i % 64 of word i / 64, low bit first.
 */
#ifndef COMPRESS_CODING_WORDS_H
#define COMPRESS_CODING_WORDS_H

#include "compress/coding/bytes.h"

/* Writes a 64-bit word to dst, or only the first bytes of the word if the buffer ends (at `end`)
 * before its last byte. */
static inline void words_put(uint8_t *dst, const uint8_t *end, uint64_t word)
{
    if (end - dst >= 8) {
        bytes_put_u64(dst, word);
        return;
    }
    for (; dst < end; word >>= 8)
        *dst++ = (uint8_t)word;
}

/* Returns the word of the eight bytes from src[at] on. Bytes past src[len - 1] are zero. */
static inline uint64_t words_get(const uint8_t *src, size_t len, size_t at)
{
    if (at + 8 <= len)
        return bytes_get_u64(src + at);
    uint8_t tail[8] = {0};
    if (at < len)
        memcpy(tail, src + at, len - at);
    return bytes_get_u64(tail);
}

#endif
