/* compress/simd/simd.h -- vector kernels for loops that the compiler cannot vectorise well.
 *
 * Each function has a portable C version, an AVX2 version and an AVX-512 version (table.h). The
 * level is chosen once at run time. All versions give the same bits:
 *
 *   sums      use SIMD_LANES lanes; element i is added to lane i mod SIMD_LANES. Then the
 *             upper half of the lanes is added to the lower half until one is left
 *   products  are rounded before they are added (no fused multiply-add)
 *   tails     are padded with zeros, which change no sum and are never collected
 *
 * n may have any value. No kernel reads or writes past n elements, except for the output of struct
 * simd_scan.
 */
#ifndef COMPRESS_SIMD_SIMD_H
#define COMPRESS_SIMD_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIMD_LANES = 16,
    /* Largest number of elements in a call that sums floats. A lane then adds 64 values, with a
     * relative error of at most 2^-18. */
    SIMD_CALL_MAX = 1024,
    SIMD_BLOCKS_MAX = 16
};

/* Returns the level in use: "ref" (portable C), "avx2" or "avx512". */
const char *simd_level(void);

/* Sums over one block. simd_load() writes v = x - x_hat (x_hat NULL: zeros) with -0 turned into +0,
 * and returns its sums. */
struct simd_sums
{
    double x2; /* Sum of squares, |v|^2. */
    double l1; /* Sum of |v| with SIMD_L1, otherwise 0. */
    /* Bit pattern of the largest |v|. Infinity and NaN have larger bit patterns than all
     * numbers. */
    uint32_t max;
};
enum {
    SIMD_L1 = 1,
    SIMD_AHEAD = 2 /* Flag: also prefetch the data 8 KiB ahead. */
};
struct simd_sums simd_load(float *restrict v, const float *restrict x, const float *restrict x_hat,
                           size_t n, unsigned how);

/* Several consecutive blocks to load in one call, each with sums of its own. For blocks of 256
 * elements one call takes a third of the time of separate calls. Each block has `block` >= 1
 * elements, the last one the rest; at most SIMD_BLOCKS_MAX blocks. v may be NULL, if only the sums
 * are needed. */
struct simd_source
{
    const float *x, *x_hat;
    size_t n, block;
    unsigned how;
};
void simd_load_blocks(struct simd_sums *sums, float *restrict v, const struct simd_source *s);

/* Computes the same sums, including l1, but writes only the signs of v, in the format of
 * simd_sign_put(). */
struct simd_sums simd_load_signs(uint8_t *restrict dst, const float *restrict x,
                                 const float *restrict x_hat, size_t n, unsigned how);

/* Writes the sign of each value as one bit, low bit first: (n + 7) / 8 bytes, padded with zeros. */
void simd_sign_put(uint8_t *restrict dst, const float *restrict v, size_t n);

/* Adds -scale to y[i] if bit i of src is set, otherwise +scale. */
void simd_sign_add(float *restrict y, const uint8_t *restrict src, size_t n, float scale);

/* Writes v * first * second as binary16, rounded to nearest even, without -0. |v * first * second|
 * must be at most 2^15. Returns the sum of squared errors of the scaled values, that is, multiplied
 * by (first * second)^2. Fastest if `second` is 1. n <= SIMD_CALL_MAX. */
float simd_half_put(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                    float second);

/* Decodes n binary16 values, multiplies them by first * second and adds them to y. */
void simd_half_add(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                   float second);

/* Parameters of simd_byte_put(), the encoder of int8: q = v * shift * inv rounded to nearest even,
 * |q| <= 127, one byte each in two's complement. Returns the sum of (v * shift - q * step)^2, added
 * as in simd_sum_squares(). n <= SIMD_CALL_MAX. */
struct simd_bytes
{
    float shift; /* Power of two near 1 / max |v|, which keeps products in the range of a float. */
    float inv, step;
};
double simd_byte_put(const struct simd_bytes *g, uint8_t *restrict code, const float *restrict v,
                     size_t n);

