/* compress/simd/simd.h -- vector kernels for loops that the compiler cannot vectorise well.
 *
 * A kernel is the inner loop of a codec. Each function has a portable C version, an AVX2 version
 * and an AVX-512 version (table.h). Which version ("level") is used is chosen once, at run time.
 * All versions give the same bits, because they follow these rules:
 *
 *   sums      use SIMD_LANES lanes; element i is added to lane i mod SIMD_LANES. Then the
 *             upper half of the lanes is added to the lower half until one is left
 *   products  are rounded before they are added (no fused multiply-add)
 *   tails     are padded with zeros, which change no sum and are never collected
 *
 * n may have any value unless a limit is given. No kernel reads or writes past n elements.
 * Exception: the output of a scan (struct simd_scan).
 */
#ifndef COMPRESS_SIMD_SIMD_H
#define COMPRESS_SIMD_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIMD_LANES = 16, /* Number of partial sums (lanes) into which each sum is split. */
    /* Largest number of elements in one call of a kernel that sums floats. Each lane then adds 64
     * values, with a relative error of at most 2^-18. */
    SIMD_CALL_MAX = 1024,
    /* Largest number of blocks in one call of simd_load_blocks(). */
    SIMD_BLOCKS_MAX = 16
};

/* Returns the name of the level (instruction set) in use: "ref" (portable C), "avx2" or
 * "avx512". */
const char *simd_level(void);

/* Sums over one block of the difference v = x - x_hat. simd_load() writes v, with -0 turned into
 * +0, and returns its sums. If x_hat is NULL, v = x. `how` is a combination of the flags SIMD_L1
 * and SIMD_AHEAD. */
struct simd_sums
{
    double x2; /* Sum of squares over the block, |v|^2. */
    double l1; /* Sum of |v| over the block if SIMD_L1 is set, otherwise 0. */
    /* Bit pattern of the largest |v|. Infinity and NaN have larger bit patterns than all
     * numbers. */
    uint32_t max;
};
enum {
    SIMD_L1 = 1,   /* Flag for simd_load(): also compute l1, the sum of |v|. */
    SIMD_AHEAD = 2 /* Flag for simd_load(): also prefetch the data that lies 8 KiB ahead. */
};
struct simd_sums simd_load(float *restrict v, const float *restrict x, const float *restrict x_hat,
                           size_t n, unsigned how);

/* Several consecutive blocks of n elements in total, to load in one call. Each block has `block` >=
 * 1 elements, and the last block may have fewer. There are at most SIMD_BLOCKS_MAX blocks.
 * simd_load_blocks() writes the sums of block i to sums[i]. If v is NULL, only the sums are
 * computed. For blocks of 256 elements, one call takes a third of the time of separate calls. */
struct simd_source
{
    const float *x, *x_hat;
    size_t n, block;
    unsigned how;
};
void simd_load_blocks(struct simd_sums *sums, float *restrict v, const struct simd_source *s);

/* Computes the sums of one block, including l1, but writes only the signs of the elements, in the
 * format of simd_sign_put(). */
struct simd_sums simd_load_signs(uint8_t *restrict dst, const float *restrict x,
                                 const float *restrict x_hat, size_t n, unsigned how);

/* Writes the sign of each value as one bit, low bit first: (n + 7) / 8 bytes, padded with zeros. */
void simd_sign_put(uint8_t *restrict dst, const float *restrict v, size_t n);

/* Adds scale to each y[i] if bit i of src is 0, and -scale if the bit is 1. The bits are in the
 * format of simd_sign_put(). */
void simd_sign_add(float *restrict y, const uint8_t *restrict src, size_t n, float scale);

/* Writes each v[i] * first * second as binary16, rounded to nearest even. -0 is written as 0. Each
 * product must be at most 2^15 in magnitude. Returns the sum of the squared errors of the products.
 * Fastest if `second` is 1. n <= SIMD_CALL_MAX. */
float simd_half_put(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                    float second);

/* Decodes n binary16 values, multiplies them by first * second and adds them to y. */
void simd_half_add(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                   float second);

/* Parameters of simd_byte_put(), the kernel of the codec int8. It writes each value as one byte q,
 * in two's complement: v * shift * inv rounded to nearest even, which must be in [-127, 127].
 * Returns the sum of (v * shift - q * step)^2, added as in simd_sum_squares(). n <=
 * SIMD_CALL_MAX. */
struct simd_bytes
{
    float shift; /* Power of two near 1 / max |v|, which keeps products in the range of a float. */
    /* inv: factor that turns v * shift into a code. step: distance between two codes, 1 / inv. */
    float inv, step;
};
double simd_byte_put(const struct simd_bytes *g, uint8_t *restrict code, const float *restrict v,
                     size_t n);

