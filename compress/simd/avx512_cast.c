/* compress/simd/avx512_cast.c -- AVX-512 kernels for binary16, int8 and powers of two. */
#include "compress/simd/avx512.h"

#if SIMD_X86

/* ---- Kernels of 16-bit floats (binary16) ---- */

/* Writes up to sixteen floats as binary16. -0 is written as 0. Returns the old sum of squared
 * errors, e2, plus the new ones. */
STEP __m512 half_step(uint8_t *dst, __m512 f, __m512 e2, __mmask16 m)
{
    __m256i half = _mm512_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT);
    __mmask16 nonzero = _mm256_cmpneq_epi16_mask(half, _mm256_set1_epi16((short)0x8000));
    __m512 d = _mm512_sub_ps(f, _mm512_cvtph_ps(half));
    put_halves(dst, m, _mm256_maskz_mov_epi16(nonzero, half));
    return _mm512_add_ps(e2, _mm512_mul_ps(d, d));
}

AVX512 static float half_put_avx512(uint8_t *restrict dst, const float *restrict v, size_t n,
                                    float first, float second)
{
    struct shifting s = shift_by(first, second);
    __m512 e2 = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        e2 = half_step(dst + 2 * i, shifted(&s, get(v + i, ALL)), e2, ALL);
    if (i < n) {
        __mmask16 m = tail(n - i);
        e2 = half_step(dst + 2 * i, shifted(&s, get(v + i, m)), e2, m);
    }
    return sum_lanes_float(e2);
}

/* Decodes up to sixteen binary16 values, multiplies them by both factors and adds them to y. */
STEP void half_back(float *y, const uint8_t *src, const struct shifting *s, __mmask16 m)
{
    __m512 f = shifted(s, _mm512_cvtph_ps(get_halves(src, m)));
    put(y, m, _mm512_add_ps(get(y, m), f));
}

AVX512 static void half_add_avx512(float *restrict y, const uint8_t *restrict src, size_t n,
                                   float first, float second)
{
    struct shifting s = shift_by(first, second);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        half_back(y + i, src + 2 * i, &s, ALL);
    if (i < n)
        half_back(y + i, src + 2 * i, &s, tail(n - i));
}

/* ---- Sums of squares ---- */

/* Adds four squares to each lane. The squares are first added to each other in pairs, so that the
 * chain of additions that depend on each other is a quarter as long. */
STEP __m512 add_four(__m512 sum, const __m512 s[4])
{
    __m512 four = _mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3]));
    return _mm512_add_ps(sum, four);
}

AVX512 static double sum_squares_avx512(const float *square, size_t n)
{
    __m512 sum = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES) {
        __m512 s[4];
        for (size_t k = 0; k < 4; k++)
            s[k] = get(square + i + k * SIMD_LANES, ALL);
        sum = add_four(sum, s);
    }
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sum = _mm512_add_ps(sum, get(square + i, ALL));
    if (i < n)
        sum = _mm512_add_ps(sum, get(square + i, tail(n - i)));
    return sum_lanes_wide(sum);
}

/* ---- Kernel of the codec int8 ---- */

/* Parameters of simd_byte_put() in registers, and the constant that is added to a float to round it
 * (ROUND_BIAS in ref.c). */
struct byting
{
    __m512 shift, inv, step, bias;
};

/* Writes up to sixteen values as bytes (codes of int8). Adding `bias` to a product rounds it, and
 * the low byte of the sum is the code. Returns the squared errors. */
STEP __m512 byte_step(const struct byting *g, uint8_t *code, const float *v, __mmask16 m)
{
    __m512 a = _mm512_mul_ps(get(v, m), g->shift);
    __m512 biased = _mm512_add_ps(_mm512_mul_ps(a, g->inv), g->bias);
    put_bytes(code, m, _mm512_cvtepi32_epi8(_mm512_castps_si512(biased)));
    __m512 q = _mm512_sub_ps(biased, g->bias);
    __m512 d = _mm512_sub_ps(a, _mm512_mul_ps(q, g->step));
    return _mm512_mul_ps(d, d);
}

AVX512 static double byte_put_avx512(const struct simd_bytes *grid, uint8_t *restrict code,
                                     const float *restrict v, size_t n)
{
    struct byting g = {_mm512_set1_ps(grid->shift), _mm512_set1_ps(grid->inv),
                       _mm512_set1_ps(grid->step), _mm512_set1_ps(0x1.8p23f)};
    __m512 sum = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES) {
        __m512 s[4];
        for (size_t k = 0; k < 4; k++)
            s[k] = byte_step(&g, code + i + k * SIMD_LANES, v + i + k * SIMD_LANES, ALL);
        sum = add_four(sum, s);
    }
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sum = _mm512_add_ps(sum, byte_step(&g, code + i, v + i, ALL));
    if (i < n)
        sum = _mm512_add_ps(sum, byte_step(&g, code + i, v + i, tail(n - i)));
    return sum_lanes_wide(sum);
}

