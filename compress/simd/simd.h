/* compress/simd/simd.h -- the loops the compiler's vectoriser cannot write well.
 *
 * Each has a plain twin, an AVX2 and an AVX-512 one (table.h); the level
 * is chosen once, at run time. All give the same bits:
 *
 *   sums      run in SIMD_LANES lanes, element i in lane i mod SIMD_LANES;
 *             then the upper half of the lanes is added to the lower, until
 *             one is left
 *   products  are rounded before they are added: no fused multiply-add
 *   tails     are padded with zeros, which no sum and no pick can see
 *
 * n is any; nothing is read or written beyond it, but for struct simd_scan.
 */
#ifndef COMPRESS_SIMD_SIMD_H
#define COMPRESS_SIMD_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIMD_LANES = 16,
    /* At most this many elements in a call that sums in floats, so that a lane
     * adds 64 values and errs by 2^-18 at the very worst. */
    SIMD_CALL_MAX = 1024,
    SIMD_BLOCKS_MAX = 16
};

/* "ref", "avx2" or "avx512". */
const char *simd_level(void);

/* v = x - x_hat (x_hat may be NULL: zeros) with -0 made +0. */
struct simd_sums
{
    double x2;    /* |v|^2. */
    double l1;    /* Sum of |v|, if SIMD_L1 was asked for, or else 0. */
    uint32_t max; /* Bits of max |v|; infinite and NaN are the largest. */
};
enum {
    SIMD_L1 = 1,
    SIMD_AHEAD = 2 /* Ask memory for what comes 8 KiB later, too. */
};
struct simd_sums simd_load(float *restrict v, const float *restrict x, const float *restrict x_hat,
                           size_t n, unsigned how);

/* The same of several blocks that follow each other, each with sums of its own: one call folds
 * their lanes together, which for a block of 256 takes a third of the time. `block` >= 1 elements
 * each, the last one what is left; at most SIMD_BLOCKS_MAX. v may be NULL: sums alone. */
struct simd_source
{
    const float *x, *x_hat;
    size_t n, block;
    unsigned how;
};
void simd_load_blocks(struct simd_sums *sums, float *restrict v, const struct simd_source *s);

/* The same with l1, but what is written are the signs of v, as simd_sign_put()
 * does. */
struct simd_sums simd_load_signs(uint8_t *restrict dst, const float *restrict x,
                                 const float *restrict x_hat, size_t n, unsigned how);

/* One bit a value, its sign, low bit first: (n + 7) / 8 bytes, zeros behind. */
void simd_sign_put(uint8_t *restrict dst, const float *restrict v, size_t n);

/* y[i] += bit i of src ? -scale : scale. */
void simd_sign_add(float *restrict y, const uint8_t *restrict src, size_t n, float scale);

/* dst = binary16 of v * first * second, |that| <= 2^15, to nearest even, never
 * the code of -0. Returns the sum of the squares of what was lost, still
 * multiplied by (first * second)^2. A second of 1 is fastest.
 * n <= SIMD_CALL_MAX. */
float simd_half_put(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                    float second);

/* y += half * first * second, of n halves. */
void simd_half_add(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                   float second);

/* Codes of int8: q = v * shift * inv to nearest even, |q| <= 127, a byte each in two's complement.
 * Returns the sum of (v * shift - q * step)^2, as simd_sum_squares() adds. n <= SIMD_CALL_MAX. */
struct simd_bytes
{
    float shift; /* A power of two. */
    float inv, step;
};
double simd_byte_put(const struct simd_bytes *g, uint8_t *restrict code, const float *restrict v,
                     size_t n);

/* Codes of nat: n exponent bytes, then a sign bit each, low bit first, zeros behind: that is
 * n + (n + 7) / 8 bytes. |v| is below 2^64 and rounded up to the next power of two with the
 * probability of its mantissa, by number first + i of the stream `key` (see simd_coin(), but with
 * 23 bits; first is even), or from a mantissa of 1.5 on if it is not `random`. Below 2^-126 it is
 * byte 0 without a sign. Returns the sum of ((|v| - power * factor) * shift)^2, as
 * simd_sum_squares() adds. n <= SIMD_CALL_MAX. */
struct simd_powers
{
    bool random;
    uint64_t key;
    size_t first;
    float factor, shift;
    unsigned top; /* Set to the highest exponent byte. */
};
double simd_power_put(struct simd_powers *p, uint8_t *restrict dst, const float *restrict v,
                      size_t n);

/* y += the power of each exponent byte, times factor and with its sign: of byte 0, that is 0. */
void simd_power_add(float *restrict y, const uint8_t *restrict exponent,
                    const uint8_t *restrict sign, size_t n, float factor);

/* Sum of n <= SIMD_CALL_MAX squares, to 4e-6 of it. Lanes add up floats, four at a time,
 *
 *   lane += (square[i] + square[i + 16]) + (square[i + 32] + square[i + 48])
 *
 * while there are 64 left, then one; they are folded in double. */
double simd_sum_squares(const float *square, size_t n);

/* u[i] is number first + i of a stream, uniform in [0, 1): 24 bits, of half a
 * word of nn/math/rng.h each. first is even. */
void simd_coin(float *u, uint64_t key, size_t first, size_t n);

/* Levels of a grid: a = v * first * second is rounded to nearest even if u is
 * NULL; otherwise |a|, at most `levels`, is rounded up where u < its fraction.
 * q gets the levels with their signs; the sign of a zero is not said.
 * n <= SIMD_CALL_MAX. */
struct simd_grid
{
    float first;
    float second; /* 1 is fastest. */
    float levels;
};
struct simd_levels
{
    float aq, q2; /* Sums of a * q and q * q. */
};
struct simd_levels simd_round(const struct simd_grid *g, float *restrict q, const float *restrict v,
                              const float *restrict u, size_t n);

/* Codes of levels q: |q| and, above it at bit `bits` - 1, whether q < 0.
 * Returns the sum of ((v - scale * q) * shift)^2. n <= SIMD_CALL_MAX. */
struct simd_coder
{
    float scale;
    float shift; /* A power of two; 1 is fastest. */
    unsigned bits;
};
float simd_code(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                const float *restrict v, size_t n);

/* y[i] += value[i-th nibble of src], low nibble first. */
void simd_nibble_add(float *restrict y, const uint8_t *restrict src, size_t n,
                     const float value[16]);

/* Values whose bits without the sign are t >= 1 or more, and their positions,
 * appended in order; room for SIMD_LANES more than there are. */
struct simd_scan
{
    uint32_t t;
    float *value;
    uint32_t *index;
    size_t found;
    double rest2; /* Squares of the others are added. */
};

/* Scan x - x_hat, whose positions are first, first + 1, ... Returns the bits of the largest
 * magnitude, as simd_load() does. */
uint32_t simd_scan(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                   size_t n, uint32_t first);

/* Scan values that have positions of their own. */
void simd_filter(struct simd_scan *s, const float *restrict value, const uint32_t *restrict index,
                 size_t n);

#endif
