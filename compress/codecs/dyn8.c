/* compress/codecs/dyn8.c -- eight-bit dynamic tree quantisation (Dettmers 2015).
 *
 * Block of n:  scale f32 | n bytes
 *
 *   byte:  s | 0 .. 0 | 1 | f .. f        s = 1 for v < 0
 *              z zeros      6 - z bits of fraction
 *
 * The zeros say the decade and the bits behind the indicator 1 cut it evenly:
 * entry j of the 2^(6-z) in decade z is
 *
 *   10^-z * (0.1 + 0.9 (j + 1/2) / 2^(6-z))
 *
 * All zeros are an exact 0, which has no sign. 127 magnitudes, 64 of them in
 * the first decade and one in the seventh; the code grows with the magnitude.
 *
 * Values are divided by the block's largest |v|, and the entries by the last
 * one, 0.993, so that the largest value is sent without an error; scale is that
 * value itself. Each value gets the nearest entry. Relative error: up to 7 % in
 * the first decade below the largest value, 11 % in the second, 18 % in the
 * third, 71 % at 2e-6 of it; what is below 2.8e-7 of it becomes 0.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

enum {
    DYN8_BLOCK /* Index of the argument. */
};
enum { DYN8_TOP = 127 };

static const struct codec_param dyn8_params[] = {
    PARAMS_BLOCK("block", 0),
    {.name = NULL},
};

/* The last entry of the table, which stands for the largest value. */
#define LAST (0.1 + 0.9 * 63.5 / 64)

/* Entry j of the `parts` entries of the decade that ends at `decade`, over the last entry. */
#define ENTRY(decade, parts, j) ((decade) * (0.1 + 0.9 * ((j) + 0.5) / (parts)) / LAST)

/* Where a decade gives way to the one below: half-way from its first entry to
 * the last one there. */
#define BORDER(decade, parts)                                                                      \
    (float)((ENTRY(decade, parts, 0) + ENTRY((decade)*0.1, (parts) / 2, (parts) / 2 - 1)) / 2)

/* From a magnitude to its place: 1 in `decade` covers this many parts. */
#define SLOPE(decade, parts) (float)((parts) / 0.9 / (decade)*LAST)

static size_t dyn8_block(const int64_t *arg)
{
    return (size_t)arg[DYN8_BLOCK];
}

static size_t dyn8_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 4 + n;
}

/* Code of the nearest entry to a in [0, 1]. In decade z the codes are parts to
 * 2 parts - 1, parts = 2^(6-z), and cells around the entries are even, so that
 * the code is the integer part of a straight line; beyond the last cell, up to
 * the border, it stays what it is there. No branches: the compiler blends. */
static inline uint32_t nearest(float a)
{
    float parts = 64.0f;
    float slope = SLOPE(1e-0, 64);
#define STEP_DOWN(decade, n)                                                                       \
    do {                                                                                           \
        bool below = a < BORDER((decade)*10, 2 * (n));                                             \
        parts = below ? (float)(n) : parts;                                                        \
        slope = below ? SLOPE(decade, n) : slope;                                                  \
    } while (0)
    STEP_DOWN(1e-1, 32);
    STEP_DOWN(1e-2, 16);
    STEP_DOWN(1e-3, 8);
    STEP_DOWN(1e-4, 4);
    STEP_DOWN(1e-5, 2);
    STEP_DOWN(1e-6, 1);
#undef STEP_DOWN
    float zero = a < (float)(ENTRY(1e-6, 1, 0) / 2) ? 0.0f : 1.0f;
    float code = a * slope + parts * (8.0f / 9.0f); /* 8/9 = 1 - 0.1 / 0.9. */
    float last = 2.0f * parts - 0.5f;
    return (uint32_t)(int32_t)((code < last ? code : last) * zero);
}

VEC_CLONES static void codes_of(uint8_t *restrict code, const float *restrict v, size_t n,
                                float shift, float inv)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bytes_of_float(v[i]);
        float a = bytes_to_float(bits & 0x7fffffffu) * shift * inv;
        uint32_t magnitude = nearest(a);
        uint32_t sign = bits >> 24 & 0x80u & (0u - (uint32_t)(magnitude != 0));
        code[i] = (uint8_t)(magnitude | sign);
    }
}

