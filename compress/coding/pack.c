/* compress/coding/pack.c -- packs codes of a few bits, in the way that suits their width.
 *
 * 2, 4 and 8 bits, which the usual specs have, are loops that vectorise. Other
 * widths go eight codes at a time through 64-bit words: eight codes of b bits are
 * b whole bytes, whatever b is. The rest, up to seven codes, goes bit by bit.
 */
#include "compress/coding/pack.h"

#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

/* Write codes of any width and any count: what the faster ways leave over. */
static void put_any(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits)
{
    uint64_t acc = 0;
    unsigned held = 0;
    for (size_t i = 0; i < n; i++) {
        acc |= (uint64_t)code[i] << held;
        for (held += bits; held >= 8; held -= 8) {
            *dst++ = (uint8_t)acc;
            acc >>= 8;
        }
    }
    if (held > 0)
        *dst = (uint8_t)acc;
}

/* Read codes of any width and any count; takes no byte more than they have. */
static void get_any(const uint8_t *src, uint16_t *code, size_t n, unsigned bits)
{
    uint64_t acc = 0;
    unsigned held = 0;
    for (size_t i = 0; i < n; i++) {
        for (; held < bits; held += 8)
            acc |= (uint64_t)*src++ << held;
        code[i] = (uint16_t)(acc & ((1u << bits) - 1));
        acc >>= bits;
        held -= bits;
    }
}

/* Two codes as one number, the first in its low half, on a machine of any byte order. */
static inline uint32_t two_codes(const uint16_t *code)
{
    uint32_t w;
    memcpy(&w, code, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = w << 16 | w >> 16;
#endif
    return w;
}

/* Four codes as one number, the first in its lowest quarter. */
static inline uint64_t four_codes(const uint16_t *code)
{
    uint64_t w;
    memcpy(&w, code, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = two_codes(code) | (uint64_t)two_codes(code + 2) << 32;
#endif
    return w;
}

/* Codes stand 16 bits apart in w: one shift brings two to the side of each other, the next four. */
VEC_CLONES static void put_2(uint8_t *restrict dst, const uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        uint64_t w = four_codes(code + 4 * i);
        w |= w >> 14;
        dst[i] = (uint8_t)(w | w >> 28);
    }
}

/* The reverse of put_2(): four codes of each byte. */
VEC_CLONES static void get_2(const uint8_t *restrict src, uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned j = 0; j < 4; j++)
            code[4 * i + j] = src[i] >> (2 * j) & 3;
}

/* Two codes, 16 bits apart in w, to the two nibbles of a byte. */
VEC_CLONES static void put_4(uint8_t *restrict dst, const uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        uint32_t w = two_codes(code + 2 * i);
        dst[i] = (uint8_t)(w | w >> 12);
    }
}

VEC_CLONES static void get_4(const uint8_t *restrict src, uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        code[2 * i] = src[i] & 15;
        code[2 * i + 1] = src[i] >> 4;
    }
}

VEC_CLONES static void put_8(uint8_t *restrict dst, const uint16_t *restrict code, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)code[i];
}

VEC_CLONES static void get_8(const uint8_t *restrict src, uint16_t *restrict code, size_t n)
{
    for (size_t i = 0; i < n; i++)
        code[i] = src[i];
}

/* Eight codes are `bits` bytes. Those of up to eight bits fit a word, wider
 * ones two: of four codes each, of which the second begins within the first.
 * Words are written and read whole; the last groups are left to the slow way,
 * so that no byte beyond the codes' is touched. */
static inline uint64_t join_4(const uint16_t *code, unsigned bits)
{
    uint64_t low = code[0] | (uint64_t)code[1] << bits;
    uint64_t high = code[2] | (uint64_t)code[3] << bits;
    return low | high << (2 * bits);
}

