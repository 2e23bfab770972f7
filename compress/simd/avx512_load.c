/* compress/simd/avx512_load.c -- AVX-512 kernels that load differences, sum them, and pack signs.
 */
#include "compress/simd/avx512.h"

#if SIMD_X86

/* ---- Kernels that load a block and compute its sums ---- */

/* Partial sums of a block, in registers. load_step() updates them. */
struct loading
{
    __m512d x2[2], l1[2];
    __m512i max;
};

/* Destination of the differences: floats in `v`, or sign bits in `sign`. If both are NULL, only
 * sums are computed. */
struct loaded
{
    float *v;
    uint8_t *sign;
};

/* Adds up to sixteen differences d to the sums, and stores the differences or their signs. `how`
 * (the flags of simd_load()) is a constant wherever this function is inlined, so testing it costs
 * nothing. The sum of |d|, l1, stays 0 unless SIMD_L1 is set. */
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

/* Loads sixteen elements, which are one cache line of x and one of x_hat. Prefetches if SIMD_AHEAD
 * is set. */
STEP void load_whole(struct loading *l, const struct loaded *to, size_t i, const float *x,
                     const float *x_hat, unsigned how)
{
    if (how & SIMD_AHEAD) {
        simd_ask(x + i);
        if (x_hat != NULL)
            simd_ask(x_hat + i);
    }
    load_step(l, to, i, difference(x, x_hat, i, ALL), ALL, how);
}

/* Loads the block of n elements from index `at` on. Returns its partial sums. This function is
 * inlined once for each value of `how`, the flags of simd_load(). */
STEP struct loading load_block(const struct loaded *to, size_t at, const float *x,
                               const float *x_hat, size_t n, unsigned how)
{
    __m512d zero = _mm512_setzero_pd();
    struct loading l = {{zero, zero}, {zero, zero}, _mm512_setzero_si512()};
    size_t i = at;
    for (; i + SIMD_LANES <= at + n; i += SIMD_LANES)
        load_whole(&l, to, i, x, x_hat, how);
    if (i < at + n) {
        __mmask16 m = tail(at + n - i);
        load_step(&l, to, i, difference(x, x_hat, i, m), m, how);
    }
    return l;
}

/* Returns the sums of a block: adds up its partial sums. */
STEP struct simd_sums sums_of(const struct loading *l)
{
    return (struct simd_sums){sum_lanes(l->x2), sum_lanes(l->l1), _mm512_reduce_max_epu32(l->max)};
}

#include "compress/simd/loads.h"

AVX512 static void load_avx512(struct simd_sums *sums, float *restrict v,
                               const struct simd_source *s)
{
    loads(sums, v, s);
}

AVX512 static struct simd_sums load_signs_avx512(uint8_t *restrict dst, const float *restrict x,
                                                 const float *restrict x_hat, size_t n,
                                                 unsigned how)
{
    return loads_signs(dst, x, x_hat, n, how);
}

/* ---- Kernels that write and add sign bits ---- */

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

/* Adds to each of sixteen elements scale[0] if its bit is 0, or scale[1] = -scale[0] if its bit is
 * 1. */
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

const struct simd_load_table simd_avx512_load = {
    .load = load_avx512,
    .load_signs = load_signs_avx512,
    .sign_put = sign_put_avx512,
    .sign_add = sign_add_avx512,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx512_load_none;

#endif
