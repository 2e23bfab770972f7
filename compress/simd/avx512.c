/* compress/simd/avx512.c -- the kernels, sixteen floats a register.
 *
 * A tail is a step under a mask. Steps are inlined into both places, and the
 * one with all lanes loses its masks. The square of a float is exact in a
 * double, so there a fused multiply-add rounds as the two operations do.
 */
#include "compress/simd/table.h"

#include "nn/math/rng.h"

#if SIMD_X86

#include <immintrin.h>

#ifndef __OPTIMIZE__
/* Without optimisation gcc's intrinsics are macros, and what they cast counts as written here. */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))
#define STEP   AVX512 __attribute__((always_inline)) static inline

enum { ALL = 0xffff };

/* The constants of rng_at() in nn/math/rng.h, SplitMix64: step, then two multiplications. */
#define RNG_STEP  UINT64_C(0x9e3779b97f4a7c15)
#define RNG_MIX_1 UINT64_C(0xbf58476d1ce4e5b9)
#define RNG_MIX_2 UINT64_C(0x94d049bb133111eb)

/* A mask of the lanes of the last n < 16 elements. */
static inline __mmask16 tail(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

/* Load under a mask; other lanes are zero. Where the mask is a constant ALL, this is a plain
 * load. */
STEP __m512 get(const float *p, __mmask16 m)
{
    return m == ALL ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(m, p);
}

/* Store under a mask; nothing is written in other lanes. */
STEP void put(float *p, __mmask16 m, __m512 v)
{
    if (m == ALL)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, m, v);
}

/* Up to sixteen numbers of 16 bits: halves and codes. */
STEP __m256i get_halves(const void *p, __mmask16 m)
{
    return m == ALL ? _mm256_loadu_si256(p) : _mm256_maskz_loadu_epi16(m, p);
}

STEP void put_halves(void *p, __mmask16 m, __m256i v)
{
    if (m == ALL)
        _mm256_storeu_si256(p, v);
    else
        _mm256_mask_storeu_epi16(p, m, v);
}

/* Write one bit a lane; a tail of eight lanes or less is one byte. */
STEP void put_bits(uint8_t *dst, __mmask16 m, __mmask16 bits)
{
    dst[0] = (uint8_t)bits;
    if (m > 0xff)
        dst[1] = (uint8_t)(bits >> 8);
}

/* Where gcc 12 keeps a mask in memory it stores 16 bits and takes 32 from there:
 * the upper ones are cleared where it cannot know that they are. */
STEP size_t count_lanes(__mmask16 m)
{
    unsigned bits = m;
    __asm__("" : "+r"(bits));
    return (size_t)__builtin_popcount(bits & ALL);
}

/* Clears the sign bits. */
STEP __m512 abs_of(__m512 v)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)));
}

/* The lower eight floats as doubles: squares are summed in double. */
STEP __m512d low_half(__m512 v)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}

STEP __m512d high_half(__m512 v)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}

/* Fold sixteen lanes of double, two registers, in the order of ref.c: upper half onto lower,
 * until one is left. */
