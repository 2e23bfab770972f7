/* compress/simd/ref.c -- reference kernels in plain C; vector kernels must give the same bits.
 *
 * The code is written for readability. Sums nevertheless use SIMD_LANES partial sums (lanes),
 * because floating-point addition is not associative and the vector kernels add in this order.
 */
#include "compress/simd/table.h"

enum {
    LANE = SIMD_LANES - 1 /* Mask of a lane number: element i is added to lane i & LANE. */
};

/* Returns the sum of the lanes. Like the vector kernels, adds the upper half of the lanes to the
 * lower half until one lane is left. */
static double sum_lanes(double l[SIMD_LANES])
{
    for (size_t half = SIMD_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            l[j] += l[j + half];
    return l[0];
}

/* Returns the sum of float lanes, added in the order of sum_lanes(). For sums of at most
 * SIMD_CALL_MAX elements. */
static float sum_lanes_float(float l[SIMD_LANES])
{
    for (size_t half = SIMD_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            l[j] += l[j + half];
    return l[0];
}

static inline float abs_of(float f)
{
    return __builtin_fabsf(f);
}

/* Returns element i of x - x_hat. Adding 0 turns -0 into +0, so that a zero has only one code. */
static inline float difference(const float *x, const float *x_hat, size_t i)
{
    return (x[i] - (x_hat != NULL ? x_hat[i] : 0.0f)) + 0.0f;
}

/* Loads one block. Infinity and NaN have the largest bit patterns, so the maximum of the bit
 * patterns detects them. */
static struct simd_sums load_block(float *restrict v, const float *restrict x,
                                   const float *restrict x_hat, size_t n, unsigned how)
{
    double x2[SIMD_LANES] = {0};
    double l1[SIMD_LANES] = {0};
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        float d = difference(x, x_hat, i);
        uint32_t bits = bytes_of_float(abs_of(d));
        double a = (double)abs_of(d);
        if (v != NULL)
            v[i] = d;
        max = bits > max ? bits : max;
        l1[i & LANE] += a;
        x2[i & LANE] += a * a;
    }
    return (struct simd_sums){sum_lanes(x2), how & SIMD_L1 ? sum_lanes(l1) : 0.0, max};
}

/* The partial sums (lanes) start at zero for each block, because every block has its own sums. */
static void load_ref(struct simd_sums *sums, float *restrict v, const struct simd_source *s)
{
    for (size_t at = 0; at < s->n; at += s->block) {
        size_t n = s->n - at < s->block ? s->n - at : s->block;
        *sums++ = load_block(v != NULL ? v + at : NULL, s->x + at,
                             s->x_hat != NULL ? s->x_hat + at : NULL, n, s->how);
    }
}

/* Copies the sign bit of each float. A zero gets the bit 0, because v contains no -0 (see
 * difference()). */
static void sign_put_ref(uint8_t *restrict dst, const float *restrict v, size_t n)
{
    memset(dst, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++)
        dst[i / 8] |= (uint8_t)(bytes_of_float(v[i]) >> 31 << (i % 8));
}

/* Writes the sign bits of a difference without storing the difference. Only the codec `sign` uses
 * this kernel, because it can write the bits before it knows the scale. */
static struct simd_sums load_signs_ref(uint8_t *restrict dst, const float *restrict x,
                                       const float *restrict x_hat, size_t n, unsigned how)
{
    double x2[SIMD_LANES] = {0};
    double l1[SIMD_LANES] = {0};
    uint32_t max = 0;
    /* This kernel always computes the sum of |v| and never prefetches, so the flags in `how` do not
     * matter. */
    (void)how;
    memset(dst, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bytes_of_float(difference(x, x_hat, i));
        uint32_t abs = bits & 0x7fffffffu;
        double a = (double)bytes_to_float(abs);
        dst[i / 8] |= (uint8_t)(bits >> 31 << (i % 8));
        max = abs > max ? abs : max;
        l1[i & LANE] += a;
        x2[i & LANE] += a * a;
    }
    return (struct simd_sums){sum_lanes(x2), sum_lanes(l1), max};
}

/* Bit i of src is the sign of element i. Bits in a byte are numbered from the low end. */
static void sign_add_ref(float *restrict y, const uint8_t *restrict src, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        y[i] += src[i / 8] >> (i % 8) & 1 ? -scale : scale;
}

/* Multiplies each value by both factors and writes the product as binary16. The error is measured
 * between product and binary16 code. This is exact: the factors are powers of two, so undoing the
 * multiplication adds no error. */
static float half_put_ref(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                          float second)
{
    float e2[SIMD_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        float f = v[i] * first * second;
        uint16_t half = simd_half_of(f);
        float d = f - simd_half_to_float(half);
        bytes_put_u16(dst + 2 * i, half);
        e2[i & LANE] += d * d;
    }
    return sum_lanes_float(e2);
}

/* The factors are multiplied one after the other, because their product may be out of the range of
 * a float. */
static void half_add_ref(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                         float second)
{
    for (size_t i = 0; i < n; i++)
        y[i] += simd_half_to_float(bytes_get_u16(src + 2 * i)) * first * second;
}

/* Adds squares in the order that simd.h defines: each of sixteen lanes (partial sums) adds floats,
 * and then the lanes are added up as doubles. */
static double sum_squares_ref(const float *square, size_t n)
{
    float lane[SIMD_LANES] = {0};
    double l[SIMD_LANES];
    size_t i = 0;
    /* Four squares are added to each other first, and then to the lane. The chain of additions that
     * depend on each other is then a quarter as long. */
    for (; i + 4 * SIMD_LANES <= n; i += 4 * SIMD_LANES)
        for (size_t j = 0; j < SIMD_LANES; j++) {
            const float *s = square + i + j;
            lane[j] += (s[0] + s[SIMD_LANES]) + (s[2 * SIMD_LANES] + s[3 * SIMD_LANES]);
        }
    for (; i < n; i++)
        lane[i & LANE] += square[i];
    for (size_t j = 0; j < SIMD_LANES; j++)
        l[j] = (double)lane[j];
    return sum_lanes(l);
}

/* Constant that rounds: adding it to a float of magnitude below 2^22 rounds the float. The low bits
 * of the sum are then the nearest integer (ties to even) in two's complement. */
#define ROUND_BIAS 0x1.8p23f

static double byte_put_ref(const struct simd_bytes *g, uint8_t *restrict code,
                           const float *restrict v, size_t n)
{
    float square[SIMD_CALL_MAX];
    for (size_t i = 0; i < n; i++) {
        float a = v[i] * g->shift;
        float biased = a * g->inv + ROUND_BIAS;
        code[i] = (uint8_t)bytes_of_float(biased);
        float d = a - (biased - ROUND_BIAS) * g->step;
        square[i] = d * d;
    }
    return sum_squares_ref(square, n);
}

enum {
    MANTISSA = 23 /* Number of mantissa bits of a float. */
};

/* Returns 23 bits that are added to the mantissa of element i: random bits, or a half for rounding
 * to nearest. */
static uint32_t power_bits(const struct simd_powers *p, size_t i)
{
    if (!p->random)
        return 1u << (MANTISSA - 1);
    uint64_t word = rng_at(p->key, (p->first + i) / 2);
    return (uint32_t)(i % 2 != 0 ? word >> 32 : word) >> 9;
}

/* Adding random bits to the mantissa carries into the exponent with a probability equal to the
 * fraction of the mantissa. */
static double power_put_ref(struct simd_powers *p, uint8_t *restrict dst, const float *restrict v,
                            size_t n)
{
    float square[SIMD_CALL_MAX];
    memset(dst + n, 0, (n + 7) / 8);
    p->top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t abs = bytes_of_float(abs_of(v[i]));
        bool normal = abs >= 1u << MANTISSA;
        uint32_t e = normal ? (abs + power_bits(p, i)) >> MANTISSA : 0;
        unsigned minus = normal && v[i] < 0.0f;
        dst[i] = (uint8_t)e;
        dst[n + i / 8] |= (uint8_t)(minus << (i % 8));
        p->top = e > p->top ? e : p->top;
        float d = (abs_of(v[i]) - bytes_to_float(e << MANTISSA) * p->factor) * p->shift;
        square[i] = d * d;
    }
    return sum_squares_ref(square, n);
}