/* ---- Kernels of the codec nat: powers of two ---- */

enum { MANTISSA = 23 };

/* Parameters and state of simd_power_put() in registers. */
struct powering
{
    /* States of the random generator, from which mix() computes the random bits of the next sixteen
     * elements. */
    __m512i keys;
    __m512 factor, shift;
    __m128i top; /* Largest exponent byte that each lane has written so far. */
};

/* Rounds up to sixteen values to powers of two: writes their exponent bytes and sign bits. `random`
 * is a constant wherever this function is inlined, so testing it costs nothing. Returns the squared
 * errors. */
STEP __m512 power_step(struct powering *p, uint8_t *exponent, uint8_t *sign, const float *v,
                       bool random, __mmask16 m)
{
    __m512 f = get(v, m);
    __m512 a = abs_of(f);
    __m512i bits = _mm512_castps_si512(a);
    __m512i below = _mm512_set1_epi32(1 << (MANTISSA - 1));
    if (random) {
        below = _mm512_srli_epi32(mix(p->keys), 32 - MANTISSA);
        p->keys = _mm512_add_epi64(p->keys, eight_of(8 * RNG_STEP));
    }
    __mmask16 normal = _mm512_cmpge_epu32_mask(bits, _mm512_set1_epi32(1 << MANTISSA));
    __m512i e = _mm512_maskz_srli_epi32(normal, _mm512_add_epi32(bits, below), MANTISSA);
    __m128i bytes = _mm512_cvtepi32_epi8(e);
    put_bytes(exponent, m, bytes);
    put_bits(sign, m,
             _mm512_mask_cmplt_epi32_mask(normal, _mm512_castps_si512(f), _mm512_setzero_si512()));
    p->top = _mm_max_epu8(p->top, bytes);
    __m512 power = _mm512_castsi512_ps(_mm512_slli_epi32(e, MANTISSA));
    __m512 d = _mm512_sub_ps(a, _mm512_mul_ps(power, p->factor));
    d = _mm512_mul_ps(d, p->shift);
    return _mm512_mul_ps(d, d);
}

/* Rounds all elements. This function is inlined once for random rounding and once for rounding to
 * nearest. */
STEP double power_all(struct simd_powers *to, uint8_t *dst, const float *v, size_t n, bool random)
{
    struct powering p = {keys_from(to->key, to->first), _mm512_set1_ps(to->factor),
                         _mm512_set1_ps(to->shift), _mm_setzero_si128()};
    __m512 sum = _mm512_setzero_ps();
    uint8_t *sign = dst + n;
    size_t i = 0;
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES) {
        __m512 s[4];
        for (size_t k = 0, at = i; k < 4; k++, at += SIMD_LANES)
            s[k] = power_step(&p, dst + at, sign + at / 8, v + at, random, ALL);
        sum = add_four(sum, s);
    }
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sum = _mm512_add_ps(sum, power_step(&p, dst + i, sign + i / 8, v + i, random, ALL));
    if (i < n)
        sum = _mm512_add_ps(sum, power_step(&p, dst + i, sign + i / 8, v + i, random, tail(n - i)));
    to->top = (unsigned)_mm512_reduce_max_epu32(_mm512_cvtepu8_epi32(p.top));
    return sum_lanes_wide(sum);
}

AVX512 static double power_put_avx512(struct simd_powers *p, uint8_t *restrict dst,
                                      const float *restrict v, size_t n)
{
    return p->random ? power_all(p, dst, v, n, true) : power_all(p, dst, v, n, false);
}

/* Decodes up to sixteen values and adds them to y. `bits` holds their sign bits. */
STEP void power_back(float *y, const uint8_t *exponent, unsigned bits, __m512 factor, __mmask16 m)
{
    __m512i e = _mm512_cvtepu8_epi32(get_bytes(exponent, m));
    __m512 v = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(e, MANTISSA)), factor);
    v = _mm512_mask_xor_ps(v, (__mmask16)bits, v, _mm512_set1_ps(-0.0f));
    put(y, m, _mm512_add_ps(get(y, m), v));
}

AVX512 static void power_add_avx512(float *restrict y, const uint8_t *restrict exponent,
                                    const uint8_t *restrict sign, size_t n, float factor)
{
    __m512 f = _mm512_set1_ps(factor);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        power_back(y + i, exponent + i, bytes_get_u16(sign + i / 8), f, ALL);
    if (i < n) {
        uint16_t bits = 0;
        memcpy(&bits, sign + i / 8, (n - i + 7) / 8);
        power_back(y + i, exponent + i, bits, f, tail(n - i));
    }
}

const struct simd_cast_table simd_avx512_cast = {
    .half_put = half_put_avx512,
    .half_add = half_add_avx512,
    .byte_put = byte_put_avx512,
    .power_put = power_put_avx512,
    .power_add = power_add_avx512,
    .sum_squares = sum_squares_avx512,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx512_cast_none;

#endif
