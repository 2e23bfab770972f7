/* compress/simd/avx2_load.c -- AVX2 kernels that load differences, sum them, and pack signs. */
#include "compress/simd/avx2.h"

#if SIMD_X86

/* ---- Kernels that load a block and compute its sums ---- */

/* Partial sums of a block, in registers. load_step() updates them. */
struct loading
{
    __m256d x2[4], l1[4];
    __m256i max[2];
};

/* Destination of the differences: floats in `v`, or sign bits in `sign`. If both are NULL, only
 * sums are computed. */
struct loaded
{
    float *v;
    uint8_t *sign;
};

/* Loads sixteen elements, and adds their differences to the sums. `how` (the flags of simd_load())
 * is a constant wherever this function is inlined, so testing it costs nothing. */
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

/* Loads the last n < 16 elements of a block, from a copy that is padded with zeros. */
STEP void load_tail(struct loading *l, const struct loaded *to, size_t i, const float *x,
                    const float *x_hat, size_t n, unsigned how)
{
    float p[3][SIMD_LANES] = {{0}};
    uint8_t bits[SIMD_LANES / 8];
    struct loaded last = {p[2], bits};
    pad(p[0], x, n);
    if (x_hat != NULL)
        pad(p[1], x_hat, n);
    load_step(l, &last, 0, p[0], p[1], how);
    if (to->v != NULL)
        memcpy(to->v + i, p[2], n * sizeof *to->v);
    if (to->sign != NULL)
        memcpy(to->sign + i / 8, bits, (n + 7) / 8);
}

/* Loads the block of n elements from index `at` on. Returns its partial sums. This function is
 * inlined once for each value of `how`, the flags of simd_load(). */
STEP struct loading load_block(const struct loaded *to, size_t at, const float *x,
                               const float *x_hat, size_t n, unsigned how)
{
    __m256d zero = _mm256_setzero_pd();
    __m256i none = _mm256_setzero_si256();
    struct loading l = {{zero, zero, zero, zero}, {zero, zero, zero, zero}, {none, none}};
    size_t i = at;
    for (; i + SIMD_LANES <= at + n; i += SIMD_LANES) {
        /* Prefetching is done once per step, because a step is one cache line of x and one of
         * x_hat. */
        if (how & SIMD_AHEAD) {
            simd_ask(x + i);
            if (x_hat != NULL)
                simd_ask(x_hat + i);
        }
        load_step(&l, to, i, x + i, x_hat != NULL ? x_hat + i : NULL, how);
    }
    if (i < at + n)
        load_tail(&l, to, i, x + i, x_hat != NULL ? x_hat + i : NULL, at + n - i, how);
    return l;
}

/* Returns the sums of a block: adds up its partial sums. */
STEP struct simd_sums sums_of(const struct loading *l)
{
    return (struct simd_sums){sum_lanes(l->x2), sum_lanes(l->l1), top(l->max)};
}

#include "compress/simd/loads.h"

AVX2 static void load_avx2(struct simd_sums *sums, float *restrict v, const struct simd_source *s)
{
    loads(sums, v, s);
}

AVX2 static struct simd_sums load_signs_avx2(uint8_t *restrict dst, const float *restrict x,
                                             const float *restrict x_hat, size_t n, unsigned how)
{
    return loads_signs(dst, x, x_hat, n, how);
}

/* ---- Kernels that write and add sign bits ---- */

/* The instruction movemask turns the signs of eight floats into one byte of sign bits. */
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

/* Adds to each of eight elements +scale if its bit is 0, or -scale if its bit is 1. */
STEP void sign_step(float *y, int bits, __m256 scale)
{
    __m256 v = _mm256_xor_ps(scale, signs_of(bits));
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

const struct simd_load_table simd_avx2_load = {
    .load = load_avx2,
    .load_signs = load_signs_avx2,
    .sign_put = sign_put_avx2,
    .sign_add = sign_add_avx2,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx2_load_none;

#endif
