/* compress/simd/avx512_levels.c -- AVX-512 kernels for random numbers and rounding to grid levels.
 */
#include "compress/simd/avx512.h"

#if SIMD_X86

/* ---- Kernels that round values to levels and write their codes ---- */

/* Returns sixteen random numbers in [0, 1) from eight random words. The two halves of a word are
 * already in adjacent lanes. */
STEP __m512 coins(__m512i word)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(word, 8)), _mm512_set1_ps(0x1p-24f));
}

AVX512 static void coin_avx512(float *u, uint64_t key, size_t first, size_t n)
{
    __m512i keys = keys_from(key, first);
    __m512i on = eight_of(8 * RNG_STEP);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES) {
        put(u + i, ALL, coins(mix(keys)));
        keys = _mm512_add_epi64(keys, on);
    }
    if (i < n)
        put(u + i, tail(n - i), coins(mix(keys)));
}

/* Parameters of simd_round() in registers, and its sums in sixteen lanes. */
struct rounding
{
    struct shifting to_grid;
    __m512 levels, aq, q2;
};

/* Rounds to the nearest integer, ties to even. ref.c does the same by adding and subtracting 1.5 *
 * 2^23. */
STEP __m512 level_near(__m512 a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Rounds a >= 0 up if the random number u is below the fraction of a, otherwise down. */
STEP __m512 level_random(__m512 a, __m512 u)
{
    __m512 low = _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask16 up = _mm512_cmp_ps_mask(u, _mm512_sub_ps(a, low), _CMP_LT_OQ);
    return _mm512_mask_add_ps(low, up, low, _mm512_set1_ps(1.0f));
}

/* Returns `a`, which is not negative, with the sign of v. One logical instruction with three
 * operands computes it. */
STEP __m512 with_sign_of(__m512 a, __m512 v)
{
    __m512i top = _mm512_set1_epi32((int)0x80000000u);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        /* The logical instruction takes its truth table as a constant: 0xf8 means a | (v & top),
         * where `top` is the mask of the sign bit. */
        _mm512_castps_si512(a), _mm512_castps_si512(v), top, 0xf8));
}

/* Rounds up to sixteen elements to levels. Random rounding works on the magnitude of a and gives a
 * magnitude q. The sum of a * q is computed from the magnitudes, because the product does not
 * change if both signs change. */
STEP void round_step(struct rounding *r, float *q, const float *v, const float *u, __mmask16 m)
{
    __m512 a = shifted(&r->to_grid, get(v, m));
    __m512 level;
    if (u == NULL) {
        level = level_near(a);
        put(q, m, level);
    } else {
        __m512 b = _mm512_min_ps(abs_of(a), r->levels);
        level = level_random(b, get(u, m));
        put(q, m, with_sign_of(level, a));
        a = b;
    }
    r->aq = _mm512_add_ps(r->aq, _mm512_mul_ps(a, level));
    r->q2 = _mm512_add_ps(r->q2, _mm512_mul_ps(level, level));
}

/* Lanes outside the mask are zero and stay zero: a lane is rounded up only if the random number is
 * below its fraction, and no random number is below 0. */
AVX512 static struct simd_levels round_avx512(const struct simd_grid *g, float *restrict q,
                                              const float *restrict v, const float *restrict u,
                                              size_t n)
{
    struct rounding r = {shift_by(g->first, g->second), _mm512_set1_ps(g->levels),
                         _mm512_setzero_ps(), _mm512_setzero_ps()};
    size_t i = 0;
    if (u == NULL)
        for (; i + SIMD_LANES <= n; i += SIMD_LANES)
            round_step(&r, q + i, v + i, NULL, ALL);
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        round_step(&r, q + i, v + i, u + i, ALL);
    if (i < n)
        round_step(&r, q + i, v + i, u != NULL ? u + i : NULL, tail(n - i));
    return (struct simd_levels){sum_lanes_float(r.aq), sum_lanes_float(r.q2)};
}

/* Parameters of simd_code() in registers. `sign` is the sign bit of a code. e2 sums the squared
 * errors in sixteen lanes. */
struct coding
{
    __m512 scale;
    struct shifting shift; /* Factor by which errors are multiplied before they are squared. */
    __m512i sign;
    __m512 e2;
};

/* Writes one code for each lane in the mask m. Adds the squared errors to c->e2. */
STEP void code_step(struct coding *c, uint16_t *code, const float *q, const float *v, __mmask16 m)
{
    __m512 level = get(q, m);
    __m512i k = _mm512_cvttps_epi32(level);
    /* The code of a negative level k is the sign bit, `sign`, plus |k|, which equals sign - k. */
    k = _mm512_mask_sub_epi32(k, _mm512_movepi32_mask(k), c->sign, k);
    put_halves(code, m, _mm512_cvtepi32_epi16(k));
    __m512 d = _mm512_sub_ps(get(v, m), _mm512_mul_ps(c->scale, level));
    if (c->shift.twice)
        d = _mm512_mul_ps(d, c->shift.second);
    c->e2 = _mm512_add_ps(c->e2, _mm512_mul_ps(d, d));
}

AVX512 static float code_avx512(const struct simd_coder *c, uint16_t *restrict code,
                                const float *restrict q, const float *restrict v, size_t n)
{
    struct coding g = {_mm512_set1_ps(c->scale), shift_by(1.0f, c->shift),
                       _mm512_set1_epi32((int)(1u << (c->bits - 1))), _mm512_setzero_ps()};
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        code_step(&g, code + i, q + i, v + i, ALL);
    if (i < n)
        code_step(&g, code + i, q + i, v + i, tail(n - i));
    return sum_lanes_float(g.e2);
}

/* Decodes up to sixteen 4-bit codes and adds them to y. One instruction looks up all sixteen
 * values. */
STEP void nibble_step(float *y, __m128i eight, __m512 values, __mmask16 m)
{
    /* Expands each byte 0xab to the two bytes 0x0b and 0x0a, one code per byte. */
    __m128i k = _mm_cvtepu8_epi16(eight);
    k = _mm_and_si128(_mm_or_si128(k, _mm_slli_epi16(k, 4)), _mm_set1_epi16(0x0f0f));
    __m512 v = _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(k), values);
    put(y, m, _mm512_add_ps(get(y, m), v));
}

AVX512 static void nibble_add_avx512(float *restrict y, const uint8_t *restrict src, size_t n,
                                     const float value[16])
{
    __m512 values = _mm512_loadu_ps(value);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        nibble_step(y + i, _mm_loadl_epi64((const void *)(src + i / 2)), values, ALL);
    if (i < n) {
        uint8_t last[16] = {0};
        memcpy(last, src + i / 2, (n - i + 1) / 2);
        nibble_step(y + i, _mm_loadl_epi64((const void *)last), values, tail(n - i));
    }
}

const struct simd_levels_table simd_avx512_levels = {
    .coin = coin_avx512,
    .round = round_avx512,
    .code = code_avx512,
    .nibble_add = nibble_add_avx512,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx512_levels_none;

#endif
