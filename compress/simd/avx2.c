/* compress/simd/avx2.c -- the kernels, eight floats a register, two at a time.
 *
 * A step is sixteen elements, two registers, so that lane i is element i mod 16
 * as in ref.c and sums come out in the same order. No fused multiply-add, which
 * rounds once where ref.c rounds twice. A tail is copied into a step's worth of
 * zeros, which no sum sees, and its results back: beside a loop over a thousand
 * elements that costs nothing, and each step is written once.
 */
#include "compress/simd/table.h"

#include "nn/math/rng.h"

#if SIMD_X86

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define STEP AVX2 __attribute__((always_inline)) static inline

enum { HALF = SIMD_LANES / 2 };

/* The last elements of a vector, and zeros. */
static void pad(float to[SIMD_LANES], const float *from, size_t n)
{
    memset(to, 0, SIMD_LANES * sizeof *to);
    memcpy(to, from, n * sizeof *to);
}

/* Clears the sign bits. */
STEP __m256 abs_of(__m256 v)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
}

/* The lower four floats as doubles: squares are summed in double. */
STEP __m256d low_half(__m256 v)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}

STEP __m256d high_half(__m256 v)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

/* Fold sixteen lanes of double, four registers, in the order of ref.c: upper half onto lower,
 * until one is left. */
STEP double sum_lanes(const __m256d l[4])
{
    __m256d l4 = _mm256_add_pd(_mm256_add_pd(l[0], l[2]), _mm256_add_pd(l[1], l[3]));
    __m128d l2 = _mm_add_pd(_mm256_castpd256_pd128(l4), _mm256_extractf128_pd(l4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(l2, _mm_unpackhi_pd(l2, l2)));
}

/* Fold sixteen lanes of float, two registers, in the same order. */
STEP float sum_lanes_float(const __m256 l[2])
{
    __m256 l8 = _mm256_add_ps(l[0], l[1]);
    __m128 l4 = _mm_add_ps(_mm256_castps256_ps128(l8), _mm256_extractf128_ps(l8, 1));
    __m128 l2 = _mm_add_ps(l4, _mm_movehl_ps(l4, l4));
    return _mm_cvtss_f32(_mm_add_ss(l2, _mm_movehdup_ps(l2)));
}

/* The largest of sixteen lanes of unsigned integers. */
STEP uint32_t top(const __m256i l[2])
{
    __m256i l8 = _mm256_max_epu32(l[0], l[1]);
    __m128i l4 = _mm_max_epu32(_mm256_castsi256_si128(l8), _mm256_extracti128_si256(l8, 1));
    __m128i l2 = _mm_max_epu32(l4, _mm_shuffle_epi32(l4, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(l2, _mm_shuffle_epi32(l2, 0xb1)));
}

/* x - x_hat of eight elements, with -0 made +0 by adding 0. */
STEP __m256 difference(const float *x, const float *x_hat, size_t i)
{
    __m256 h = x_hat != NULL ? _mm256_loadu_ps(x_hat + i) : _mm256_setzero_ps();
    return _mm256_add_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), h), _mm256_setzero_ps());
}

/* ---- load ---- */

/* What load_step() sums up, in registers. */
struct loading
{
    __m256d x2[4], l1[4];
    __m256i max[2];
};

/* Where differences go: as floats or as signs. */
struct loaded
{
    float *v;
    uint8_t *sign;
};

/* Load sixteen elements. `how` is a constant wherever this is inlined, so the tests of it cost
 * nothing. */
STEP void load_step(struct loading *l, const struct loaded *to, size_t i, const float *x,
                    const float *x_hat, unsigned how)
{
    for (int h = 0; h < 2; h++) {
        __m256 d = difference(x, x_hat, (size_t)h * HALF);
        __m256 a = abs_of(d);
        __m256d low = low_half(a);
        __m256d high = high_half(a);
        int g = 2 * h;
        if (to->v != NULL)
            _mm256_storeu_ps(to->v + i + h * HALF, d);
        if (to->sign != NULL)
            to->sign[i / 8 + (size_t)h] = (uint8_t)_mm256_movemask_ps(d);
        l->max[h] = _mm256_max_epu32(l->max[h], _mm256_castps_si256(a));
        if (how & SIMD_L1) {
            l->l1[g] = _mm256_add_pd(l->l1[g], low);
            l->l1[g + 1] = _mm256_add_pd(l->l1[g + 1], high);
        }
        l->x2[g] = _mm256_add_pd(l->x2[g], _mm256_mul_pd(low, low));
        l->x2[g + 1] = _mm256_add_pd(l->x2[g + 1], _mm256_mul_pd(high, high));
    }
}

