/* compress/simd/avx512.h -- helper functions that all AVX-512 kernels share.
 *
 * A step of a kernel handles sixteen floats in one register. The last elements of a vector are
 * handled by a step with a lane mask. Each step is inlined twice, with the constant mask ALL and
 * with another mask. With ALL the compiler removes the masking. The square of a float is exact in a
 * double, so fused multiply-add of doubles gives the same bits as ref.c.
 */
#ifndef COMPRESS_SIMD_AVX512_H
#define COMPRESS_SIMD_AVX512_H

#include "compress/simd/table.h"

#include "nn/math/rng.h"

#if SIMD_X86

#include <immintrin.h>

#ifndef __OPTIMIZE__
/* Without optimisation the intrinsics of gcc are macros with casts that cause warnings in this
 * file. */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))
/* Attributes of a function that is always inlined into kernels. */
#define STEP AVX512 __attribute__((always_inline)) static inline

enum { ALL = 0xffff }; /* Mask of all sixteen lanes. */

/* Constants of the generator SplitMix64, as in rng_at() (nn/math/rng.h): the increment and two
 * multipliers. */
#define RNG_STEP  UINT64_C(0x9e3779b97f4a7c15)
#define RNG_MIX_1 UINT64_C(0xbf58476d1ce4e5b9)
#define RNG_MIX_2 UINT64_C(0x94d049bb133111eb)

/* Returns the lane mask of the last n < 16 elements. */
static inline __mmask16 tail(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

/* Loads the floats in the lanes of the mask m. All other lanes are zero. With the constant mask ALL
 * this is a plain load. */
STEP __m512 get(const float *p, __mmask16 m)
{
    return m == ALL ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(m, p);
}

/* Stores the floats in the lanes of the mask m. Memory of all other lanes does not change. */
STEP void put(float *p, __mmask16 m, __m512 v)
{
    if (m == ALL)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, m, v);
}

/* Loads up to sixteen 16-bit numbers (binary16 values or codes), those in the lanes of the mask
 * m. */
STEP __m256i get_halves(const void *p, __mmask16 m)
{
    return m == ALL ? _mm256_loadu_si256(p) : _mm256_maskz_loadu_epi16(m, p);
}

/* Stores up to sixteen 16-bit numbers, those in the lanes of the mask m. */
STEP void put_halves(void *p, __mmask16 m, __m256i v)
{
    if (m == ALL)
        _mm256_storeu_si256(p, v);
    else
        _mm256_mask_storeu_epi16(p, m, v);
}

/* Loads up to sixteen bytes, those in the lanes of the mask m. */
STEP __m128i get_bytes(const void *p, __mmask16 m)
{
    return m == ALL ? _mm_loadu_si128(p) : _mm_maskz_loadu_epi8(m, p);
}

/* Stores up to sixteen bytes, those in the lanes of the mask m. */
STEP void put_bytes(void *p, __mmask16 m, __m128i v)
{
    if (m == ALL)
        _mm_storeu_si128(p, v);
    else
        _mm_mask_storeu_epi8(p, m, v);
}

/* Writes one bit per lane of the mask m: two bytes, or one byte if only lanes 0 to 7 are in m. */
STEP void put_bits(uint8_t *dst, __mmask16 m, __mmask16 bits)
{
    dst[0] = (uint8_t)bits;
    if (m > 0xff)
        dst[1] = (uint8_t)(bits >> 8);
}

/* Returns the number of lanes in a mask. gcc 12 may spill a 16-bit mask to memory and read 32 bits
 * back. The upper bits are therefore cleared in a way that the compiler cannot optimise away. */
STEP size_t count_lanes(__mmask16 m)
{
    unsigned bits = m;
    __asm__("" : "+r"(bits));
    return (size_t)__builtin_popcount(bits & ALL);
}

/* Returns the absolute values of all lanes, by clearing their sign bits. */
STEP __m512 abs_of(__m512 v)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)));
}

/* Returns the lower eight floats as doubles, because squares are summed in double. */
STEP __m512d low_half(__m512 v)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}

