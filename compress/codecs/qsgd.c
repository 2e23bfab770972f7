/* compress/codecs/qsgd.c -- values codec "qsgd": integer levels of each bucket's norm.
 *
 * Encoded bucket of n values:  scale f32 | n codes of `bits` bits
 *                              code: |level| in the low bits, the sign in the top bit
 *
 * Let N be the norm of the bucket (its largest |v| or its 2-norm), and s the number of levels. The
 * number a = s |v| / N is rounded to an integer, the level:
 *
 *   round=near   to nearest even
 *   round=sr     up with a probability equal to the fraction (Alistarh et al. 2017, section 3.1)
 *
 * The decoded value is C(v) = scale * sign * level, with one of these scales:
 *
 *   scale=raw    N / s. Unbiased with round=sr, but not a contraction if omega >= 1
 *   scale=inv1w  N / s / (1 + omega) with omega = min(n / s^2, sqrt(n) / s): on average a
 *                contraction with delta = 1 / (1 + omega) (Koloskova et al. 2019)
 *   scale=ls     <v, q> / |q|^2 for the levels q: the smallest error for these codes, never above
 *                |v|^2, with the same number of bytes
 *
 * CHOCO-SGD needs a contraction and not an unbiased codec. Therefore the defaults are round=near,
 * scale=ls and the largest |v| as norm. For 7 levels and buckets of 512 Gaussian values, the
 * contraction delta is 0.982 with the largest |v| and 0.388 with the 2-norm.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/coding/pack.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* Indices of the codec's arguments in `arg`, the array of argument values that its functions
 * get. */
enum { QSGD_BITS, QSGD_BLOCK, QSGD_NORM, QSGD_ROUND, QSGD_SCALE, QSGD_LEVELS };
enum { NORM_MAX, NORM_L2 };
enum { SCALE_LS, SCALE_INV1W, SCALE_RAW };
enum { BITS_DEFAULT = 4, BITS_MAX = 16 };

static const char *const norm_choices[] = {"max", "l2", NULL};
static const char *const scale_choices[] = {"ls", "inv1w", "raw", NULL};

static const struct codec_param qsgd_params[] = {
    {.name = "bits",
     .kind = CODEC_INTEGER,
     .low = 2,
     .high = BITS_MAX,
     .step = 1,
     .preset = CODEC_UNSET,
     .settled = true,
     .wants = "an integer from 2 to 16"},
    PARAMS_BLOCK("bucket", 512),
    {.name = "norm",
     .kind = CODEC_CHOICE,
     .choices = norm_choices,
     .preset = NORM_MAX,
     .wants = "max or l2"},
    PARAMS_ROUND(ROUND_NEAR),
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_LS,
     .wants = "ls, inv1w or raw"},
    {.name = "levels",
     .kind = CODEC_INTEGER,
     .option = true,
     .low = 1,
     .high = (1 << (BITS_MAX - 1)) - 1,
     .step = 1,
     .preset = CODEC_UNSET,
     .settled = true,
     .wants = "an integer from 1 to 32767"},
    {.name = NULL},
};

/* Returns the number of bits of a code that has a level in 0..levels and a sign. */
static int64_t bits_for(int64_t levels)
{
    int64_t bits = 2;
    while ((INT64_C(1) << (bits - 1)) - 1 < levels)
        bits++;
    return bits;
}

/* Computes `bits` from `levels`, or `levels` from `bits`. If the user gave both, `bits` must be the
 * smallest number that is enough for `levels`. */
static bool qsgd_settle(int64_t *arg, char *why, size_t n)
{
    if (arg[QSGD_LEVELS] == CODEC_UNSET) {
        if (arg[QSGD_BITS] == CODEC_UNSET)
            arg[QSGD_BITS] = BITS_DEFAULT;
        arg[QSGD_LEVELS] = (INT64_C(1) << (arg[QSGD_BITS] - 1)) - 1;
        return true;
    }
    int64_t bits = bits_for(arg[QSGD_LEVELS]);
    if (arg[QSGD_BITS] == CODEC_UNSET)
        arg[QSGD_BITS] = bits;
    if (arg[QSGD_BITS] == bits)
        return true;
    snprintf(why, n, "levels=%d needs %d bits (one of them for the sign), found %d bits",
             (int)arg[QSGD_LEVELS], (int)bits, (int)arg[QSGD_BITS]);
    return false;
}

static size_t qsgd_block(const int64_t *arg)
{
    return (size_t)arg[QSGD_BLOCK];
}

static size_t qsgd_size(const int64_t *arg, size_t n)
{
    return 4 + pack_size(n, (unsigned)arg[QSGD_BITS]);
}

/* Constants that map the values of a bucket to the grid of levels: the position of v on the grid is
 * v * levels / norm. If the norm is very small, the factor levels / norm is too large for a float.
 * If the norm is very small or very large, squared errors are out of range. In these cases values
 * and errors are first multiplied by `shift`, a power of two near 1 / max, which is exact. */
