/* compress/simd/avx2.h -- helper functions that all AVX2 kernels share.
 *
 * A step of a kernel handles sixteen elements in two registers of eight floats. Lane j thus holds
 * the elements j, j + 16, j + 32, ..., as in ref.c, and sums are added in the same order. Fused
 * multiply-add is not used, because it rounds once where ref.c rounds twice. The last n < 16
 * elements of a vector are copied into sixteen zeros, which change no sum, and the results are
 * copied back. The copies cost next to nothing compared with a loop over a thousand elements, and
 * each step is written only once.
 */
#ifndef COMPRESS_SIMD_AVX2_H
#define COMPRESS_SIMD_AVX2_H

#include "compress/simd/table.h"

#include "nn/math/rng.h"

#if SIMD_X86

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
/* Attributes of a function that is always inlined into kernels. */
#define STEP AVX2 __attribute__((always_inline)) static inline

enum { HALF = SIMD_LANES / 2 }; /* Number of floats in a register. */

/* Copies the last n < 16 elements of a vector to to[0..n) and fills the rest with zeros. */
static inline void pad(float to[SIMD_LANES], const float *from, size_t n)
{
    memset(to, 0, SIMD_LANES * sizeof *to);
    memcpy(to, from, n * sizeof *to);
}

/* Returns the absolute values of all lanes, by clearing their sign bits. */
STEP __m256 abs_of(__m256 v)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
}

/* Returns the lower four floats as doubles, because squares are summed in double. */
STEP __m256d low_half(__m256 v)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}

/* Returns the upper four floats as doubles, because squares are summed in double. */
STEP __m256d high_half(__m256 v)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

/* Returns the sum of sixteen lanes of doubles (four registers), in the order of ref.c: the upper
 * half of the lanes is added to the lower half until one lane is left. */
STEP double sum_lanes(const __m256d l[4])
{
    __m256d l4 = _mm256_add_pd(_mm256_add_pd(l[0], l[2]), _mm256_add_pd(l[1], l[3]));
    __m128d l2 = _mm_add_pd(_mm256_castpd256_pd128(l4), _mm256_extractf128_pd(l4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(l2, _mm_unpackhi_pd(l2, l2)));
}

/* Returns the sum of sixteen lanes of floats (two registers), in the order of ref.c. */
STEP float sum_lanes_float(const __m256 l[2])
{
    __m256 l8 = _mm256_add_ps(l[0], l[1]);
    __m128 l4 = _mm_add_ps(_mm256_castps256_ps128(l8), _mm256_extractf128_ps(l8, 1));
    __m128 l2 = _mm_add_ps(l4, _mm_movehl_ps(l4, l4));
    return _mm_cvtss_f32(_mm_add_ss(l2, _mm_movehdup_ps(l2)));
}

/* Returns the sum of sixteen lanes of floats, added as doubles in the order of ref.c. */
STEP double sum_lanes_wide(const __m256 l[2])
{
    __m256d wide[4] = {low_half(l[0]), high_half(l[0]), low_half(l[1]), high_half(l[1])};
    return sum_lanes(wide);
}

/* Returns the largest of sixteen unsigned 32-bit lanes. */
STEP uint32_t top(const __m256i l[2])
{
    __m256i l8 = _mm256_max_epu32(l[0], l[1]);
    __m128i l4 = _mm_max_epu32(_mm256_castsi256_si128(l8), _mm256_extracti128_si256(l8, 1));
    __m128i l2 = _mm_max_epu32(l4, _mm_shuffle_epi32(l4, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(l2, _mm_shuffle_epi32(l2, 0xb1)));
}

/* Returns a register that has bit j of `bits` as the sign bit of lane j. All other bits are 0. */
STEP __m256 signs_of(int bits)
{
    __m256i to_top = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m256i moved = _mm256_sllv_epi32(_mm256_set1_epi32(bits), to_top);
    return _mm256_castsi256_ps(_mm256_and_si256(moved, _mm256_set1_epi32((int)0x80000000u)));
}

/* Returns the eight elements of x - x_hat from index i on. x_hat may be NULL (zeros). Adding 0
 * turns -0 into +0. */
STEP __m256 difference(const float *x, const float *x_hat, size_t i)
{
    __m256 h = x_hat != NULL ? _mm256_loadu_ps(x_hat + i) : _mm256_setzero_ps();
    return _mm256_add_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), h), _mm256_setzero_ps());
}

#endif

#endif
