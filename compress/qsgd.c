/* compress/qsgd.c -- integer levels of each bucket's norm (QSGD and its kin).
 *
 * Block of n:  scale f32 | n codes of `bits` bits: |level|, then the sign bit
 *
 * With N the bucket's norm and s levels, a = s |v| / N is rounded to an
 * integer level, to nearest even (round=near) or up with the probability of
 * its fraction (round=sr; Alistarh et al. 2017, Section 3.1). C(v) = scale *
 * sign * level, where scale is
 *   raw    N / s: with sr unbiased, but no contraction once omega >= 1;
 *   inv1w  N / s / (1 + omega), omega = min(n / s^2, sqrt(n) / s): a
 *          contraction of 1 / (1 + omega) on average (Koloskova et al. 2019);
 *   ls     <v, q> / |q|^2 for the levels q drawn: the least error those codes
 *          can have, never above |v|^2, at the same price.
 * CHOCO needs contraction and not unbiasedness, so near and ls are the
 * defaults, with the bucket's largest value as its norm: with 7 levels in
 * buckets of 512 Gaussian values 0.982, against 0.388 for the 2-norm.
 */
#include "compress/codec.h"

#include "compress/bytes.h"
#include "compress/pack.h"

#include "nn/rng.h"
#include "nn/vec.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

enum {
    QSGD_BITS,
    QSGD_BLOCK,
    QSGD_NORM,
    QSGD_ROUND,
    QSGD_SCALE,
    QSGD_LEVELS
};
enum {
    NORM_MAX,
    NORM_L2
};
enum {
    ROUND_NEAR,
    ROUND_SR
};
enum {
    SCALE_LS,
    SCALE_INV1W,
    SCALE_RAW
};
enum {
    BITS_DEFAULT = 4,
    BITS_MAX = 16
};

static const char *const norm_words[] = {"max", "l2", NULL};
static const char *const round_words[] = {"near", "sr", NULL};
static const char *const scale_words[] = {"ls", "inv1w", "raw", NULL};

static const struct codec_param qsgd_params[] = {
    {.name = "bits", .kind = CODEC_INTEGER, .low = 2, .high = BITS_MAX,
     .step = 1, .preset = CODEC_UNSET, .settled = true,
     .wants = "an integer from 2 to 16"},
    {.name = "bucket", .kind = CODEC_INTEGER, .high = CODEC_BLOCK_MAX,
     .step = 8, .preset = 512,
     .wants = "0 (all) or a multiple of 8 up to 1048576"},
    {.name = "norm", .kind = CODEC_WORD, .words = norm_words,
     .preset = NORM_MAX, .wants = "max or l2"},
    {.name = "round", .kind = CODEC_WORD, .option = true,
     .words = round_words, .preset = ROUND_NEAR, .wants = "near or sr"},
    {.name = "scale", .kind = CODEC_WORD, .option = true,
     .words = scale_words, .preset = SCALE_LS, .wants = "ls, inv1w or raw"},
    {.name = "levels", .kind = CODEC_INTEGER, .option = true, .low = 1,
     .high = (1 << (BITS_MAX - 1)) - 1, .step = 1, .preset = CODEC_UNSET,
     .settled = true, .wants = "an integer from 1 to 32767"},
    {.name = NULL},
};

/* Bits for 0..levels and a sign. */
static int64_t bits_for(int64_t levels)
{
    int64_t bits = 2;
    while ((INT64_C(1) << (bits - 1)) - 1 < levels)
        bits++;
    return bits;
}

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
    snprintf(why, n, "levels=%d takes %d bits with the sign, found %d",
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

/* The bucket's norm over 2^e, and the two exact factors that take |v| to
 * levels. Dividing by a power of two near the largest value first keeps tiny
 * and huge buckets inside a float's range, and is exact. */
struct grid
{
    float shift;  /* 2^-e. */
    float inv;    /* levels / (norm * 2^-e). */
    float levels;
};

static struct grid grid_of(float levels, float max, double norm)
{
    float shift = bytes_pow2(-bytes_exponent(max));
    float inv = levels / (float)(norm * (double)shift);
    return (struct grid){shift, inv, levels};
}

/* |v| on the grid. Rounding can put the largest just above `levels`. */
static inline float on_grid(float v, struct grid g)
{
    float a = __builtin_fabsf(v) * g.shift * g.inv;
    return a < g.levels ? a : g.levels;
}

static inline float with_sign_of(float a, float v)
{
    uint32_t sign = bytes_of_float(v) & 0x80000000u;
    return bytes_to_float(bytes_of_float(a) | sign);
}

/* Adding 2^23 leaves a float no room for a fraction: rounds to nearest even. */
VEC_CLONES static void levels_near(float *restrict q, const float *restrict v,
                                   size_t n, struct grid g)
{
    for (size_t i = 0; i < n; i++) {
        float level = (on_grid(v[i], g) + 0x1p23f) - 0x1p23f;
        q[i] = with_sign_of(level, v[i]);
    }
}

/* Number `first + i` of the stream, 24 bits of half a word each. first is
 * even. */
VEC_CLONES static void units(float *restrict u, uint64_t key, size_t first,
                             size_t n)
{
    for (size_t i = 0; i < (n + 1) / 2; i++) {
        uint64_t bits = rng_at(key, first / 2 + i);
        u[2 * i] = (float)(int32_t)((uint32_t)bits >> 8) * 0x1p-24f;
        u[2 * i + 1] = (float)(int32_t)(bits >> 40) * 0x1p-24f;
    }
}

VEC_CLONES static void levels_random(float *restrict q,
                                     const float *restrict v,
                                     const float *restrict u, size_t n,
                                     struct grid g)
{
    for (size_t i = 0; i < n; i++) {
        float a = on_grid(v[i], g);
        float low = (float)(int32_t)a;
        float level = low + (u[i] < a - low ? 1.0f : 0.0f);
        q[i] = with_sign_of(level, v[i]);
    }
}

static void quantise(const int64_t *arg, const struct codec_block *b,
                     struct grid g)
{
    float *q = b->work;
    if (arg[QSGD_ROUND] == ROUND_NEAR) {
        levels_near(q, b->v, b->n, g);
        return;
    }
    float u[CODEC_CHUNK];
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        units(u, b->key, b->first + at, count);
        levels_random(q + at, b->v + at, u, count, g);
    }
}