/* Load the last n < 16 elements by way of a padded copy. */
STEP void load_tail(struct loading *l, const struct loaded *to, size_t i, const float *x,
                    const float *x_hat, size_t n)
{
    float p[3][SIMD_LANES] = {{0}};
    uint8_t bits[SIMD_LANES / 8];
    struct loaded last = {p[2], bits};
    pad(p[0], x, n);
    if (x_hat != NULL)
        pad(p[1], x_hat, n);
    load_step(l, &last, 0, p[0], p[1], SIMD_L1);
    if (to->v != NULL)
        memcpy(to->v + i, p[2], n * sizeof *to->v);
    if (to->sign != NULL)
        memcpy(to->sign + i / 8, bits, (n + 7) / 8);
}

/* The loop behind both kernels that load; it is inlined once for each `how`. */
STEP struct simd_sums load_all(const struct loaded *to, const float *x, const float *x_hat,
                               size_t n, unsigned how)
{
    __m256d zero = _mm256_setzero_pd();
    __m256i none = _mm256_setzero_si256();
    struct loading l = {{zero, zero, zero, zero}, {zero, zero, zero, zero}, {none, none}};
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES) {
        if (how & SIMD_AHEAD) { /* A step is one cache line of each vector. */
            simd_ask(x + i);
            if (x_hat != NULL)
                simd_ask(x_hat + i);
        }
        load_step(&l, to, i, x + i, x_hat != NULL ? x_hat + i : NULL, how);
    }
    if (i < n)
        load_tail(&l, to, i, x + i, x_hat != NULL ? x_hat + i : NULL, n - i);
    return (struct simd_sums){sum_lanes(l.x2), how & SIMD_L1 ? sum_lanes(l.l1) : 0.0, top(l.max)};
}

/* One loop for each `how`, or the two tests would be made again at each step. */
AVX2 static struct simd_sums load_avx2(float *restrict v, const float *restrict x,
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

/* The same loop, which stores signs and not differences; l1 is always summed. */
AVX2 static struct simd_sums load_signs_avx2(uint8_t *restrict dst, const float *restrict x,
                                             const float *restrict x_hat, size_t n, unsigned how)
{
    struct loaded to = {NULL, dst};
    if (how & SIMD_AHEAD)
        return load_all(&to, x, x_hat, n, SIMD_L1 | SIMD_AHEAD);
    return load_all(&to, x, x_hat, n, SIMD_L1);
}

/* ---- signs ---- */

/* A byte of signs is the mask of a register. */
AVX2 static void sign_put_avx2(uint8_t *restrict dst, const float *restrict v, size_t n)
{
    size_t i = 0;
    for (; i + HALF <= n; i += HALF)
        dst[i / HALF] = (uint8_t)_mm256_movemask_ps(_mm256_loadu_ps(v + i));
    if (i < n) {
        float p[SIMD_LANES];
        pad(p, v + i, n - i);
        dst[i / HALF] = (uint8_t)_mm256_movemask_ps(_mm256_loadu_ps(p));
    }
}

/* Add +-scale to eight elements: bit j of `bits` is moved to the sign bit of lane j. */
STEP void sign_step(float *y, int bits, __m256 scale)
{
    __m256i to_top = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m256i moved = _mm256_sllv_epi32(_mm256_set1_epi32(bits), to_top);
    __m256i sign = _mm256_and_si256(moved, _mm256_set1_epi32((int)0x80000000u));
    __m256 v = _mm256_xor_ps(scale, _mm256_castsi256_ps(sign));
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), v));
}

AVX2 static void sign_add_avx2(float *restrict y, const uint8_t *restrict src, size_t n,
                               float scale)
{
    __m256 scales = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + HALF <= n; i += HALF)
        sign_step(y + i, src[i / HALF], scales);
    if (i < n) {
        float p[SIMD_LANES];
        pad(p, y + i, n - i);
        sign_step(p, src[i / HALF], scales);
        memcpy(y + i, p, (n - i) * sizeof *y);
    }
}

/* ---- halves ---- */

/* Sixteen halves in plain C, which the vectoriser can do: binary16 instructions are another
 * feature bit (f16c), one that not every compiler can ask for. */