static void dyn8_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v);

static double dyn8_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    bytes_put_float(dst, b->max);
    if (!(b->max > 0.0f)) {
        memset(dst + 4, 0, b->n);
        return 0.0;
    }
    float shift = error2_shift(b->max);
    float inv = 1.0f / (b->max * shift);
    float decoded[CODEC_CHUNK];
    double e2 = 0.0;
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        codes_of(dst + 4 + at, b->v + at, count, shift, inv);
        dyn8_decode(arg, dst, b->n, at, count, decoded);
        e2 += error2_decoded(b->v + at, decoded, count, shift);
    }
    return error2_unshift(e2, b->max);
}

struct seen
{
    uint8_t top;  /* The largest magnitude. */
    uint8_t bare; /* Not 0: there is a sign of nothing. */
};

VEC_CLONES static struct seen look_at_codes(const uint8_t *code, size_t n)
{
    uint8_t top = 0;
    uint8_t bare = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t magnitude = code[i] & DYN8_TOP;
        top = magnitude > top ? magnitude : top;
        bare |= code[i] == 0x80;
    }
    return (struct seen){top, bare};
}

/* Some value is the largest, and has the last code: a scale without it is no message of the
 * encoder. */
static bool dyn8_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    uint32_t scale = bytes_get_u32(src);
    if (scale >= CODEC_LIMIT_BITS)
        return false;
    struct seen s = look_at_codes(src + 4, n);
    return s.bare == 0 && s.top == (scale != 0 ? DYN8_TOP : 0);
}

/* The entry of a code, c = parts + j. The float c + 1/2 is parts * m with
 * m = 1 + (j + 1/2) / parts: its mantissa, and its exponent is the decade. */
static inline float value_of(uint8_t code, float scale)
{
    uint32_t c = code & DYN8_TOP;
    float at = (float)(int32_t)c + 0.5f;
    uint32_t bits = bytes_of_float(at);
    float m = bytes_to_float((bits & 0x7fffffu) | 0x3f800000u);
    float decade = (float)(1e-0 / LAST);
    decade = at < 64.0f ? (float)(1e-1 / LAST) : decade;
    decade = at < 32.0f ? (float)(1e-2 / LAST) : decade;
    decade = at < 16.0f ? (float)(1e-3 / LAST) : decade;
    decade = at < 8.0f ? (float)(1e-4 / LAST) : decade;
    decade = at < 4.0f ? (float)(1e-5 / LAST) : decade;
    decade = at < 2.0f ? (float)(1e-6 / LAST) : decade;
    decade = at < 1.0f ? 0.0f : decade;
    float a = decade * (0.1f + 0.9f * (m - 1.0f));
    a = at < (float)DYN8_TOP ? a : 1.0f;
    uint32_t minus = (uint32_t)(code & 0x80) << 24;
    return bytes_to_float(bytes_of_float(scale * a) | minus);
}

VEC_CLONES static void values_of(const uint8_t *restrict code, size_t n, float scale,
                                 float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = value_of(code[i], scale);
}

VEC_CLONES static void add_values(float *restrict y, const uint8_t *restrict code, size_t n,
                                  float scale)
{
    for (size_t i = 0; i < n; i++)
        y[i] += value_of(code[i], scale);
}

static void dyn8_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)arg;
    (void)n;
    values_of(src + 4 + at, count, bytes_get_float(src), v);
}

static void dyn8_add(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                     float *y)
{
    (void)arg;
    (void)n;
    add_values(y, src + 4 + at, count, bytes_get_float(src));
}

static const struct codec_values dyn8_values = {
    .block = dyn8_block,
    .size = dyn8_size,
    .encode = dyn8_encode,
    .check = dyn8_check,
    .decode = dyn8_decode,
    .add = dyn8_add,
};

extern const struct codec codec_dyn8;
const struct codec codec_dyn8 = {
    .name = "dyn8",
    .about = "sign, decade and fraction of the largest value, in a byte",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n",
    .source = "Dettmers 2015",
    .params = dyn8_params,
    .values = &dyn8_values,
};