/* Parameters of simd_power_put(), the kernel of the codec nat, which rounds values to powers of
 * two. Writes n exponent bytes, then one sign bit per value (low bit first, padded with zeros), in
 * total n + (n + 7) / 8 bytes. All |v| must be below 2^64. Values below 2^-126 become byte 0
 * without a sign.
 *
 * If `random` is true, |v| is rounded up to the next power of two with a probability equal to the
 * fraction of its mantissa. This uses 23 bits of random number first + i of the stream `key` (see
 * simd_coin()). `first` must be even. If `random` is false, |v| is rounded up if its mantissa is at
 * least 1.5.
 *
 * Returns the sum of ((|v| - power * factor) * shift)^2, added as in simd_sum_squares(). n <=
 * SIMD_CALL_MAX.
 */
struct simd_powers
{
    bool random;
    uint64_t key;
    size_t first;
    /* factor: number by which each power of two is multiplied when it is decoded. shift: power of
     * two by which errors are multiplied before they are squared. */
    float factor, shift;
    unsigned top; /* Output: the largest exponent byte that was written. */
};
double simd_power_put(struct simd_powers *p, uint8_t *restrict dst, const float *restrict v,
                      size_t n);

/* Decodes n values in the format of simd_power_put() and adds them to y: the power of two of each
 * exponent byte, times `factor`, with the sign of its sign bit. Byte 0 decodes to 0. */
void simd_power_add(float *restrict y, const uint8_t *restrict exponent,
                    const uint8_t *restrict sign, size_t n, float factor);

/* Returns the sum of n <= SIMD_CALL_MAX squares, with a relative error of at most 4e-6. Each lane
 * adds floats, four at a time while at least 64 elements are left, then one at a time:
 *
 *   lane += (square[i] + square[i + 16]) + (square[i + 32] + square[i + 48])
 *
 * Finally the lanes are added up as doubles.
 */
double simd_sum_squares(const float *square, size_t n);

/* Writes random numbers first, first + 1, ... of the stream `key` to u[0..n). They are uniform in
 * [0, 1) with 24 bits. Each 64-bit random word of nn/math/rng.h gives two numbers, so `first` must
 * be even. */
void simd_coin(float *u, uint64_t key, size_t first, size_t n);

/* Parameters of simd_round(), which rounds values to integer levels: a = v * first * second is the
 * position of v on the grid. If u is NULL, a is rounded to nearest even. Otherwise |a| is limited
 * to `levels` and then rounded up if its fraction is above u[i], and down otherwise. The levels are
 * written to q with their signs. The sign of level 0 is unspecified. n <= SIMD_CALL_MAX. */
struct simd_grid
{
    float first; /* First of the two factors that map a value to its position on the grid. */
    /* Second of the two factors that map a value to its position on the grid. The value 1 is
     * fastest. */
    float second;
    float levels; /* Largest level. Used in random rounding only. */
};
struct simd_levels
{
    /* Sums over all values. aq is the sum of a * q, and q2 is the sum of q * q, where a is the
     * position of a value on the grid and q its level. */
    float aq, q2;
};
struct simd_levels simd_round(const struct simd_grid *g, float *restrict q, const float *restrict v,
                              const float *restrict u, size_t n);

/* Parameters of simd_code(), which writes levels q as codes: the magnitude |q|, with bit number
 * `bits` - 1 set if q < 0. Returns the sum of the squared errors ((v - scale * q) * shift)^2. n <=
 * SIMD_CALL_MAX. */
struct simd_coder
{
    float scale; /* Factor by which a level is decoded: value = scale * level. */
    /* Power of two by which errors are multiplied before they are squared. The value 1 is
     * fastest. */
    float shift;
    unsigned bits;
};
float simd_code(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                const float *restrict v, size_t n);

/* Decodes n codes of 4 bits and adds them to y: code c decodes to value[c]. The low half of each
 * byte comes first. */
void simd_nibble_add(float *restrict y, const uint8_t *restrict src, size_t n,
                     const float value[16]);

/* State and output of a scan. A scan collects the elements whose magnitude |v| has a bit pattern of
 * at least t >= 1, and their positions, in ascending order. The arrays need room for SIMD_LANES
 * more elements than are collected. */
struct simd_scan
{
    uint32_t t; /* Threshold t: elements whose |v| has at least this bit pattern are collected. */
    float *value;
    uint32_t *index;
    size_t found; /* Number of elements that the scan has collected so far. */
    /* Sum of the squares of all scanned elements that were not collected. Kernels add to it, and
     * the caller sets its initial value. */
    double rest2;
};

/* Scans n elements of x - x_hat, which have the positions first, first + 1, ... Returns the bit
 * pattern of the largest magnitude, as simd_load() does. */
uint32_t simd_scan(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                   size_t n, uint32_t first);

/* Scans n values that have already been loaded. value[i] has the position index[i]. */
void simd_filter(struct simd_scan *s, const float *restrict value, const uint32_t *restrict index,
                 size_t n);

#endif