/* Codes of 3 to 7 bits: one word for eight of them. Returns how many are done. */
static size_t put_narrow(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits)
{
    size_t i = 0;
    for (; (i / 8) * bits + 8 <= n * bits / 8 && i + 8 <= n; i += 8) {
        uint64_t low = join_4(code + i, bits);
        uint64_t high = join_4(code + i + 4, bits);
        bytes_put_u64(dst + i / 8 * bits, low | high << (4 * bits));
    }
    return i;
}

/* Codes of 9 to 15 bits: two words for eight of them. Returns how many are done. */
static size_t put_wide(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits)
{
    size_t i = 0;
    for (; (i / 8) * bits + 16 <= n * bits / 8 && i + 8 <= n; i += 8) {
        uint64_t low = join_4(code + i, bits);
        uint64_t high = join_4(code + i + 4, bits);
        uint8_t *at = dst + i / 8 * bits;
        bytes_put_u64(at, low | high << (4 * bits));
        bytes_put_u64(at + 8, high >> (64 - 4 * bits));
    }
    return i;
}

/* The reverse of join_4(). */
static inline void split_4(uint64_t w, uint16_t *code, unsigned bits)
{
    uint64_t mask = (1u << bits) - 1;
    for (unsigned j = 0; j < 4; j++)
        code[j] = (uint16_t)(w >> (j * bits) & mask);
}

/* The reverse of put_narrow(), as far as a word can be read whole. */
static size_t get_narrow(const uint8_t *src, uint16_t *code, size_t n, unsigned bits)
{
    size_t i = 0;
    for (; (i / 8) * bits + 8 <= n * bits / 8 && i + 8 <= n; i += 8) {
        uint64_t w = bytes_get_u64(src + i / 8 * bits);
        split_4(w, code + i, bits);
        split_4(w >> (4 * bits), code + i + 4, bits);
    }
    return i;
}

/* The reverse of put_wide(): the last four codes lie across both words. */
static size_t get_wide(const uint8_t *src, uint16_t *code, size_t n, unsigned bits)
{
    size_t i = 0;
    for (; (i / 8) * bits + 16 <= n * bits / 8 && i + 8 <= n; i += 8) {
        const uint8_t *at = src + i / 8 * bits;
        uint64_t low = bytes_get_u64(at);
        uint64_t high = bytes_get_u64(at + 8);
        split_4(low, code + i, bits);
        high = high << (64 - 4 * bits) | low >> (4 * bits);
        split_4(high, code + i + 4, bits);
    }
    return i;
}

/* The fast way does whole groups of eight codes, after which a byte begins; the slow way does
 * the rest. */
void pack_put(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits)
{
    size_t done = 0; /* A multiple of eight codes. */
    if (bits == 8) {
        put_8(dst, code, n);
        return;
    }
    if (bits == 4)
        put_4(dst, code, (done = n / 8 * 8) / 2);
    else if (bits == 2)
        put_2(dst, code, (done = n / 8 * 8) / 4);
    else if (bits < 8)
        done = put_narrow(dst, code, n, bits);
    else if (bits < 16)
        done = put_wide(dst, code, n, bits);
    put_any(dst + done / 8 * bits, code + done, n - done, bits);
}

void pack_get(const uint8_t *src, uint16_t *code, size_t n, unsigned bits)
{
    size_t done = 0;
    if (bits == 8) {
        get_8(src, code, n);
        return;
    }
    if (bits == 4)
        get_4(src, code, (done = n / 8 * 8) / 2);
    else if (bits == 2)
        get_2(src, code, (done = n / 8 * 8) / 4);
    else if (bits < 8)
        done = get_narrow(src, code, n, bits);
    else if (bits < 16)
        done = get_wide(src, code, n, bits);
    get_any(src + done / 8 * bits, code + done, n - done, bits);
}

/* Other padding would be a second encoding of the same codes. */
bool pack_padded(const uint8_t *src, size_t n, unsigned bits)
{
    unsigned used = (unsigned)(n * bits % 8);
    return used == 0 || src[pack_size(n, bits) - 1] >> used == 0;
}