static void power_add_ref(float *restrict y, const uint8_t *restrict exponent,
                          const uint8_t *restrict sign, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++) {
        float power = bytes_to_float((uint32_t)exponent[i] << MANTISSA) * factor;
        y[i] += sign[i / 8] >> (i % 8) & 1 ? -power : power;
    }
}

/* Each 64-bit random word gives two numbers. If n is odd, the last word gives only one. */
static void coin_ref(float *u, uint64_t key, size_t first, size_t n)
{
    simd_coins(u, key, first, n);
}

/* Rounds a to the nearest integer, ties to even, for |a| below 2^22. Adding 1.5 * 2^23 leaves a
 * float no fraction bits, and subtracting the same number gives the integer. */
static inline float level_near(float a)
{
    return (a + 0x1.8p23f) - 0x1.8p23f;
}

/* Rounds |a| up if the random number u in [0, 1) is below the fraction of |a|, which happens with a
 * probability equal to the fraction. Otherwise rounds |a| down. */
static inline float level_random(float a, float u)
{
    float b = abs_of(a);
    float low = (float)(int32_t)b;
    return __builtin_copysignf(u < b - low ? low + 1.0f : low, a);
}

/* In random rounding |a| is first limited to the last level. Rounding up from there would need a
 * code that does not exist. */