STEP void half_step(__m256 e2[2], uint8_t *dst, const float *v, float first, float second)
{
    float d[SIMD_LANES];
    for (size_t j = 0; j < SIMD_LANES; j++) {
        float f = v[j] * first * second;
        uint16_t half = simd_half_of(f);
        d[j] = f - simd_half_to_float(half);
        bytes_put_u16(dst + 2 * j, half);
    }
    for (int h = 0; h < 2; h++) {
        __m256 lost = _mm256_loadu_ps(d + h * HALF);
        e2[h] = _mm256_add_ps(e2[h], _mm256_mul_ps(lost, lost));
    }
}

/* The tail's zeros become halves of zero, and lose nothing. */
AVX2 static float half_put_avx2(uint8_t *restrict dst, const float *restrict v, size_t n,
                                float first, float second)
{
    __m256 e2[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        half_step(e2, dst + 2 * i, v + i, first, second);
    if (i < n) {
        float p[SIMD_LANES];
        uint8_t halves[2 * SIMD_LANES];
        pad(p, v + i, n - i);
        half_step(e2, halves, p, first, second);
        memcpy(dst + 2 * i, halves, 2 * (n - i));
    }
    return sum_lanes_float(e2);
}

/* A plain loop as in ref.c, which is compiled for AVX2 here. */
AVX2 static void half_add_avx2(float *restrict y, const uint8_t *restrict src, size_t n,
                               float first, float second)
{
    for (size_t i = 0; i < n; i++)
        y[i] += simd_half_to_float(bytes_get_u16(src + 2 * i)) * first * second;
}

/* ---- levels ---- */

/* In plain C again: AVX2 has no 64-bit products, and the vectoriser makes them of 32-bit ones. */
AVX2 static void coin_avx2(float *u, uint64_t key, size_t first, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        simd_two_coins(u + 2 * i, rng_at(key, first / 2 + i));
    if (n % 2 != 0) {
        float last[2];
        simd_two_coins(last, rng_at(key, (first + n) / 2));
        u[n - 1] = last[0];
    }
}

/* The grid, and the sums of round_step() in sixteen lanes. */
struct rounding
{
    __m256 first, second, levels;
    __m256 aq[2], q2[2];
};

/* Round to nearest even, as adding and taking off 1.5 * 2^23 does in ref.c. */
STEP __m256 level_near(__m256 a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Round a >= 0 up where the coin u is below its fraction. */
STEP __m256 level_random(__m256 a, __m256 u)
{
    __m256 low = _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __m256 up = _mm256_cmp_ps(u, _mm256_sub_ps(a, low), _CMP_LT_OQ);
    return _mm256_add_ps(low, _mm256_and_ps(up, _mm256_set1_ps(1.0f)));
}

/* a >= 0 with the signs of v. */
STEP __m256 with_sign_of(__m256 a, __m256 v)
{
    return _mm256_or_ps(a, _mm256_and_ps(v, _mm256_set1_ps(-0.0f)));
}

/* Round sixteen elements. Random rounding works on magnitudes, and the sums do not care: a q is
 * the same with both signs turned. */
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

/* Two loops: whether there are coins is decided once. */
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

/* What code_step() needs in registers: `sign` is the sign bit of a code, e2 the error in sixteen
 * lanes. */
struct coding
{
    __m256 scale, shift;
    __m256i sign;
    __m256 e2[2];
};

/* Eight codes as 32-bit integers, and their errors. */
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

/* Sixteen codes as 16-bit integers. Packing works in the halves of a register by themselves: the
 * permutation puts them in order again. */
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

/* Add the values of eight nibbles. A permutation looks up one of eight values, and bit 3 of the
 * nibble chooses between two such tables. */
STEP void nibble_step(float *y, uint32_t eight, const __m256 values[2])
{
    __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i k = _mm256_srlv_epi32(_mm256_set1_epi32((int)eight), shifts);
    __m256 bit3 = _mm256_castsi256_ps(_mm256_slli_epi32(k, 28));
    __m256 v = _mm256_blendv_ps(_mm256_permutevar8x32_ps(values[0], k),
                                _mm256_permutevar8x32_ps(values[1], k), bit3);
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), v));
}

/* Four bytes hold the nibbles of eight elements. */
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

/* ---- scan ---- */

/* One bit for each |d| >= t of eight, compared as integers; the squares of the others go to
 * rest2. */
