/* nn/math/half.c -- converts between float32 and the 16-bit formats float16 and bfloat16. */
#include "nn/math/half.h"

#include <string.h>

/* Smallest remainders that are rounded up: 0.51 of a unit in the last place of the 16-bit
 * format. A remainder is the lower 16 bits (bfloat16) or 13 bits (float16) of the float32. */
enum { BFLOAT16_UP = 0x10000 * 51 / 100, FLOAT16_UP = 0x2000 * 51 / 100 };

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

uint16_t half_to_bfloat16(float v)
{
    uint32_t bits = bits_of(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + (0x10000u - BFLOAT16_UP)) >> 16);
}

float half_of_bfloat16(uint16_t h)
{
    return of_bits((uint32_t)h << 16);
}

/* Float16 numbers below 2^-14 are subnormal, that is multiples of 2^-24. Adding 0.5 makes the CPU
 * round to such a multiple, because floats from 0.5 to 1 have the step 2^-24. */
uint16_t half_to_float16(float v)
{
    uint32_t bits = bits_of(v), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    /* A value that would round to more than 65504, the largest float16, becomes infinite. */
    if (rest >= 0x477fe000u + FLOAT16_UP)
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u)
        return (uint16_t)(sign | (bits_of(of_bits(rest) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | ((rest + (0x2000u - FLOAT16_UP) - 0x38000000u) >> 13));
}

float half_of_float16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u)
        return of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    /* A subnormal float16 is a multiple of 2^-24, which a float represents exactly. */
    if (rest < 0x400u)
        return of_bits(sign | bits_of((float)rest * 0x1p-24f));
    return of_bits(sign | ((rest << 13) + 0x38000000u));
}

float half_rounded(enum segment_type type, float v)
{
    switch (type) {
    case SEGMENT_FLOAT32:
    case SEGMENT_OPAQUE:
        return v;
    case SEGMENT_FLOAT16:
        return half_of_float16(half_to_float16(v));
    case SEGMENT_BFLOAT16:
        return half_of_bfloat16(half_to_bfloat16(v));
    }
    return v;
}

void half_round_model(const struct segment *s, size_t n, const float *x, float *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = s[i].offset; k < s[i].offset + s[i].n; k++)
            out[k] = half_rounded(s[i].type, x[k]);
}

double half_dist2(const struct segment *s, size_t n, const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = s[i].offset; k < s[i].offset + s[i].n; k++) {
            double d =
                (double)half_rounded(s[i].type, a[k]) - (double)half_rounded(s[i].type, b[k]);
            sum += d * d;
        }
    return sum;
}

bool half_any(const struct segment *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].type == SEGMENT_FLOAT16 || s[i].type == SEGMENT_BFLOAT16)
            return true;
    return false;
}