struct range
{
    float shift;
    /* Distance between two neighbouring levels, norm / levels. Computed from the rounded factor of
     * the grid, so that it matches the positions. */
    double per_level;
    struct simd_grid grid;
};

/* In nearly all buckets the values have ordinary sizes. `shift` is then 1, which saves one
 * multiplication per value. */
static struct range range_of(float levels, float max, double norm)
{
    int e = bytes_exponent(max);
    if (e >= -40 && e <= 40) {
        float factor = levels / (float)norm;
        return (struct range){1.0f, 1.0 / (double)factor, {factor, 1.0f, levels}};
    }
    float near_one = bytes_pow2(-e);
    float inv = levels / (float)(norm * (double)near_one);
    return (struct range){
        near_one, 1.0 / ((double)inv * (double)near_one), {near_one, inv, levels}};
}

/* Sums over the levels q in b->work: aq = <a, q> and q2 = |q|^2, where a are the positions of the
 * values on the grid. */
struct products
{
    double aq, q2;
};

/* Rounds the values of a bucket to levels, which are stored in b->work. Random rounding uses the
 * index of an element in the whole vector, so the result does not depend on the size of the
 * chunks. */
static struct products quantise(const int64_t *arg, const struct codec_block *b,
                                const struct simd_grid *g)
{
    struct products p = {0};
    float u[CODEC_CHUNK];
    bool random = arg[QSGD_ROUND] == ROUND_SR;
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        if (random)
            simd_coin(u, b->key, b->first + at, count);
        struct simd_levels l = simd_round(g, b->work + at, b->v + at, random ? u : NULL, count);
        p.aq += (double)l.aq;
        p.q2 += (double)l.q2;
    }
    return p;
}

/* Returns the scale for scale=ls, inv1w or raw (see the top of this file). */
static double scale_of(const int64_t *arg, size_t size, double norm, const struct range *r,
                       struct products p)
{
    double s = (double)arg[QSGD_LEVELS];
    double n = (double)size;
    switch (arg[QSGD_SCALE]) {
    case SCALE_LS:
        return p.q2 > 0.0 ? p.aq / p.q2 * r->per_level : 0.0;
    case SCALE_INV1W:
        return norm / s / (1.0 + fmin(n / (s * s), sqrt(n) / s));
    default:
        return norm / s;
    }
}

/* Returns true if the scale and the decoded value of level `top` are in range. The 2-norm of a
 * bucket may exceed the limit although no decoded value does. */
static bool in_range(float scale, unsigned top)
{
    return scale < CODEC_LIMIT && scale * (float)top < CODEC_LIMIT;
}

/* Returns true if the scale is in range for the highest level that occurs in q[0..n). Called only
 * if the scale is too large for the highest possible level. Such a scale can be valid with
 * scale=ls, if the highest possible level does not occur. */
static bool levels_in_range(float scale, const float *q, size_t n)
{
    float top = 0.0f;
    for (size_t i = 0; i < n; i++)
        top = __builtin_fabsf(q[i]) > top ? __builtin_fabsf(q[i]) : top;
    return in_range(scale, (unsigned)top);
}

/* Packs the levels in b->work into codes at dst. Returns the squared error of the bucket. */
static double put_codes(const struct codec_block *b, const struct simd_coder *c, uint8_t *dst)
{
    uint16_t code[CODEC_CHUNK];
    double e2 = 0.0;
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        e2 += (double)simd_code(c, code, b->work + at, b->v + at, count);
        pack_put(dst + at / 8 * c->bits, code, count, c->bits);
    }
    return e2 / (double)c->shift / (double)c->shift;
}

/* Rounds the values of a bucket to levels, which are stored in b->work. Returns the scale of the
 * bucket and the constants for encoding it. */
static struct simd_coder qsgd_levels(const int64_t *arg, const struct codec_block *b)
{
    struct simd_coder c = {.bits = (unsigned)arg[QSGD_BITS]};
    if (b->max > 0.0f) {
        double norm = arg[QSGD_NORM] == NORM_L2 ? sqrt(b->x2) : (double)b->max;
        struct range r = range_of((float)arg[QSGD_LEVELS], b->max, norm);
        struct products p = quantise(arg, b, &r.grid);
        c.shift = r.shift;
        c.scale = (float)scale_of(arg, b->n, norm, &r, p);
    }
    return c;
}

/* Writes the scale and the codes of a bucket. If the scale is 0, all codes are 0. Returns the
 * squared error, or a negative number if a value would be out of range. */
static double qsgd_put(const int64_t *arg, const struct codec_block *b, const struct simd_coder *c,
                       uint8_t *dst)
{
    bytes_put_float(dst, c->scale);
    if (!(c->scale > 0.0f)) {
        memset(dst + 4, 0, qsgd_size(arg, b->n) - 4);
        return b->x2;
    }
    if (!in_range(c->scale, (unsigned)arg[QSGD_LEVELS])
        && !levels_in_range(c->scale, b->work, b->n))
        return -1.0;
    return put_codes(b, c, dst + 4);
}

