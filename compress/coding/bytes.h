/* compress/coding/bytes.h -- little-endian integers, bit patterns of floats, and varints.
 *
 * A varint stores an unsigned number as seven bits per byte, low bits first. The high bit is set in
 * every byte except the last. The last byte is not 0 unless it is the only byte, so each number has
 * exactly one encoding.
 */
#ifndef COMPRESS_CODING_BYTES_H
#define COMPRESS_CODING_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    BYTES_VARINT_MAX = 5 /* Largest size of a 32-bit varint, in bytes. */
};

static inline uint32_t bytes_swap32(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

static inline uint64_t bytes_swap64(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline void bytes_put_u16(uint8_t *dst, uint16_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap16(v);
#endif
    memcpy(dst, &v, sizeof v);
}

static inline uint16_t bytes_get_u16(const uint8_t *src)
{
    uint16_t v;
    memcpy(&v, src, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap16(v);
#endif
    return v;
}

static inline void bytes_put_u32(uint8_t *dst, uint32_t v)
{
    v = bytes_swap32(v);
    memcpy(dst, &v, sizeof v);
}

static inline uint32_t bytes_get_u32(const uint8_t *src)
{
    uint32_t v;
    memcpy(&v, src, sizeof v);
    return bytes_swap32(v);
}

static inline void bytes_put_u64(uint8_t *dst, uint64_t v)
{
    v = bytes_swap64(v);
    memcpy(dst, &v, sizeof v);
}

static inline uint64_t bytes_get_u64(const uint8_t *src)
{
    uint64_t v;
    memcpy(&v, src, sizeof v);
    return bytes_swap64(v);
}

/* Returns the bit pattern of a float. bytes_to_float() is the reverse. */
static inline uint32_t bytes_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float bytes_to_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline void bytes_put_float(uint8_t *dst, float f)
{
    bytes_put_u32(dst, bytes_of_float(f));
}

static inline float bytes_get_float(const uint8_t *src)
{
    return bytes_to_float(bytes_get_u32(src));
}

/* Returns 2^e as a float, for -126 <= e <= 127. */
static inline float bytes_pow2(int e)
{
    return bytes_to_float((uint32_t)(e + 127) << 23);
}

/* Returns floor(log2(f)) for a float f >= 0, or -126 if f is smaller than 2^-126 (also for 0). */
static inline int bytes_exponent(float f)
{
    int e = (int)(bytes_of_float(f) >> 23);
    return e > 0 ? e - 127 : -126;
}

/* Writes v as a varint. Returns its size in bytes. */
static inline size_t bytes_put_varint(uint8_t *dst, uint32_t v)
{
    size_t i = 0;
    for (; v >= 0x80; v >>= 7)
        dst[i++] = (uint8_t)(v | 0x80);
    dst[i++] = (uint8_t)v;
    return i;
}

/* Returns the size in bytes of v as a varint. */
static inline size_t bytes_varint_size(uint32_t v)
{
    size_t size = 1;
    for (; v >= 0x80; v >>= 7)
        size++;
    return size;
}

/* Reads a varint at the start of src[0..len) into *v. Returns its size in bytes, or 0 if no valid
 * 32-bit varint begins there. */
static inline size_t bytes_get_varint(const uint8_t *src, size_t len, uint32_t *v)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len && i < BYTES_VARINT_MAX; i++) {
        sum |= (uint64_t)(src[i] & 0x7f) << (7 * i);
        if (src[i] & 0x80)
            continue;
        if ((src[i] == 0 && i > 0) || sum > UINT32_MAX)
            return 0;
        *v = (uint32_t)sum;
        return i + 1;
    }
    return 0;
}

#endif
