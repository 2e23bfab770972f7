/* compress/simd/avx2_cast.c -- AVX2 kernels for binary16, int8 and powers of two. */
#include "compress/simd/avx2.h"

#if SIMD_X86

/* ---- Kernels of 16-bit floats (binary16) ---- */

/* Converts sixteen floats to binary16 and adds their squared errors to e2. The conversion is plain
 * C, which the compiler vectorises. The binary16 instructions belong to another CPU feature (F16C),
 * which not every supported compiler can test for. */
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

/* The last elements are padded with zeros. A zero is written as a binary16 zero and adds no
 * error. */
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

/* The loop is the same as in ref.c. In this file the compiler vectorises it for AVX2. */
AVX2 static void half_add_avx2(float *restrict y, const uint8_t *restrict src, size_t n,
                               float first, float second)
{
    for (size_t i = 0; i < n; i++)
        y[i] += simd_half_to_float(bytes_get_u16(src + 2 * i)) * first * second;
}

/* ---- Sums of squares ---- */

/* Sixteen floats in two registers. They are sixteen squares, or sixteen partial sums (lanes) of
 * squares. */
struct squares
{
    __m256 l[2];
};

/* Loads sixteen squares. */
STEP struct squares get_squares(const float *p)
{
    return (struct squares){{_mm256_loadu_ps(p), _mm256_loadu_ps(p + HALF)}};
}

/* Adds one square to each lane. */
STEP struct squares add_one(struct squares sum, struct squares s)
{
    return (struct squares){{_mm256_add_ps(sum.l[0], s.l[0]), _mm256_add_ps(sum.l[1], s.l[1])}};
}

/* Adds four squares to each lane. The squares are first added to each other in pairs, so that the
 * chain of additions that depend on each other is a quarter as long. */
STEP struct squares add_four(struct squares sum, const struct squares s[4])
{
    return add_one(sum, add_one(add_one(s[0], s[1]), add_one(s[2], s[3])));
}

/* Returns sixteen zeros. */
STEP struct squares no_squares(void)
{
    return (struct squares){{_mm256_setzero_ps(), _mm256_setzero_ps()}};
}

AVX2 static double sum_squares_avx2(const float *square, size_t n)
{
    struct squares sum = no_squares();
    size_t i = 0;
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES) {
        struct squares s[4];
        for (size_t k = 0; k < 4; k++)
            s[k] = get_squares(square + i + k * SIMD_LANES);
        sum = add_four(sum, s);
    }
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sum = add_one(sum, get_squares(square + i));
    if (i < n) {
        float p[SIMD_LANES];
        pad(p, square + i, n - i);
        sum = add_one(sum, get_squares(p));
    }
    return sum_lanes_wide(sum.l);
}

/* ---- Kernel of the codec int8 ---- */

/* Packs sixteen integers below 256 into sixteen bytes. */
STEP __m128i pack_bytes(__m256i low, __m256i high)
{
    __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

/* Parameters of simd_byte_put() in registers, and the constant that is added to a float to round it
 * (ROUND_BIAS in ref.c). */
struct byting
{
    __m256 shift, inv, step, bias;
};

/* Writes sixteen values as bytes (codes of int8). Adding `bias` to a product rounds it, and the low
 * byte of the sum is the code. Returns the squared errors. */
STEP struct squares byte_step(const struct byting *g, uint8_t *code, const float *v)
{
    struct squares s;
    __m256i k[2];
    for (int h = 0; h < 2; h++) {
        __m256 a = _mm256_mul_ps(_mm256_loadu_ps(v + h * HALF), g->shift);
        __m256 biased = _mm256_add_ps(_mm256_mul_ps(a, g->inv), g->bias);
        k[h] = _mm256_and_si256(_mm256_castps_si256(biased), _mm256_set1_epi32(0xff));
        __m256 q = _mm256_sub_ps(biased, g->bias);
        __m256 d = _mm256_sub_ps(a, _mm256_mul_ps(q, g->step));
        s.l[h] = _mm256_mul_ps(d, d);
    }
    _mm_storeu_si128((__m128i *)(void *)code, pack_bytes(k[0], k[1]));
    return s;
}

AVX2 static double byte_put_avx2(const struct simd_bytes *grid, uint8_t *restrict code,
                                 const float *restrict v, size_t n)
{
    struct byting g = {_mm256_set1_ps(grid->shift), _mm256_set1_ps(grid->inv),
                       _mm256_set1_ps(grid->step), _mm256_set1_ps(0x1.8p23f)};
    struct squares sum = no_squares();
    size_t i = 0;
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES) {
        struct squares s[4];
        for (size_t k = 0; k < 4; k++)
            s[k] = byte_step(&g, code + i + k * SIMD_LANES, v + i + k * SIMD_LANES);
        sum = add_four(sum, s);
    }
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sum = add_one(sum, byte_step(&g, code + i, v + i));
    if (i < n) {
        float p[SIMD_LANES];
        uint8_t codes[SIMD_LANES];
        pad(p, v + i, n - i);
        sum = add_one(sum, byte_step(&g, codes, p));
        memcpy(code + i, codes, n - i);
    }
    return sum_lanes_wide(sum.l);
}

/* ---- Kernels of the codec nat: powers of two ---- */

enum { MANTISSA = 23 };

/* Draws 23 random bits for each of n elements, or for n + 1 elements if n is odd. The caller adds
 * the bits to the mantissa of the element. The function is plain C, because AVX2 has no 64-bit
 * multiplication. */