STEP double sum_lanes(const __m512d l[2])
{
    __m512d l8 = _mm512_add_pd(l[0], l[1]);
    __m256d l4 = _mm256_add_pd(_mm512_castpd512_pd256(l8), _mm512_extractf64x4_pd(l8, 1));
    __m128d l2 = _mm_add_pd(_mm256_castpd256_pd128(l4), _mm256_extractf128_pd(l4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(l2, _mm_unpackhi_pd(l2, l2)));
}

/* Fold sixteen lanes of float in the same order. */
STEP float sum_lanes_float(__m512 l)
{
    __m256 l8 = _mm256_add_ps(_mm512_castps512_ps256(l), _mm512_extractf32x8_ps(l, 1));
    __m128 l4 = _mm_add_ps(_mm256_castps256_ps128(l8), _mm256_extractf128_ps(l8, 1));
    __m128 l2 = _mm_add_ps(l4, _mm_movehl_ps(l4, l4));
    return _mm_cvtss_f32(_mm_add_ss(l2, _mm_movehdup_ps(l2)));
}

/* x - x_hat of sixteen elements, with -0 made +0 by adding 0. */
STEP __m512 difference(const float *x, const float *x_hat, size_t i, __mmask16 m)
{
    __m512 h = x_hat != NULL ? get(x_hat + i, m) : _mm512_setzero_ps();
    return _mm512_add_ps(_mm512_sub_ps(get(x + i, m), h), _mm512_setzero_ps());
}

/* ---- load ---- */

/* What load_step() sums up, in registers. */
struct loading
{
    __m512d x2[2], l1[2];
    __m512i max;
};

/* Where differences go: as floats or as signs. */
struct loaded
{
    float *v;
    uint8_t *sign;
};

/* Load sixteen elements. `how` is a constant wherever this is inlined, so the tests of it cost
 * nothing. l1 stays 0 where it was not asked for. */
STEP void load_step(struct loading *l, const struct loaded *to, size_t i, __m512 d, __mmask16 m,
                    unsigned how)
{
    __m512 a = abs_of(d);
    __m512d low = low_half(a);
    __m512d high = high_half(a);
    if (to->v != NULL)
        put(to->v + i, m, d);
    if (to->sign != NULL)
        put_bits(to->sign + i / 8, m, _mm512_movepi32_mask(_mm512_castps_si512(d)));
    l->max = _mm512_max_epu32(l->max, _mm512_castps_si512(a));
    if (how & SIMD_L1) {
        l->l1[0] = _mm512_add_pd(l->l1[0], low);
        l->l1[1] = _mm512_add_pd(l->l1[1], high);
    }
    l->x2[0] = _mm512_fmadd_pd(low, low, l->x2[0]);
    l->x2[1] = _mm512_fmadd_pd(high, high, l->x2[1]);
}

/* The loop behind both kernels that load; it is inlined once for each `how`. */
STEP struct simd_sums load_all(const struct loaded *to, const float *x, const float *x_hat,
                               size_t n, unsigned how)
{
    __m512d zero = _mm512_setzero_pd();
    struct loading l = {{zero, zero}, {zero, zero}, _mm512_setzero_si512()};
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES) {
        if (how & SIMD_AHEAD) { /* A step is one cache line of each vector. */
            simd_ask(x + i);
            if (x_hat != NULL)
                simd_ask(x_hat + i);
        }
        load_step(&l, to, i, difference(x, x_hat, i, ALL), ALL, how);
    }
    if (i < n) {
        __mmask16 m = tail(n - i);
        load_step(&l, to, i, difference(x, x_hat, i, m), m, how);
    }
    return (struct simd_sums){sum_lanes(l.x2), sum_lanes(l.l1), _mm512_reduce_max_epu32(l.max)};
}

/* One loop for each `how`, or the two tests would be made again at each step. */
AVX512 static struct simd_sums load_avx512(float *restrict v, const float *restrict x,
                                           const float *restrict x_hat, size_t n, unsigned how)
{
    struct loaded to = {v, NULL};
    switch (how) {
    case 0:
        return load_all(&to, x, x_hat, n, 0);
    case SIMD_L1:
        return load_all(&to, x, x_hat, n, SIMD_L1);
    case SIMD_AHEAD:
        return load_all(&to, x, x_hat, n, SIMD_AHEAD);
    default:
        return load_all(&to, x, x_hat, n, SIMD_L1 | SIMD_AHEAD);
    }
}

AVX512 static struct simd_sums load_signs_avx512(uint8_t *restrict dst, const float *restrict x,
                                                 const float *restrict x_hat, size_t n,
                                                 unsigned how)
{
    struct loaded to = {NULL, dst};
    if (how & SIMD_AHEAD)
        return load_all(&to, x, x_hat, n, SIMD_L1 | SIMD_AHEAD);
    return load_all(&to, x, x_hat, n, SIMD_L1);
}

/* ---- signs ---- */

AVX512 static void sign_put_avx512(uint8_t *restrict dst, const float *restrict v, size_t n)
{
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES) {
        __m512i bits = _mm512_castps_si512(get(v + i, ALL));
        put_bits(dst + i / 8, ALL, _mm512_movepi32_mask(bits));
    }
    if (i < n) {
        __m512i bits = _mm512_castps_si512(get(v + i, tail(n - i)));
        put_bits(dst + i / 8, tail(n - i), _mm512_movepi32_mask(bits));
    }
}

/* Add +-scale to sixteen elements: a blend of the two by the bits as a mask. */
STEP void sign_step(float *y, unsigned bits, __m512 scale[2], __mmask16 m)
{
    __m512 v = _mm512_mask_blend_ps((__mmask16)bits, scale[0], scale[1]);
    put(y, m, _mm512_add_ps(get(y, m), v));
}