/* Parameters of simd_power_put(), the encoder of nat. Writes n exponent bytes, then one sign bit
 * per value (low bit first, padded with zeros): n + (n + 7) / 8 bytes. All |v| must be below 2^64.
 *
 * With `random`, |v| is rounded up to the next power of two with a probability equal to the
 * fraction of its mantissa. This uses 23 bits of random number first + i of the stream `key` (see
 * simd_coin(); `first` is even). Without `random`, |v| is rounded up if its mantissa is at least
 * 1.5. Values below 2^-126 become byte 0 without a sign. Returns the sum of ((|v| - power * factor)
 * * shift)^2, added as in simd_sum_squares(). n <= SIMD_CALL_MAX. */
struct simd_powers
{
    bool random;
    uint64_t key;
    size_t first;
    float factor, shift;
    unsigned top; /* Output: the largest exponent byte written. */
};
double simd_power_put(struct simd_powers *p, uint8_t *restrict dst, const float *restrict v,
                      size_t n);

/* Adds the power of each exponent byte, times `factor` and with its sign, to y. Byte 0 decodes to
 * 0. */
void simd_power_add(float *restrict y, const uint8_t *restrict exponent,
                    const uint8_t *restrict sign, size_t n, float factor);

/* Returns the sum of n <= SIMD_CALL_MAX squares, with a relative error of at most 4e-6. Lanes add
 * floats, four at a time while at least 64 elements are left, then one at a time:
 *
 *   lane += (square[i] + square[i + 16]) + (square[i + 32] + square[i + 48])
 *
 * The lanes are added up as doubles. */
double simd_sum_squares(const float *square, size_t n);

/* Writes random number first + i of the stream `key` to u[i], uniform in [0, 1) with 24 bits. Each
 * random word of nn/math/rng.h gives two numbers. `first` must be even. */
void simd_coin(float *u, uint64_t key, size_t first, size_t n);

/* Grid of simd_round(): a = v * first * second is rounded to levels. If u is NULL, a is rounded to
 * nearest even. Otherwise |a| is clamped to `levels`, then rounded up if u[i] is below its
 * fraction. q gets the levels with their signs; the sign of a zero level is unspecified. n <=
 * SIMD_CALL_MAX. */
struct simd_grid
{
    float first;
    float second; /* Second factor of v. The value 1 is fastest. */
    float levels;
};
struct simd_levels
{
    float aq, q2; /* Sums of a * q and of q * q over the elements, where q are the levels of a. */
};
struct simd_levels simd_round(const struct simd_grid *g, float *restrict q, const float *restrict v,
                              const float *restrict u, size_t n);

/* Parameters of simd_code(): writes levels q as codes. A code is |q|, with bit `bits` - 1 set if q
 * < 0. Returns the sum of ((v - scale * q) * shift)^2. n <= SIMD_CALL_MAX. */
struct simd_coder
{
    float scale;
    /* Power of two by which errors are multiplied before they are squared. The value 1 is
     * fastest. */
    float shift;
    unsigned bits;
};
float simd_code(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                const float *restrict v, size_t n);

/* Adds value[c] to y[i], where c is 4-bit code number i of src, low half of a byte first. */
void simd_nibble_add(float *restrict y, const uint8_t *restrict src, size_t n,
                     const float value[16]);

/* Output of a scan. Collects the values v with a bit pattern of |v| of at least t >= 1, and
 * their positions, in ascending order. The arrays need room for SIMD_LANES more elements than
 * are collected. */
struct simd_scan
{
    uint32_t t;
    float *value;
    uint32_t *index;
    size_t found;
    double rest2; /* Running sum, to which the squares of all other values are added. */
};

/* Scans x - x_hat, whose positions are first, first + 1, ... Returns the bit pattern of the largest
 * magnitude, as simd_load() does. */
uint32_t simd_scan(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                   size_t n, uint32_t first);

/* Scans the values value[0..n), which have the positions index[0..n). */
void simd_filter(struct simd_scan *s, const float *restrict value, const uint32_t *restrict index,
                 size_t n);

#endif