STEP void draw_powers(const struct simd_powers *p, uint32_t *below, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        uint64_t word = rng_at(p->key, (p->first + i) / 2);
        bytes_put_u64((uint8_t *)(below + i), word >> 9 & UINT64_C(0x007fffff007fffff));
    }
}

/* Parameters and state of simd_power_put() in registers. */
struct powering
{
    __m256 factor, shift;
    __m128i top; /* Largest exponent byte that each lane has written so far. */
};

/* Rounds sixteen values to powers of two: writes their exponent bytes and sign bits. `below` holds
 * the numbers that are added to the mantissas to round them. Returns the squared errors. */
STEP struct squares power_step(struct powering *p, uint8_t *exponent, uint8_t *sign, const float *v,
                               const uint32_t *below)
{
    struct squares s;
    __m256i e[2];
    for (int h = 0; h < 2; h++) {
        __m256 f = _mm256_loadu_ps(v + h * HALF);
        __m256i bits = _mm256_castps_si256(abs_of(f));
        __m256i sum = _mm256_add_epi32(bits, _mm256_loadu_si256((const void *)(below + h * HALF)));
        __m256i normal = _mm256_cmpgt_epi32(bits, _mm256_set1_epi32((1 << MANTISSA) - 1));
        e[h] = _mm256_and_si256(_mm256_srli_epi32(sum, MANTISSA), normal);
        sign[h] = (uint8_t)_mm256_movemask_ps(_mm256_and_ps(f, _mm256_castsi256_ps(normal)));
        __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(e[h], MANTISSA));
        __m256 d = _mm256_sub_ps(abs_of(f), _mm256_mul_ps(power, p->factor));
        d = _mm256_mul_ps(d, p->shift);
        s.l[h] = _mm256_mul_ps(d, d);
    }
    __m128i bytes = pack_bytes(e[0], e[1]);
    p->top = _mm_max_epu8(p->top, bytes);
    _mm_storeu_si128((__m128i *)(void *)exponent, bytes);
    return s;
}

/* Rounds the last n < 16 elements, in a copy that is padded with zeros. */
STEP struct squares power_tail(struct powering *p, uint8_t *exponent, uint8_t *sign, const float *v,
                               const uint32_t *below, size_t n)
{
    float padded[SIMD_LANES];
    uint8_t bytes[SIMD_LANES];
    uint8_t bits[SIMD_LANES / 8];
    pad(padded, v, n);
    struct squares s = power_step(p, bytes, bits, padded, below);
    memcpy(exponent, bytes, n);
    memcpy(sign, bits, (n + 7) / 8);
    return s;
}

AVX2 static double power_put_avx2(struct simd_powers *to, uint8_t *restrict dst,
                                  const float *restrict v, size_t n)
{
    struct powering p = {_mm256_set1_ps(to->factor), _mm256_set1_ps(to->shift),
                         _mm_setzero_si128()};
    struct squares sum = no_squares();
    uint32_t below[SIMD_CALL_MAX + SIMD_LANES];
    uint8_t *sign = dst + n;
    if (to->random)
        draw_powers(to, below, n);
    else
        for (size_t i = 0; i < n; i++)
            below[i] = 1u << (MANTISSA - 1);
    size_t i = 0;
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES) {
        struct squares s[4];
        for (size_t k = 0, at = i; k < 4; k++, at += SIMD_LANES)
            s[k] = power_step(&p, dst + at, sign + at / 8, v + at, below + at);
        sum = add_four(sum, s);
    }
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        sum = add_one(sum, power_step(&p, dst + i, sign + i / 8, v + i, below + i));
    if (i < n) {
        memset(below + n, 0, SIMD_LANES * sizeof *below);
        sum = add_one(sum, power_tail(&p, dst + i, sign + i / 8, v + i, below + i, n - i));
    }
    uint8_t highest[SIMD_LANES];
    _mm_storeu_si128((__m128i *)(void *)highest, p.top);
    to->top = 0;
    for (size_t j = 0; j < SIMD_LANES; j++)
        to->top = highest[j] > to->top ? highest[j] : to->top;
    return sum_lanes_wide(sum.l);
}

/* Decodes eight values and adds them to y. `bits` holds their sign bits. */
STEP void power_back(float *y, const uint8_t *exponent, int bits, __m256 factor)
{
    __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)exponent));
    __m256 v = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(e, MANTISSA)), factor);
    v = _mm256_xor_ps(v, signs_of(bits));
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), v));
}

AVX2 static void power_add_avx2(float *restrict y, const uint8_t *restrict exponent,
                                const uint8_t *restrict sign, size_t n, float factor)
{
    __m256 f = _mm256_set1_ps(factor);
    size_t i = 0;
    for (; i + HALF <= n; i += HALF)
        power_back(y + i, exponent + i, sign[i / HALF], f);
    if (i < n) {
        float p[SIMD_LANES];
        uint8_t last[HALF] = {0};
        pad(p, y + i, n - i);
        memcpy(last, exponent + i, n - i);
        power_back(p, last, sign[i / HALF], f);
        memcpy(y + i, p, (n - i) * sizeof *y);
    }
}

const struct simd_cast_table simd_avx2_cast = {
    .half_put = half_put_avx2,
    .half_add = half_add_avx2,
    .byte_put = byte_put_avx2,
    .power_put = power_put_avx2,
    .power_add = power_add_avx2,
    .sum_squares = sum_squares_avx2,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx2_cast_none;

#endif