AVX512 static void sign_add_avx512(float *restrict y, const uint8_t *restrict src, size_t n,
                                   float scale)
{
    __m512 scales[2] = {_mm512_set1_ps(scale), _mm512_set1_ps(-scale)};
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sign_step(y + i, bytes_get_u16(src + i / 8), scales, ALL);
    if (i < n) {
        uint16_t bits = 0;
        memcpy(&bits, src + i / 8, (n - i + 7) / 8);
        sign_step(y + i, bits, scales, tail(n - i));
    }
}

/* ---- halves ---- */

/* Two factors in registers. A second factor of 1 is left out, which is exact; compilers split
 * the loops over it. */
struct shifting
{
    __m512 first, second;
    bool twice;
};

STEP struct shifting shift_by(float first, float second)
{
    return (struct shifting){_mm512_set1_ps(first), _mm512_set1_ps(second), second != 1.0f};
}

/* Multiply by both factors, in the order of ref.c. */
STEP __m512 shifted(const struct shifting *s, __m512 f)
{
    f = _mm512_mul_ps(f, s->first);
    return s->twice ? _mm512_mul_ps(f, s->second) : f;
}

/* Write sixteen halves; returns e2 with the squares of what was lost added. The code of -0
 * becomes that of 0. */
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

/* Add sixteen halves, shifted back. */
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

/* ---- levels ---- */

/* A 64-bit number in all eight places. */
STEP __m512i eight_of(uint64_t word)
{
    return _mm512_set1_epi64((long long)word);
}

/* rng_at() of eight keys at position 0. */
STEP __m512i mix(__m512i key)
{
    __m512i z = _mm512_add_epi64(key, eight_of(RNG_STEP));
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 30));
    z = _mm512_mullo_epi64(z, eight_of(RNG_MIX_1));
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 27));
    z = _mm512_mullo_epi64(z, eight_of(RNG_MIX_2));
    return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

/* Sixteen numbers in [0, 1) of eight words: the halves of a word lie side by side already. */
STEP __m512 coins(__m512i word)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(word, 8)), _mm512_set1_ps(0x1p-24f));
}

AVX512 static void coin_avx512(float *u, uint64_t key, size_t first, size_t n)
{
    /* Number i of a key is number 0 of the key i steps on. */
    __m512i steps =
        _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), eight_of(RNG_STEP));
    __m512i keys = _mm512_add_epi64(eight_of(key + first / 2 * RNG_STEP), steps);
    __m512i on = eight_of(8 * RNG_STEP);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES) {
        put(u + i, ALL, coins(mix(keys)));
        keys = _mm512_add_epi64(keys, on);
    }
    if (i < n)
        put(u + i, tail(n - i), coins(mix(keys)));
}

/* The grid, and the sums of round_step() in sixteen lanes. */
struct rounding
{
    struct shifting to_grid;
    __m512 levels, aq, q2;
};

/* Round to nearest even, as adding and taking off 1.5 * 2^23 does in ref.c. */
STEP __m512 level_near(__m512 a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Round a >= 0 up where the coin u is below its fraction. */
STEP __m512 level_random(__m512 a, __m512 u)
{
    __m512 low = _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask16 up = _mm512_cmp_ps_mask(u, _mm512_sub_ps(a, low), _CMP_LT_OQ);
    return _mm512_mask_add_ps(low, up, low, _mm512_set1_ps(1.0f));
}

/* a >= 0 with the signs of v, by one three-way logical instruction. */
STEP __m512 with_sign_of(__m512 a, __m512 v)
{
    __m512i top = _mm512_set1_epi32((int)0x80000000u);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_castps_si512(a), _mm512_castps_si512(v), top, 0xf8)); /* a | (v & top) */
}

/* Round sixteen elements. Random rounding works on magnitudes, and the sums do not care: a q is
 * the same with both signs turned. */
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

/* Zeros of a tail stay zeros: u < 0 never holds. */
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

/* What code_step() needs in registers: `sign` is the sign bit of a code, e2 the error in sixteen
 * lanes. */
struct coding
{
    __m512 scale;
    struct shifting shift; /* Errors are multiplied by it before they are squared. */
    __m512i sign;
    __m512 e2;
};

