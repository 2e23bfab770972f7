#include "compress/pack.h"

#include "nn/vec.h"

/* Any width and any count. */
static void put_any(uint8_t *dst, const uint16_t *code, size_t n,
                    unsigned bits)
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

static void get_any(const uint8_t *src, uint16_t *code, size_t n,
                    unsigned bits)
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

VEC_CLONES static void put_4(uint8_t *restrict dst,
                             const uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        dst[i] = (uint8_t)(code[2 * i] | code[2 * i + 1] << 4);
}

VEC_CLONES static void get_4(const uint8_t *restrict src,
                             uint16_t *restrict code, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        code[2 * i] = src[i] & 15;
        code[2 * i + 1] = src[i] >> 4;
    }
}

VEC_CLONES static void put_8(uint8_t *restrict dst,
                             const uint16_t *restrict code, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)code[i];
}

VEC_CLONES static void get_8(const uint8_t *restrict src,
                             uint16_t *restrict code, size_t n)
{
    for (size_t i = 0; i < n; i++)
        code[i] = src[i];
}

void pack_put(uint8_t *dst, const uint16_t *code, size_t n, unsigned bits)
{
    if (bits == 8) {
        put_8(dst, code, n);
    } else if (bits == 4) {
        put_4(dst, code, n / 2);
        if (n % 2 != 0)
            dst[n / 2] = (uint8_t)code[n - 1];
    } else {
        put_any(dst, code, n, bits);
    }
}

void pack_get(const uint8_t *src, uint16_t *code, size_t n, unsigned bits)
{
    if (bits == 8) {
        get_8(src, code, n);
    } else if (bits == 4) {
        get_4(src, code, n / 2);
        if (n % 2 != 0)
            code[n - 1] = src[n / 2] & 15;
    } else {
        get_any(src, code, n, bits);
    }
}

bool pack_padded(const uint8_t *src, size_t n, unsigned bits)
{
    unsigned used = (unsigned)(n * bits % 8);
    return used == 0 || src[pack_size(n, bits) - 1] >> used == 0;
}