static double scale_of(const int64_t *arg, const struct codec_block *b,
                       double norm)
{
    double s = (double)arg[QSGD_LEVELS];
    double n = (double)b->n;
    switch (arg[QSGD_SCALE]) {
    case SCALE_LS: {
        double q2 = vec_norm2(b->work, b->n);
        return q2 > 0.0 ? vec_dot(b->v, b->work, b->n) / q2 : 0.0;
    }
    case SCALE_INV1W:
        return norm / s / (1.0 + fmin(n / (s * s), sqrt(n) / s));
    default:
        return norm / s;
    }
}

/* A level of q == -0 gets no sign. Without a branch: signs are a coin toss.
 * Returns the highest level. */
VEC_CLONES static unsigned codes_of(uint16_t *restrict code,
                                    const float *restrict q, size_t n,
                                    unsigned bits)
{
    unsigned top = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned level = (unsigned)(int32_t)__builtin_fabsf(q[i]);
        unsigned sign = q[i] < 0.0f;
        code[i] = (uint16_t)(level | sign << (bits - 1));
        top = level > top ? level : top;
    }
    return top;
}

/* A 2-norm may pass the limit where no value decoded from it does. */
static bool in_range(float scale, unsigned top)
{
    return scale < CODEC_LIMIT && scale * (float)top < CODEC_LIMIT;
}

static bool qsgd_encode(const int64_t *arg, const struct codec_block *b,
                        uint8_t *dst)
{
    unsigned bits = (unsigned)arg[QSGD_BITS];
    float scale = 0.0f;
    if (b->max > 0.0f) {
        bool l2 = arg[QSGD_NORM] == NORM_L2;
        double norm = l2 ? sqrt(b->x2) : (double)b->max;
        quantise(arg, b, grid_of((float)arg[QSGD_LEVELS], b->max, norm));
        scale = (float)scale_of(arg, b, norm);
    }
    bytes_put_float(dst, scale);
    if (!(scale > 0.0f)) {
        memset(dst + 4, 0, qsgd_size(arg, b->n) - 4);
        return true;
    }
    unsigned top = 0;
    uint16_t code[CODEC_CHUNK];
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        unsigned level = codes_of(code, b->work + at, count, bits);
        top = level > top ? level : top;
        pack_put(dst + 4 + at / 8 * bits, code, count, bits);
    }
    return in_range(scale, top);
}

/* The highest level, or UINT_MAX where a code is the sign of nothing. */
VEC_CLONES static unsigned highest(const uint16_t *code, size_t n,
                                   unsigned sign)
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

VEC_CLONES static void values_of(const uint16_t *restrict code, size_t n,
                                 unsigned bits, float scale,
                                 float *restrict v)
{
    unsigned sign = 1u << (bits - 1);
    for (size_t i = 0; i < n; i++) {
        float a = scale * (float)(int32_t)(code[i] & (sign - 1));
        uint32_t top = (uint32_t)(code[i] & sign) << (32 - bits);
        v[i] = bytes_to_float(bytes_of_float(a) | top);
    }
}

static void qsgd_decode(const int64_t *arg, const uint8_t *src, size_t n,
                        size_t at, size_t count, float *v)
{
    (void)n;
    unsigned bits = (unsigned)arg[QSGD_BITS];
    uint16_t code[CODEC_CHUNK];
    pack_get(src + 4 + at / 8 * bits, code, count, bits);
    values_of(code, count, bits, bytes_get_float(src), v);
}

static const struct codec_values qsgd_values = {
    qsgd_block, qsgd_size, qsgd_encode, qsgd_check, qsgd_decode,
};

const struct codec codec_qsgd = {.name = "qsgd", .params = qsgd_params,
                                 .settle = qsgd_settle,
                                 .values = &qsgd_values};
