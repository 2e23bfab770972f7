/* nn/math/vec_math.h -- exp, tanh and sigmoid of floats, written so that compilers vectorise them.
 *
 * A loop over one of these functions in a VEC_CLONES function becomes vector code, because the
 * functions have no branches and no tables, only selects. Each function states its error in units
 * in the last place (ulp) of the true value; a test checks all exponents. All clones give the same
 * bits. NaN gives NaN, infinities give the limits.
 *
 * Method: x = k ln 2 + r with |r| <= ln 2 / 2, and
 *
 *   e^r - 1 = r + r^2 P(r)   P of degree 4, minimax: error 1.4e-8 of the result
 *   e^x     = 2^k e^r        k is added to the exponent bits
 */
#ifndef NN_MATH_VEC_MATH_H
#define NN_MATH_VEC_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t vec_math_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float vec_math_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns yes ? a : b. Works on the bits of the floats. gcc turns this into vector code even if the
 * instruction set has no instruction that selects lanes. */
static inline float vec_math_select(bool yes, float a, float b)
{
    uint32_t mask = 0u - (uint32_t)yes;
    return vec_math_float((vec_math_bits(a) & mask) | (vec_math_bits(b) & ~mask));
}

/* Returns e^r - 1, where x = k ln 2 + r, and sets *power = k << 23, which the caller adds to the
 * bits of a float. Valid for |x| < 2^20; the result is arbitrary beyond. Adding 1.5 * 2^23 rounds a
 * float to an integer, which is then in the low bits of the sum. ln 2 is split into two constants.
 * The first constant has 16 bits, so that its product with k is exact. */
static inline float vec_math_expm1(float x, uint32_t *power)
{
    const float shift = 0x1.8p23f;
    float s = x * 0x1.715476p+0f + shift, k = s - shift;
    float r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    *power = vec_math_bits(s) << 23;
    float p = 0x1.6b8cbep-10f;
    p = p * r + 0x1.1226a6p-7f;
    p = p * r + 0x1.555702p-5f;
    p = p * r + 0x1.5554b2p-3f;
    p = p * r + 0x1.fffffep-2f;
    return r + (r * r) * p;
}

/* Returns e^x within 2 ulp. 0 below -87.33, infinite above 88.72. */
static inline float vec_exp(float x)
{
    uint32_t power;
    float e = 1.0f + vec_math_expm1(x, &power);
    float y = vec_math_float(vec_math_bits(e) + power);
    /* A result that would be subnormal becomes 0. */
    y = vec_math_select(x >= -0x1.5d51ecp+6f, y, 0.0f);
    /* The comparison with NaN is false, so the result is x + INFINITY, which is NaN. */
    return vec_math_select(x <= 0x1.62e42ep+6f, y, x + INFINITY);
}

/* Returns tanh x within 3 ulp, also for tiny x. Computes t / (t + 2), where t = e^2|x| - 1 = 2^k
 * (e^r - 1) + (2^k - 1). For |x| >= 10 the result is 1 or -1. */
static inline float vec_tanh(float x)
{
    float a = vec_math_float(vec_math_bits(x) & 0x7fffffffu);
    a = vec_math_select(a > 10.0f, 10.0f, a);
    uint32_t power;
    float e = vec_math_expm1(a + a, &power);
    float scale = vec_math_float(0x3f800000u + power);
    float t = scale * e + (scale - 1.0f);
    uint32_t y = vec_math_bits(t / (t + 2.0f)) & 0x7fffffffu;
    return vec_math_float(y | (vec_math_bits(x) & 0x80000000u));
}

/* Returns 1 / (1 + e^-x) within 3 ulp. 0 below -88.72. */
static inline float vec_sigmoid(float x)
{
    return 1.0f / (1.0f + vec_exp(-x));
}

#endif