/* Make sixteen codes, and add their errors. */
STEP void code_step(struct coding *c, uint16_t *code, const float *q, const float *v, __mmask16 m)
{
    __m512 level = get(q, m);
    __m512i k = _mm512_cvttps_epi32(level);
    /* sign - k is sign + |k|. */
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

/* Add the values of sixteen nibbles, looked up by one permutation of all sixteen values. */
STEP void nibble_step(float *y, __m128i eight, __m512 values, __mmask16 m)
{
    /* 0x00ab to 0x0a0b, a byte a nibble. */
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

/* ---- scan ---- */

/* What a scan keeps in registers. It works on copies of the pointers and the count, which the
 * compiler could not keep there behind a pointer. */
struct scanning
{
    __m512i t;
    __m512d rest2[2];
    float *value;
    uint32_t *index;
    size_t found;
};

/* Append what is taken of sixteen elements. They are compressed in a register and stored whole,
 * for which there is room: a compressing store is many times slower on some CPUs. */
STEP void scan_step(struct scanning *g, __m512 d, __m512i index)
{
    __m512i key = _mm512_castps_si512(abs_of(d));
    __mmask16 taken = _mm512_cmpge_epu32_mask(key, g->t);
    __mmask16 rest = _knot_mask16(taken);
    _mm512_storeu_ps(g->value + g->found, _mm512_maskz_compress_ps(taken, d));
    _mm512_storeu_si512(g->index + g->found, _mm512_maskz_compress_epi32(taken, index));
    g->found += count_lanes(taken);
    __m512 r = _mm512_maskz_mov_ps(rest, d);
    __m512d low = low_half(r);
    __m512d high = high_half(r);
    g->rest2[0] = _mm512_fmadd_pd(low, low, g->rest2[0]);
    g->rest2[1] = _mm512_fmadd_pd(high, high, g->rest2[1]);
}

STEP struct scanning scan_start(const struct simd_scan *s)
{
    __m512d zero = _mm512_setzero_pd();
    return (struct scanning){
        _mm512_set1_epi32((int)s->t), {zero, zero}, s->value, s->index, s->found};
}

/* Zeros of the tail are never taken, as s->t is at least 1. */
AVX512 static uint32_t scan_avx512(struct simd_scan *s, const float *restrict x,
                                   const float *restrict x_hat, size_t n, uint32_t first)
{
    struct scanning g = scan_start(s);
    __m512i max = _mm512_setzero_si512();
    __m512i index =
        _mm512_add_epi32(_mm512_set1_epi32((int)first),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES) {
        __m512 d = difference(x, x_hat, i, ALL);
        max = _mm512_max_epu32(max, _mm512_castps_si512(abs_of(d)));
        scan_step(&g, d, index);
        index = _mm512_add_epi32(index, _mm512_set1_epi32(SIMD_LANES));
    }
    if (i < n) {
        __m512 d = difference(x, x_hat, i, tail(n - i));
        max = _mm512_max_epu32(max, _mm512_castps_si512(abs_of(d)));
        scan_step(&g, d, index);
    }
    s->found = g.found;
    s->rest2 += sum_lanes(g.rest2);
    return _mm512_reduce_max_epu32(max);
}

/* The index goes with the value through the same compression. */
AVX512 static void filter_avx512(struct simd_scan *s, const float *restrict value,
                                 const uint32_t *restrict index, size_t n)
{
    struct scanning g = scan_start(s);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        scan_step(&g, get(value + i, ALL), _mm512_loadu_si512(index + i));
    if (i < n) {
        __mmask16 m = tail(n - i);
        scan_step(&g, get(value + i, m), _mm512_maskz_loadu_epi32(m, index + i));
    }
    s->found = g.found;
    s->rest2 += sum_lanes(g.rest2);
}

const struct simd_table simd_avx512 = {
    .name = "avx512",
    .load = load_avx512,
    .load_signs = load_signs_avx512,
    .sign_put = sign_put_avx512,
    .sign_add = sign_add_avx512,
    .half_put = half_put_avx512,
    .half_add = half_add_avx512,
    .coin = coin_avx512,
    .round = round_avx512,
    .code = code_avx512,
    .nibble_add = nibble_add_avx512,
    .scan = scan_avx512,
    .filter = filter_avx512,
};

#else

extern int simd_avx512_none; /* A file may not be empty. */

#endif
