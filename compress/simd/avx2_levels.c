/* compress/simd/avx2_levels.c -- AVX2 kernels for random numbers and for rounding to grid levels.
 */
#include "compress/simd/avx2.h"

#if SIMD_X86

/* ---- Kernels that round values to levels and write their codes ---- */

/* The loop is plain C, because AVX2 has no 64-bit multiplication. The compiler builds one from
 * 32-bit multiplications. */
AVX2 static void coin_avx2(float *u, uint64_t key, size_t first, size_t n)
{
    simd_coins(u, key, first, n);
}

/* Parameters of simd_round() in registers, and its sums in sixteen lanes. */
struct rounding
{
    __m256 first, second, levels;
    __m256 aq[2], q2[2];
};

/* Rounds to the nearest integer, ties to even. ref.c does the same by adding and subtracting 1.5 *
 * 2^23. */
STEP __m256 level_near(__m256 a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Rounds a >= 0 up if the random number u is below the fraction of a, otherwise down. */
STEP __m256 level_random(__m256 a, __m256 u)
{
    __m256 low = _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __m256 up = _mm256_cmp_ps(u, _mm256_sub_ps(a, low), _CMP_LT_OQ);
    return _mm256_add_ps(low, _mm256_and_ps(up, _mm256_set1_ps(1.0f)));
}

/* Returns `a`, which is not negative, with the sign of v. */
STEP __m256 with_sign_of(__m256 a, __m256 v)
{
    return _mm256_or_ps(a, _mm256_and_ps(v, _mm256_set1_ps(-0.0f)));
}

/* Rounds sixteen elements to levels. Random rounding works on the magnitude of a and gives a
 * magnitude q. The sum of a * q is computed from the magnitudes, because the product does not
 * change if both signs change. */
STEP void round_step(struct rounding *r, float *q, const float *v, const float *u)
{
    for (int h = 0; h < 2; h++) {
        int at = h * HALF;
        __m256 a = _mm256_mul_ps(_mm256_loadu_ps(v + at), r->first);
        a = _mm256_mul_ps(a, r->second);
        __m256 level;
        if (u == NULL) {
            level = level_near(a);
            _mm256_storeu_ps(q + at, level);
        } else {
            __m256 b = _mm256_min_ps(abs_of(a), r->levels);
            level = level_random(b, _mm256_loadu_ps(u + at));
            _mm256_storeu_ps(q + at, with_sign_of(level, a));
            a = b;
        }
        r->aq[h] = _mm256_add_ps(r->aq[h], _mm256_mul_ps(a, level));
        r->q2[h] = _mm256_add_ps(r->q2[h], _mm256_mul_ps(level, level));
    }
}

/* Rounding to nearest and random rounding have separate loops, so that the choice is not tested in
 * every step. */
AVX2 static struct simd_levels round_avx2(const struct simd_grid *g, float *restrict q,
                                          const float *restrict v, const float *restrict u,
                                          size_t n)
{
    __m256 zero = _mm256_setzero_ps();
    struct rounding r = {_mm256_set1_ps(g->first),
                         _mm256_set1_ps(g->second),
                         _mm256_set1_ps(g->levels),
                         {zero, zero},
                         {zero, zero}};
    size_t i = 0;
    if (u == NULL)
        for (; i + SIMD_LANES <= n; i += SIMD_LANES)
            round_step(&r, q + i, v + i, NULL);
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        round_step(&r, q + i, v + i, u + i);
    if (i < n) {
        float p[3][SIMD_LANES];
        pad(p[0], v + i, n - i);
        if (u != NULL)
            pad(p[1], u + i, n - i);
        round_step(&r, p[2], p[0], u != NULL ? p[1] : NULL);
        memcpy(q + i, p[2], (n - i) * sizeof *q);
    }
    return (struct simd_levels){sum_lanes_float(r.aq), sum_lanes_float(r.q2)};
}

/* Parameters of simd_code() in registers. `sign` is the sign bit of a code. e2 sums the squared
 * errors in sixteen lanes. */
struct coding
{
    __m256 scale, shift;
    __m256i sign;
    __m256 e2[2];
};

/* Returns the codes of eight levels as 32-bit integers, and adds their squared errors to c->e2. h
 * selects the first or second half of sixteen elements. */
STEP __m256i code_half(struct coding *c, const float *q, const float *v, int h)
{
    __m256 level = _mm256_loadu_ps(q + h * HALF);
    __m256i k = _mm256_cvttps_epi32(level);
    __m256i minus = _mm256_srai_epi32(k, 31);
    __m256 d = _mm256_sub_ps(_mm256_loadu_ps(v + h * HALF), _mm256_mul_ps(c->scale, level));
    d = _mm256_mul_ps(d, c->shift);
    c->e2[h] = _mm256_add_ps(c->e2[h], _mm256_mul_ps(d, d));
    return _mm256_or_si256(_mm256_abs_epi32(k), _mm256_and_si256(minus, c->sign));
}

/* Writes sixteen codes as 16-bit integers. The pack instruction works on each half of a register
 * separately. The permutation restores the order. */
STEP void code_step(struct coding *c, uint16_t *code, const float *q, const float *v)
{
    __m256i low = code_half(c, q, v, 0);
    __m256i high = code_half(c, q, v, 1);
    __m256i both = _mm256_packus_epi32(low, high);
    _mm256_storeu_si256((__m256i *)(void *)code, _mm256_permute4x64_epi64(both, 0xd8));
}

AVX2 static float code_avx2(const struct simd_coder *c, uint16_t *restrict code,
                            const float *restrict q, const float *restrict v, size_t n)
{
    struct coding g = {_mm256_set1_ps(c->scale),
                       _mm256_set1_ps(c->shift),
                       _mm256_set1_epi32((int)(1u << (c->bits - 1))),
                       {_mm256_setzero_ps(), _mm256_setzero_ps()}};
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        code_step(&g, code + i, q + i, v + i);
    if (i < n) {
        float p[2][SIMD_LANES];
        uint16_t codes[SIMD_LANES];
        pad(p[0], q + i, n - i);
        pad(p[1], v + i, n - i);
        code_step(&g, codes, p[0], p[1]);
        memcpy(code + i, codes, (n - i) * sizeof *code);
    }
    return sum_lanes_float(g.e2);
}

/* Decodes eight 4-bit codes and adds them to y. One instruction looks up one of eight values with
 * the low three bits of a code. Bit 3 of the code selects one of two such tables. */
STEP void nibble_step(float *y, uint32_t eight, const __m256 values[2])
{
    __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i k = _mm256_srlv_epi32(_mm256_set1_epi32((int)eight), shifts);
    __m256 bit3 = _mm256_castsi256_ps(_mm256_slli_epi32(k, 28));
    __m256 v = _mm256_blendv_ps(_mm256_permutevar8x32_ps(values[0], k),
                                _mm256_permutevar8x32_ps(values[1], k), bit3);
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), v));
}

/* Each step decodes four bytes, which contain eight codes. */
AVX2 static void nibble_add_avx2(float *restrict y, const uint8_t *restrict src, size_t n,
                                 const float value[16])
{
    __m256 values[2] = {_mm256_loadu_ps(value), _mm256_loadu_ps(value + HALF)};
    size_t i = 0;
    for (; i + HALF <= n; i += HALF)
        nibble_step(y + i, bytes_get_u32(src + i / 2), values);
    if (i < n) {
        float p[SIMD_LANES];
        uint8_t last[4] = {0};
        pad(p, y + i, n - i);
        memcpy(last, src + i / 2, (n - i + 1) / 2);
        nibble_step(p, bytes_get_u32(last), values);
        memcpy(y + i, p, (n - i) * sizeof *y);
    }
}

const struct simd_levels_table simd_avx2_levels = {
    .coin = coin_avx2,
    .round = round_avx2,
    .code = code_avx2,
    .nibble_add = nibble_add_avx2,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx2_levels_none;

#endif