static struct simd_levels round_ref(const struct simd_grid *g, float *restrict q,
                                    const float *restrict v, const float *restrict u, size_t n)
{
    float aq[SIMD_LANES] = {0};
    float q2[SIMD_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        float a = v[i] * g->first * g->second;
        if (u != NULL && abs_of(a) > g->levels)
            a = __builtin_copysignf(g->levels, a);
        q[i] = u != NULL ? level_random(a, u[i]) : level_near(a);
        aq[i & LANE] += a * q[i];
        q2[i & LANE] += q[i] * q[i];
    }
    return (struct simd_levels){sum_lanes_float(aq), sum_lanes_float(q2)};
}

/* A level of -0 gets no sign bit, because the comparison -0 < 0 is false. */
static float code_ref(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                      const float *restrict v, size_t n)
{
    float e2[SIMD_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned level = (unsigned)abs_of(q[i]);
        unsigned sign = q[i] < 0.0f;
        float d = (v[i] - c->scale * q[i]) * c->shift;
        code[i] = (uint16_t)(level | sign << (c->bits - 1));
        e2[i & LANE] += d * d;
    }
    return sum_lanes_float(e2);
}

/* value[] holds the decoded values of all sixteen codes, which the caller computes once per
 * block. */
static void nibble_add_ref(float *restrict y, const uint8_t *restrict src, size_t n,
                           const float value[16])
{
    for (size_t i = 0; i < n; i++)
        y[i] += value[src[i / 2] >> (i % 2 * 4) & 15];
}

/* Handles one element d of a scan. If it reaches the threshold, it is collected with its position.
 * Otherwise its square is added to rest2[lane], a partial sum over the elements not collected. */
static inline void scan_one(struct simd_scan *s, double rest2[SIMD_LANES], size_t lane, float d,
                            uint32_t index)
{
    if (bytes_of_float(abs_of(d)) >= s->t) {
        s->value[s->found] = d;
        s->index[s->found++] = index;
    } else {
        rest2[lane] += (double)d * (double)d;
    }
}

/* This kernel writes nothing past the collected elements. Vector kernels store whole registers and
 * therefore write more, so callers provide additional room. */
static uint32_t scan_ref(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                         size_t n, uint32_t first)
{
    double rest2[SIMD_LANES] = {0};
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        float d = difference(x, x_hat, i);
        uint32_t bits = bytes_of_float(abs_of(d));
        max = bits > max ? bits : max;
        scan_one(s, rest2, i & LANE, d, first + (uint32_t)i);
    }
    s->rest2 += sum_lanes(rest2);
    return max;
}

/* Scans values that have already been loaded. value[i] has the position index[i]. */
static void filter_ref(struct simd_scan *s, const float *restrict value,
                       const uint32_t *restrict index, size_t n)
{
    double rest2[SIMD_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        scan_one(s, rest2, i & LANE, value[i], index[i]);
    s->rest2 += sum_lanes(rest2);
}

static const struct simd_load_table ref_load = {
    .load = load_ref,
    .load_signs = load_signs_ref,
    .sign_put = sign_put_ref,
    .sign_add = sign_add_ref,
};

static const struct simd_cast_table ref_cast = {
    .half_put = half_put_ref,
    .half_add = half_add_ref,
    .byte_put = byte_put_ref,
    .power_put = power_put_ref,
    .power_add = power_add_ref,
    .sum_squares = sum_squares_ref,
};

static const struct simd_levels_table ref_levels = {
    .coin = coin_ref,
    .round = round_ref,
    .code = code_ref,
    .nibble_add = nibble_add_ref,
};

static const struct simd_scan_table ref_scan = {
    .scan = scan_ref,
    .filter = filter_ref,
};

const struct simd_table simd_ref = {
    .name = "ref",
    .load = &ref_load,
    .cast = &ref_cast,
    .levels = &ref_levels,
    .scan = &ref_scan,
};