STEP unsigned above(__m256 d, uint32_t t, __m256d rest2[2])
{
    __m256i key = _mm256_castps_si256(abs_of(d));
    __m256 taken = _mm256_castsi256_ps(_mm256_cmpgt_epi32(key, _mm256_set1_epi32((int)(t - 1))));
    __m256 rest = _mm256_andnot_ps(taken, d);
    __m256d low = low_half(rest);
    __m256d high = high_half(rest);
    rest2[0] = _mm256_add_pd(rest2[0], _mm256_mul_pd(low, low));
    rest2[1] = _mm256_add_pd(rest2[1], _mm256_mul_pd(high, high));
    return (unsigned)_mm256_movemask_ps(taken);
}

/* What a scan sums up in registers. */
struct scanning
{
    struct simd_scan *s;
    __m256d rest2[4];
    __m256i max[2];
};

/* Scan sixteen elements. Few are taken, one in a hundred or so: a branch for each. */
STEP void scan_step(struct scanning *g, const float *x, const float *x_hat, uint32_t first)
{
    struct simd_scan *s = g->s;
    for (int h = 0; h < 2; h++) {
        float v[HALF];
        __m256 d = difference(x, x_hat, (size_t)h * HALF);
        g->max[h] = _mm256_max_epu32(g->max[h], _mm256_castps_si256(abs_of(d)));
        unsigned bits = above(d, s->t, g->rest2 + 2 * h);
        _mm256_storeu_ps(v, d);
        for (; bits != 0; bits &= bits - 1) {
            unsigned j = (unsigned)__builtin_ctz(bits);
            s->value[s->found] = v[j];
            s->index[s->found++] = first + (unsigned)(h * HALF) + j;
        }
    }
}

/* Sums of none, for a scan or a filter. */
STEP struct scanning scan_start(struct simd_scan *s)
{
    __m256d zero = _mm256_setzero_pd();
    __m256i none = _mm256_setzero_si256();
    return (struct scanning){s, {zero, zero, zero, zero}, {none, none}};
}

/* Zeros of the tail are never taken, as s->t is at least 1. */
AVX2 static uint32_t scan_avx2(struct simd_scan *s, const float *restrict x,
                               const float *restrict x_hat, size_t n, uint32_t first)
{
    struct scanning g = scan_start(s);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        scan_step(&g, x + i, x_hat != NULL ? x_hat + i : NULL, first + (uint32_t)i);
    if (i < n) {
        float p[2][SIMD_LANES] = {{0}};
        pad(p[0], x + i, n - i);
        if (x_hat != NULL)
            pad(p[1], x_hat + i, n - i);
        scan_step(&g, p[0], p[1], first + (uint32_t)i);
    }
    s->rest2 += sum_lanes(g.rest2);
    return top(g.max);
}

/* Filter sixteen candidates. Most are taken here, and which is a toss of a coin: each is stored,
 * and only counted where it is taken. */
STEP void filter_step(struct scanning *g, const float *value, const uint32_t *index)
{
    struct simd_scan *s = g->s;
    for (int h = 0; h < 2; h++) {
        int at = h * HALF;
        unsigned bits = above(_mm256_loadu_ps(value + at), s->t, g->rest2 + 2 * h);
        for (int j = 0; j < HALF; j++) {
            s->value[s->found] = value[at + j];
            s->index[s->found] = index[at + j];
            s->found += bits >> j & 1;
        }
    }
}

AVX2 static void filter_avx2(struct simd_scan *s, const float *restrict value,
                             const uint32_t *restrict index, size_t n)
{
    struct scanning g = scan_start(s);
    size_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        filter_step(&g, value + i, index + i);
    if (i < n) {
        float p[SIMD_LANES];
        uint32_t places[SIMD_LANES] = {0};
        pad(p, value + i, n - i);
        memcpy(places, index + i, (n - i) * sizeof *index);
        filter_step(&g, p, places);
    }
    s->rest2 += sum_lanes(g.rest2);
}

const struct simd_table simd_avx2 = {
    .name = "avx2",
    .load = load_avx2,
    .load_signs = load_signs_avx2,
    .sign_put = sign_put_avx2,
    .sign_add = sign_add_avx2,
    .half_put = half_put_avx2,
    .half_add = half_add_avx2,
    .coin = coin_avx2,
    .round = round_avx2,
    .code = code_avx2,
    .nibble_add = nibble_add_avx2,
    .scan = scan_avx2,
    .filter = filter_avx2,
};

#else

extern int simd_avx2_none; /* A file may not be empty. */

#endif
