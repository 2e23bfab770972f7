/* compress/simd/avx2_scan.c -- AVX2 kernels that collect the elements above a threshold. */
#include "compress/simd/avx2.h"

#if SIMD_X86

/* ---- Kernels that collect elements above a threshold ---- */

/* Returns a mask of those of the eight elements d whose magnitude has a bit pattern of at least t.
 * Adds the squares of the other elements to rest2. */
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

/* State of a kernel that scans a vector or filters candidates. The partial sums are held in
 * registers. */
struct scanning
{
    struct simd_scan *s;
    __m256d rest2[4];
    __m256i max[2];
};

/* Scans sixteen elements and collects those that reach the threshold. Usually about one in a
 * hundred does, so a branch for each collected element is cheap. */
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

/* Returns the state at the start of a kernel that scans a vector or filters candidates. All sums
 * are zero. */
STEP struct scanning scan_start(struct simd_scan *s)
{
    __m256d zero = _mm256_setzero_pd();
    __m256i none = _mm256_setzero_si256();
    return (struct scanning){s, {zero, zero, zero, zero}, {none, none}};
}

/* The last elements are padded with zeros. Zeros are never collected, because the threshold s->t is
 * at least 1 (the bit pattern of the smallest positive float). */
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

/* Filters sixteen candidates. About half of them are kept, which a branch would often mispredict.
 * Therefore every candidate is stored, and the count grows only if the candidate is kept. */
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

const struct simd_scan_table simd_avx2_scan = {
    .scan = scan_avx2,
    .filter = filter_avx2,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx2_scan_none;

#endif
