/* compress/codecs/dyn8.c -- values codec "dyn8": 8-bit dynamic tree quantisation (Dettmers 2015).
 *
 * Encoded block of n values:  scale f32 | n bytes
 *
 *   byte:  s | 0 .. 0 | 1 | f .. f
 *
 * The bits of a byte, from the highest down, are the sign s (1 for v < 0), z zeros, a 1, and 6 - z
 * bits f of fraction.
 *
 * The number of zero bits z selects a decade, that is, a factor 10^-z. The fraction bits after the
 * 1 are an index j into that decade, which has 2^(6-z) equally spaced magnitudes:
 *
 *   10^-z * (0.1 + 0.9 (j + 1/2) / 2^(6-z))
 *
 * The byte 0 is an exact 0 and has no sign. There are 127 magnitudes other than 0: 64 in the first
 * decade, and one in the seventh. A larger code is a larger magnitude.
 *
 * The scale is the largest |v| of the block. Each |v| is divided by the scale and gets the nearest
 * magnitude. All magnitudes are divided by the largest of them, 0.993, so that the largest value
 * has no error. The relative error is up to 7 % in the first decade below the largest value, 11 %
 * in the second, 18 % in the third, and 71 % at 2e-6 of the largest value. Values below 2.8e-7 of
 * the largest value become 0.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

enum {
    DYN8_BLOCK /* Index of the argument `block` in `arg`, the array of argument values. */
};
enum { DYN8_TOP = 127 }; /* Largest code without its sign bit. */

static const struct codec_param dyn8_params[] = {
    PARAMS_BLOCK("block", 0),
    {.name = NULL},
};

/* Largest of the 127 magnitudes before they are scaled (0.993). All magnitudes are divided by it,
 * so that the largest value of a block is decoded without an error. */
#define LAST (0.1 + 0.9 * 63.5 / 64)

/* Magnitude j of a decade with `parts` magnitudes, divided by the largest magnitude of the table.
 * `decade` is the upper end of the decade. */
#define ENTRY(decade, parts, j) ((decade) * (0.1 + 0.9 * ((j) + 0.5) / (parts)) / LAST)

/* Border between a decade and the next lower one: the middle between the smallest magnitude of the
 * decade and the largest magnitude of the lower one. */
#define BORDER(decade, parts)                                                                      \
    (float)((ENTRY(decade, parts, 0) + ENTRY((decade)*0.1, (parts) / 2, (parts) / 2 - 1)) / 2)

/* Slope of the code as a linear function of the magnitude, within one decade (factor of 10). */
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

/* Returns the code of the magnitude nearest to a, for a in [0, 1]. In decade z (magnitudes around
 * 10^-z) the codes are `parts` to `2 * parts - 1`, with parts = 2^(6-z). The magnitudes of a decade
 * are equally spaced, so the code is the integer part of a linear function of a. Between the last
 * magnitude of a decade and the border above it the code is constant. The function has no branches,
 * so that loops over it vectorise. */
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
    /* In a decade with the upper end u, the code is linear in the magnitude: it is `parts` at 0.1 u,
     * and twice that at u. The slope is therefore parts / (0.9 u), and the constant term is
     * parts - 0.1 parts / 0.9 = parts * 8/9. */
    float code = a * slope + parts * (8.0f / 9.0f);
    float last = 2.0f * parts - 0.5f;
    return (uint32_t)(int32_t)((code < last ? code : last) * zero);
}

/* Computes the codes of n values after multiplying them by 1 / scale. This factor is given as two
 * numbers, shift and inv, because their product may be out of the range of a float. */
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

/* Result of a pass over all codes of a block. check() decides with it whether the block is
 * valid. */
struct seen
{
    uint8_t top;  /* Largest code in the block, without the sign bit. */
    uint8_t bare; /* Not 0: the block is invalid, because some zero has a sign bit. */
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

/* If the scale is above 0, the largest value of the block has the largest code. A block without
 * that code was not written by the encoder and is rejected. */
static bool dyn8_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    uint32_t scale = bytes_get_u32(src);
    if (scale >= CODEC_LIMIT_BITS)
        return false;
    struct seen s = look_at_codes(src + 4, n);
    return s.bare == 0 && s.top == (scale != 0 ? DYN8_TOP : 0);
}

/* Returns the decoded value of a code. The code is c = parts + j (see nearest()). As a float, c +
 * 1/2 has the mantissa m = 1 + (j + 1/2) / parts, and its exponent gives the decade. */
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
    .about = "one byte per value: sign, decade and fraction relative to the largest value",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n",
    .source = "Dettmers 2015",
    .params = dyn8_params,
    .values = &dyn8_values,
};
