/* compress/simd/table.h -- tables of the kernels behind simd.h, one table for each level.
 *
 * This header is internal to compress/simd/: simd.c calls the kernels through these tables. A level
 * is an instruction set: portable C, AVX2 or AVX-512. The header also contains small functions that
 * several levels share.
 */
#ifndef COMPRESS_SIMD_TABLE_H
#define COMPRESS_SIMD_TABLE_H

#include "compress/simd/simd.h"

#include "compress/coding/bytes.h"
#include "nn/math/rng.h"

#if defined(__x86_64__)
#define SIMD_X86 1
#else
#define SIMD_X86 0
#endif

/* The kernels, in four groups. Each instruction set has one file per group. The comment on a kernel
 * is in simd.h, at the function of the same name: simd_sign_put() for sign_put. */
struct simd_load_table
{
    void (*load)(struct simd_sums *sums, float *restrict v, const struct simd_source *s);
    struct simd_sums (*load_signs)(uint8_t *restrict dst, const float *restrict x,
                                   const float *restrict x_hat, size_t n, unsigned how);
    void (*sign_put)(uint8_t *restrict dst, const float *restrict v, size_t n);
    void (*sign_add)(float *restrict y, const uint8_t *restrict src, size_t n, float scale);
};

struct simd_cast_table
{
    float (*half_put)(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                      float second);
    void (*half_add)(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                     float second);
    double (*byte_put)(const struct simd_bytes *g, uint8_t *restrict code, const float *restrict v,
                       size_t n);
    double (*power_put)(struct simd_powers *p, uint8_t *restrict dst, const float *restrict v,
                        size_t n);
    void (*power_add)(float *restrict y, const uint8_t *restrict exponent,
                      const uint8_t *restrict sign, size_t n, float factor);
    double (*sum_squares)(const float *square, size_t n);
};

struct simd_levels_table
{
    void (*coin)(float *u, uint64_t key, size_t first, size_t n);
    struct simd_levels (*round)(const struct simd_grid *g, float *restrict q,
                                const float *restrict v, const float *restrict u, size_t n);
    float (*code)(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                  const float *restrict v, size_t n);
    void (*nibble_add)(float *restrict y, const uint8_t *restrict src, size_t n,
                       const float value[16]);
};

struct simd_scan_table
{
    uint32_t (*scan)(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                     size_t n, uint32_t first);
    void (*filter)(struct simd_scan *s, const float *restrict value, const uint32_t *restrict index,
                   size_t n);
};

/* The kernels of one level (instruction set), in four groups. */
struct simd_table
{
    const char *name;
    const struct simd_load_table *load;
    const struct simd_cast_table *cast;
    const struct simd_levels_table *levels;
    const struct simd_scan_table *scan;
};

extern const struct simd_table simd_ref;
#if SIMD_X86
extern const struct simd_table simd_avx2, simd_avx512;
extern const struct simd_load_table simd_avx2_load, simd_avx512_load;
extern const struct simd_cast_table simd_avx2_cast, simd_avx512_cast;
extern const struct simd_levels_table simd_avx2_levels, simd_avx512_levels;
extern const struct simd_scan_table simd_avx2_scan, simd_avx512_scan;
#endif

/* Prefetch distance of SIMD_AHEAD in bytes. While a codec works on a batch of blocks in the cache
 * (dense.c), the memory bus would be idle, so the next batch is prefetched. */
enum { SIMD_DISTANCE = 8192 };

/* Prefetches the data SIMD_DISTANCE bytes after p. */
static inline void simd_ask(const float *p)
{
    __builtin_prefetch((const void *)((uintptr_t)p + SIMD_DISTANCE));
}

/* Splits a 64-bit random word into two numbers in [0, 1), with 24 bits from each half. */
static inline void simd_two_coins(float u[2], uint64_t word)
{
    u[0] = (float)(int32_t)((uint32_t)word >> 8) * 0x1p-24f;
    u[1] = (float)(int32_t)(word >> 40) * 0x1p-24f;
}

/* Writes random numbers first to first + n - 1 of a stream, two from each random word. If n is odd,
 * the last word gives only its first number. */
__attribute__((always_inline)) static inline void simd_coins(float *u, uint64_t key, size_t first,
                                                             size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        simd_two_coins(u + 2 * i, rng_at(key, first / 2 + i));
    if (n % 2 != 0) {
        float last[2];
        simd_two_coins(last, rng_at(key, (first + n) / 2));
        u[n - 1] = last[0];
    }
}

/* Returns `yes ? a : b`. Uses a mask, because the compiler does not vectorise a branch here. */
static inline uint32_t simd_pick(bool yes, uint32_t a, uint32_t b)
{
    uint32_t mask = 0u - (uint32_t)yes;
    return (a & mask) | (b & ~mask);
}

/* Returns f as binary16, rounded to nearest even, for |f| <= 2^15. -0 becomes 0. For |f| below
 * 2^-14 the step of binary16 is 2^-24. Adding 1/2 to such a float rounds it to this step, because
 * floats from 1/2 on have the same step. For larger |f| the bits that binary16 does not have are
 * rounded off with integer arithmetic. */
static inline uint16_t simd_half_of(float f)
{
    uint32_t bits = bytes_of_float(f);
    uint32_t abs = bits & 0x7fffffffu;
    uint32_t small = bytes_of_float(bytes_to_float(abs) + 0.5f) - 0x3f000000u;
    uint32_t large = ((abs + 0xfffu + (abs >> 13 & 1)) >> 13) - (112u << 10);
    uint32_t code = simd_pick(abs < 0x38800000u, small, large);
    uint32_t sign = simd_pick(code != 0, bits >> 16 & 0x8000u, 0);
    return (uint16_t)(code | sign);
}

/* Returns the value of a finite binary16 number. */
static inline float simd_half_to_float(uint16_t h)
{
    uint32_t code = h & 0x7fffu;
    float small = (float)(int32_t)code * 0x1p-24f;
    uint32_t large = (code << 13) + (112u << 23);
    uint32_t bits = simd_pick(code < 0x400, bytes_of_float(small), large);
    return bytes_to_float(bits | (uint32_t)(h & 0x8000u) << 16);
}

#endif