/* The next bucket is rounded while the CPU computes the division for the scale of the present
 * bucket. With buckets of 512 the CPU would otherwise wait for the division. */
static double qsgd_encode_all(const int64_t *arg, const struct codec_block *b, size_t count,
                              uint8_t *dst)
{
    struct simd_coder last = qsgd_levels(arg, &b[0]);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        struct simd_coder c = last;
        if (i + 1 < count)
            last = qsgd_levels(arg, &b[i + 1]);
        double e2 = qsgd_put(arg, &b[i], &c, dst);
        if (!(e2 >= 0.0))
            return -1.0;
        sum += e2;
        dst += qsgd_size(arg, b[i].n);
    }
    return sum;
}

/* Returns the highest level of n codes, or UINT_MAX if a code is a zero with a sign bit, which is
 * invalid. `sign` is the sign bit of a code. */
VEC_CLONES static unsigned highest(const uint16_t *code, size_t n, unsigned sign)
{
    unsigned bad = 0;
    unsigned top = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned level = code[i] & (sign - 1);
        top = level > top ? level : top;
        bad |= code[i] == sign;
    }
    return bad ? UINT_MAX : top;
}

/* The decoded value of the highest level in the bucket must be in range. If the scale is 0, all
 * codes must be 0. */
static bool qsgd_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    unsigned bits = (unsigned)arg[QSGD_BITS];
    unsigned levels = (unsigned)arg[QSGD_LEVELS];
    uint32_t scale = bytes_get_u32(src);
    if (scale >= CODEC_LIMIT_BITS || !pack_padded(src + 4, n, bits))
        return false;
    unsigned top = 0;
    uint16_t code[CODEC_CHUNK];
    for (size_t at = 0; at < n; at += CODEC_CHUNK) {
        size_t count = n - at < CODEC_CHUNK ? n - at : CODEC_CHUNK;
        pack_get(src + 4 + at / 8 * bits, code, count, bits);
        unsigned level = highest(code, count, 1u << (bits - 1));
        if (level > levels)
            return false;
        top = level > top ? level : top;
    }
    return in_range(bytes_to_float(scale), top) && (scale != 0 || top == 0);
}

/* Returns the decoded value: scale * level with the sign of the code. The code of level 0 has no
 * sign bit, so the result is never -0. */
static inline float value_of(uint16_t code, unsigned bits, float scale)
{
    unsigned sign = 1u << (bits - 1);
    float a = scale * (float)(int32_t)(code & (sign - 1));
    uint32_t top = (uint32_t)(code & sign) << (32 - bits);
    return bytes_to_float(bytes_of_float(a) | top);
}

VEC_CLONES static void values_of(const uint16_t *restrict code, size_t n, unsigned bits,
                                 float scale, float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = value_of(code[i], bits, scale);
}

VEC_CLONES static void add_values(const uint16_t *restrict code, size_t n, unsigned bits,
                                  float scale, float *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += value_of(code[i], bits, scale);
}

/* Decodes n 8-bit codes, which need no unpacking, and adds the values to y. */
VEC_CLONES static void add_bytes(const uint8_t *restrict code, size_t n, float scale,
                                 float *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += value_of(code[i], 8, scale);
}

static void qsgd_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)n;
    unsigned bits = (unsigned)arg[QSGD_BITS];
    uint16_t code[CODEC_CHUNK];
    pack_get(src + 4 + at / 8 * bits, code, count, bits);
    values_of(code, count, bits, bytes_get_float(src), v);
}

static void qsgd_add(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                     float *y)
{
    (void)n;
    unsigned bits = (unsigned)arg[QSGD_BITS];
    float scale = bytes_get_float(src);
    src += 4 + at / 8 * bits;
    if (bits == 4) {
        float value[16];
        for (uint16_t i = 0; i < 16; i++)
            value[i] = value_of(i, 4, scale);
        simd_nibble_add(y, src, count, value);
    } else if (bits == 8) {
        add_bytes(src, count, scale, y);
    } else {
        uint16_t code[CODEC_CHUNK];
        pack_get(src, code, count, bits);
        add_values(code, count, bits, scale, y);
    }
}

static const struct codec_values qsgd_values = {
    .block = qsgd_block,
    .size = qsgd_size,
    .encode_all = qsgd_encode_all,
    .check = qsgd_check,
    .decode = qsgd_decode,
    .add = qsgd_add,
};

extern const struct codec codec_qsgd;
const struct codec codec_qsgd = {
    .name = "qsgd",
    .about = "integer levels relative to the norm of each bucket",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / bucket",
    .unbiased = "round=sr,scale=raw",
    .source = "Alistarh et al. 2017",
    .params = qsgd_params,
    .settle = qsgd_settle,
    .values = &qsgd_values,
};
