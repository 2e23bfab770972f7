/* compress/codecs/dorefa.c -- values codec "dorefa": k-bit codes on a grid without a zero
 * (DoReFa-Net).
 *
 * Encoded block of n values:  scale f32 | n codes of k bits
 *
 * Let M be the largest |v| of the block, and L = 2^k - 1. The number v / (2M) + 1/2, which is in
 * [0, 1], is multiplied by L and rounded to a code c in 0..L (Zhou et al. 2016, equation 12). Code
 * c stands for the level h = 2c - L, one of the odd numbers from -L to L, so no level is zero. The
 * decoded value is C(v) = scale * h. The options are:
 *
 *   round=near  rounds to the nearest code; v = 0 counts as positive
 *   round=sr    rounds up with a probability equal to the fraction (the uniform noise of the paper)
 *   scale=raw   scale = M / L. Unbiased with round=sr. The squared error of a value can be
 *               (M / L)^2, even if the value is 0. In total the squared error can exceed |v|^2 if
 *               M is much larger than the other values
 *   scale=ls    scale = <v, h> / |h|^2, which minimises the squared error for these codes. That
 *               error is |v|^2 - <v, h>^2 / |h|^2, which never exceeds |v|^2
 *
 * With k = 1 the codes are the signs of the values. With scale=ls the codec then equals `sign`.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/coding/pack.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

enum {
    /* Indices of the codec's arguments in `arg`, the array of argument values that its functions
     * get. */
    DOREFA_BITS,
    DOREFA_BLOCK,
    DOREFA_ROUND,
    DOREFA_SCALE
};
enum { SCALE_LS, SCALE_RAW };
enum { BITS_MAX = 16 }; /* Largest number of bits of a code. */

static const char *const scale_choices[] = {"ls", "raw", NULL};

static const struct codec_param dorefa_params[] = {
    {.name = "bits",
     .kind = CODEC_INTEGER,
     .low = 1,
     .high = BITS_MAX,
     .step = 1,
     .preset = 6,
     .wants = "an integer from 1 to 16"},
    PARAMS_BLOCK("block", 0),
    PARAMS_ROUND(ROUND_NEAR),
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_LS,
     .wants = "ls or raw"},
    {.name = NULL},
};

static size_t dorefa_block(const int64_t *arg)
{
    return (size_t)arg[DOREFA_BLOCK];
}

static size_t dorefa_size(const int64_t *arg, size_t n)
{
    return 4 + pack_size(n, (unsigned)arg[DOREFA_BITS]);
}

/* Returns L, the number of steps of the grid, which is also the largest code. */
static unsigned steps_of(const int64_t *arg)
{
    return (1u << arg[DOREFA_BITS]) - 1;
}

/* Constants that map a value v to its position on the grid, L v / (2M), which is in [-L/2, L/2].
 * L (`steps`) is the number of steps of the grid, and M the largest magnitude of the block. The
 * position is computed as v * shift * inv, where `shift` is a power of two near 1 / M: this is
 * exact and keeps very small and very large blocks in the range of a float. */
struct grid
{
    float shift, inv, steps;
};

static struct grid grid_of(unsigned steps, float max)
{
    float shift = bytes_pow2(-bytes_exponent(max));
    return (struct grid){shift, 0.5f * (float)steps / (max * shift), (float)steps};
}

/* Returns the position c of a value on the grid of codes, clamped to [0, steps]. Without the
 * clamp, rounding of floats could give a position outside of the grid. */
static inline float clamped(float c, float steps)
{
    c = c > 0.0f ? c : 0.0f;
    return c < steps ? c : steps;
}

/* Rounds n values to the nearest codes. Stores the codes and their levels h. The nearest code is
 * the integer part of the position of v on the grid plus (L + 1) / 2, where L is the largest
 * code. */
VEC_CLONES static void codes_near(uint16_t *restrict code, float *restrict h,
                                  const float *restrict v, size_t n, struct grid g)
{
    float half = 0.5f * (g.steps + 1.0f);
    for (size_t i = 0; i < n; i++) {
        float place = v[i] * g.shift * g.inv + half;
        int32_t c = (int32_t)clamped(place, g.steps);
        code[i] = (uint16_t)c;
        h[i] = 2.0f * (float)c - g.steps;
    }
}

/* Rounds n values up or down at random and stores the codes and their levels h. u[i] is uniform in
 * [0, 1). */
VEC_CLONES static void codes_random(uint16_t *restrict code, float *restrict h,
                                    const float *restrict v, const float *restrict u, size_t n,
                                    struct grid g)
{
    for (size_t i = 0; i < n; i++) {
        float place = v[i] * g.shift * g.inv + 0.5f * g.steps;
        float low = (float)(int32_t)clamped(place, g.steps);
        float c = clamped(low + (u[i] < place - low ? 1.0f : 0.0f), g.steps);
        code[i] = (uint16_t)(int32_t)c;
        h[i] = 2.0f * c - g.steps;
    }
}

