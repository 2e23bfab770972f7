/* compress/simd/avx512_scan.c -- AVX-512 kernels that collect the elements above a threshold. */
#include "compress/simd/avx512.h"

#if SIMD_X86

/* ---- Kernels that collect elements above a threshold ---- */

/* State of a kernel that scans a vector or filters candidates. Holds copies of the pointers and of
 * the count in struct simd_scan, because the compiler can keep copies in registers. */
struct scanning
{
    __m512i t;
    __m512d rest2[2];
    float *value;
    uint32_t *index;
    size_t found;
};

/* Appends those elements of a register that reach the threshold to the output. The elements are
 * first moved together in the register. Then the whole register is stored, for which the caller
 * provides room. A store instruction that moves elements together is many times slower on some
 * CPUs. */
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

/* Returns the state at the start of a kernel that scans a vector or filters candidates. All sums
 * are zero. */
STEP struct scanning scan_start(const struct simd_scan *s)
{
    __m512d zero = _mm512_setzero_pd();
    return (struct scanning){
        _mm512_set1_epi32((int)s->t), {zero, zero}, s->value, s->index, s->found};
}

/* Lanes outside the mask are zero. Zeros are never collected, because the threshold s->t is at
 * least 1 (the bit pattern of the smallest positive float). */
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

/* Each candidate's index is handled like its value: the same mask selects both, and both are moved
 * together. */
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

const struct simd_scan_table simd_avx512_scan = {
    .scan = scan_avx512,
    .filter = filter_avx512,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx512_scan_none;

#endif
