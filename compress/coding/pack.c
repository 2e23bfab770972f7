/* compress/coding/pack.c -- packs and unpacks codes of 2 to 16 bits.
 *
 * Codes of 2, 4 and 8 bits, the usual sizes, have loops that the compiler vectorises. Codes of
 * other sizes are handled eight at a time in 64-bit words, because eight codes of b bits are
 * exactly b bytes. Up to seven codes at the end are handled one by one.
 */
#include "compress/coding/pack.h"

#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

/* Writes n codes of any size, one by one. Used for the last codes, which are too few for the faster
 * functions. */
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

/* Reads n codes of any size, one by one, without reading past their last byte. */
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

/* Returns two codes as one 32-bit number. The first code is in the low half, whatever the byte
 * order of the CPU is. */
static inline uint32_t two_codes(const uint16_t *code)
{
    uint32_t w;
    memcpy(&w, code, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = w << 16 | w >> 16;
#endif
    return w;
}

/* Returns four codes as one 64-bit number. The first code is in the lowest 16 bits. */
static inline uint64_t four_codes(const uint16_t *code)
{
    uint64_t w;
    memcpy(&w, code, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = two_codes(code) | (uint64_t)two_codes(code + 2) << 32;
#endif
    return w;
}

/* Packs four 2-bit codes into each byte. The 64-bit word w holds four codes, 16 bits apart, which
 * two shifts move next to each other. */
VEC_CLONES static void put_2(uint8_t *restrict dst, const uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        uint64_t w = four_codes(code + 4 * i);
        w |= w >> 14;
        dst[i] = (uint8_t)(w | w >> 28);
    }
}

/* Unpacks four 2-bit codes from each byte. */
VEC_CLONES static void get_2(const uint8_t *restrict src, uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned j = 0; j < 4; j++)
            code[4 * i + j] = src[i] >> (2 * j) & 3;
}

/* Packs two 4-bit codes into each byte. The 32-bit word w holds two codes, 16 bits apart, which a
 * shift moves next to each other. */
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

/* Joins four codes into one number. The callers handle eight codes at a time, as one or two
 * whole 64-bit words. put_any() and get_any() handle the last codes, because they access no byte
 * past the codes. */
static inline uint64_t join_4(const uint16_t *code, unsigned bits)
{
    uint64_t low = code[0] | (uint64_t)code[1] << bits;
    uint64_t high = code[2] | (uint64_t)code[3] << bits;
    return low | high << (2 * bits);
}

/* Packs codes of 3 to 7 bits: eight codes in one word. Returns the number of codes packed. */
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

/* Packs codes of 9 to 15 bits: eight codes in two words. Returns the number of codes packed. */
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

/* Splits a number into four codes. The reverse of join_4(). */
static inline void split_4(uint64_t w, uint16_t *code, unsigned bits)
{
    uint64_t mask = (1u << bits) - 1;
    for (unsigned j = 0; j < 4; j++)
        code[j] = (uint16_t)(w >> (j * bits) & mask);
}

/* Unpacks codes of 3 to 7 bits: eight codes from one word, as long as a whole word can be read.
 * Returns the number of codes unpacked. */
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

/* Unpacks codes of 9 to 15 bits: eight codes from two words. The fifth to eighth code need bits of
 * both words. Returns the number of codes unpacked. */
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

/* Writes groups of eight codes with a fast function, because each group ends at a byte boundary.
 * put_any() packs the remaining codes. */
void pack_put(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits)
{
    size_t done = 0; /* Number of codes packed by a fast function, a multiple of eight. */
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

/* Padding bits must be zero, because other padding would be a second encoding of the same codes. */
bool pack_padded(const uint8_t *src, size_t n, unsigned bits)
{
    unsigned used = (unsigned)(n * bits % 8);
    return used == 0 || src[pack_size(n, bits) - 1] >> used == 0;
}