/* Sums from which scale=ls computes the scale of least squared error: vh = <v, h> and hh = |h|^2,
 * where v are the values and h their levels. */
struct product
{
    double vh, hh;
};

/* Writes the codes of a whole block, and stores their levels in b->work. Returns the sums from
 * which scale=ls is computed. */
static struct product put_codes(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    unsigned bits = (unsigned)arg[DOREFA_BITS];
    struct grid g = grid_of(steps_of(arg), b->max);
    struct product p = {0};
    uint16_t code[CODEC_CHUNK];
    float u[CODEC_CHUNK];
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        float *h = b->work + at;
        if (arg[DOREFA_ROUND] == ROUND_NEAR) {
            codes_near(code, h, b->v + at, count, g);
        } else {
            simd_coin(u, b->key, b->first + at, count);
            codes_random(code, h, b->v + at, u, count, g);
        }
        pack_put(dst + at / 8 * bits, code, count, bits);
        p.vh += vec_dot(b->v + at, h, count);
        p.hh += vec_norm2(h, count);
    }
    return p;
}

VEC_CLONES static void scale_levels(float *h, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        h[i] *= scale;
}

/* Returns the squared error |v - scale h|^2 of the values v, where h are the levels. The products
 * scale h are rounded to float, as in decode(), and overwrite h. The formula |v|^2 - <v, h>^2 /
 * |h|^2 would lose too many digits if the error is small. */
static double codes_error2(const float *v, float *h, size_t n, float scale)
{
    double e2 = 0.0;
    for (size_t at = 0; at < n; at += CODEC_CHUNK) {
        size_t count = n - at < CODEC_CHUNK ? n - at : CODEC_CHUNK;
        scale_levels(h + at, count, scale);
        e2 += vec_dist2(v + at, h + at, count);
    }
    return e2;
}

/* Returns true if every decoded value is below the limit of codecs, CODEC_LIMIT. The largest
 * decoded value is scale * L, where L (`steps`) is the highest level. */
static bool in_range(float scale, unsigned steps)
{
    return scale * (float)steps < CODEC_LIMIT;
}

static double dorefa_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    float scale = 0.0f;
    if (b->max > 0.0f) {
        struct product p = put_codes(arg, b, dst + 4);
        double s =
            arg[DOREFA_SCALE] == SCALE_LS ? p.vh / p.hh : (double)b->max / (double)steps_of(arg);
        /* Random rounding can give levels h with <v, h> <= 0. Such levels would only add error, so
         * the scale becomes 0 and nothing is added to the replica. */
        scale = s > 0.0 ? (float)s : 0.0f;
    }
    bytes_put_float(dst, scale);
    if (!(scale > 0.0f)) {
        memset(dst + 4, 0, dorefa_size(arg, b->n) - 4);
        return b->x2;
    }
    if (!in_range(scale, steps_of(arg)))
        return -1.0;
    return codes_error2(b->v, b->work, b->n, scale);
}

static bool dorefa_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    uint32_t scale = bytes_get_u32(src);
    /* Scales are compared as bit patterns. Negative scales, -0 and NaN have larger bit patterns
     * than valid scales, so they are rejected too. */
    if (scale >= CODEC_LIMIT_BITS || !in_range(bytes_to_float(scale), steps_of(arg))
        || !pack_padded(src + 4, n, (unsigned)arg[DOREFA_BITS]))
        return false;
    if (scale != 0)
        return true;
    unsigned any = 0;
    for (size_t i = 4; i < dorefa_size(arg, n); i++)
        any |= src[i];
    return any == 0;
}

VEC_CLONES static void values_of(const uint16_t *restrict code, size_t n, float steps, float scale,
                                 float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = scale * (2.0f * (float)(int32_t)code[i] - steps);
}

static void dorefa_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                          float *v)
{
    (void)n;
    unsigned bits = (unsigned)arg[DOREFA_BITS];
    uint16_t code[CODEC_CHUNK];
    pack_get(src + 4 + at / 8 * bits, code, count, bits);
    values_of(code, count, (float)steps_of(arg), bytes_get_float(src), v);
}

static const struct codec_values dorefa_values = {
    .block = dorefa_block,
    .size = dorefa_size,
    .encode = dorefa_encode,
    .check = dorefa_check,
    .decode = dorefa_decode,
};

extern const struct codec codec_dorefa;
const struct codec codec_dorefa = {
    .name = "dorefa",
    .about = "k bits per value on a grid from minus to plus the largest |v|",
    .class = CODEC_CONTRACTION,
    .bound = "delta = <v,h>^2 / (|h|^2 |v|^2) of the levels h",
    .unbiased = "round=sr,scale=raw",
    .source = "Zhou et al. 2016 (DoReFa-Net)",
    .params = dorefa_params,
    .values = &dorefa_values,
};