/* Returns the upper eight floats as doubles, because squares are summed in double. */
STEP __m512d high_half(__m512 v)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}

/* Returns the sum of sixteen lanes of doubles (two registers), in the order of ref.c: the upper
 * half of the lanes is added to the lower half until one lane is left. */
STEP double sum_lanes(const __m512d l[2])
{
    __m512d l8 = _mm512_add_pd(l[0], l[1]);
    __m256d l4 = _mm256_add_pd(_mm512_castpd512_pd256(l8), _mm512_extractf64x4_pd(l8, 1));
    __m128d l2 = _mm_add_pd(_mm256_castpd256_pd128(l4), _mm256_extractf128_pd(l4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(l2, _mm_unpackhi_pd(l2, l2)));
}

/* Returns the sum of sixteen lanes of floats, in the order of ref.c. */
STEP float sum_lanes_float(__m512 l)
{
    __m256 l8 = _mm256_add_ps(_mm512_castps512_ps256(l), _mm512_extractf32x8_ps(l, 1));
    __m128 l4 = _mm_add_ps(_mm256_castps256_ps128(l8), _mm256_extractf128_ps(l8, 1));
    __m128 l2 = _mm_add_ps(l4, _mm_movehl_ps(l4, l4));
    return _mm_cvtss_f32(_mm_add_ss(l2, _mm_movehdup_ps(l2)));
}

/* Returns the sum of sixteen lanes of floats, added as doubles in the order of ref.c. */
STEP double sum_lanes_wide(__m512 l)
{
    __m512d wide[2] = {low_half(l), high_half(l)};
    return sum_lanes(wide);
}

/* Returns the elements of x - x_hat from index i on, in the lanes of the mask m. x_hat may be NULL
 * (zeros). Adding 0 turns -0 into +0. */
STEP __m512 difference(const float *x, const float *x_hat, size_t i, __mmask16 m)
{
    __m512 h = x_hat != NULL ? get(x_hat + i, m) : _mm512_setzero_ps();
    return _mm512_add_ps(_mm512_sub_ps(get(x + i, m), h), _mm512_setzero_ps());
}

/* Two factors by which floats are multiplied. If the second factor is 1, it is skipped (`twice` is
 * false), which does not change the result. The compiler makes one loop for each value of
 * `twice`. */
struct shifting
{
    __m512 first, second;
    bool twice;
};

STEP struct shifting shift_by(float first, float second)
{
    return (struct shifting){_mm512_set1_ps(first), _mm512_set1_ps(second), second != 1.0f};
}

/* Multiplies the floats in f by the two factors in `s`, one after the other as in ref.c. */
STEP __m512 shifted(const struct shifting *s, __m512 f)
{
    f = _mm512_mul_ps(f, s->first);
    return s->twice ? _mm512_mul_ps(f, s->second) : f;
}

/* Returns a register with eight copies of a 64-bit number. */
STEP __m512i eight_of(uint64_t word)
{
    return _mm512_set1_epi64((long long)word);
}

/* Returns eight random words from eight states of the generator SplitMix64 that have already been
 * incremented. Gives the same words as rng_at(). */
STEP __m512i mix(__m512i z)
{
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 30));
    z = _mm512_mullo_epi64(z, eight_of(RNG_MIX_1));
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 27));
    z = _mm512_mullo_epi64(z, eight_of(RNG_MIX_2));
    return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

/* Returns the eight states for mix() that give the random numbers of elements first to first + 15
 * of a stream. Word number i of a key has the state key + (i + 1) * RNG_STEP, and each word gives
 * two numbers. */
STEP __m512i keys_from(uint64_t key, size_t first)
{
    __m512i steps =
        _mm512_mullo_epi64(_mm512_setr_epi64(1, 2, 3, 4, 5, 6, 7, 8), eight_of(RNG_STEP));
    return _mm512_add_epi64(eight_of(key + first / 2 * RNG_STEP), steps);
}

#endif

#endif
