/* compress/codecs/tern.c -- values codec "tern": minus, zero or plus one scale per block
 * (TernGrad).
 *
 * Encoded block of n values:  scale f32 | ceil(n / 5) bytes of ternary digits (quartic.h)
 *
 * Values are clipped to [-M, M], where M is `clip` times their root mean square. If the largest |v|
 * is smaller than that, or if clip is 0, then M is the largest |v|. Next, |v| / M is rounded to 0
 * or 1 (Wen et al. 2017), and values that become 1 are sent with their sign as plus or minus the
 * scale. The options are:
 *
 *   round=near  rounds to the nearest
 *   round=sr    rounds up with the probability |v| / M
 *   scale=raw   the scale is M. Unbiased with round=sr and clip=0. The average squared error is
 *               then M |v|_1 - |v|^2, which exceeds |v|^2 for all but very short blocks
 *   scale=ls    the scale is the mean |v| of the values sent, which minimises the squared error
 *               for these digits: |v|^2 - S^2 / k, with S the sum of the k values |v| sent
 *
 * M depends on the root mean square and not on the standard deviation, because the latter is 0 for
 * equal values and would clip them to zero.
 *
 * CHOCO-SGD needs a contraction and not an unbiased codec, so round=near and scale=ls are the
 * defaults. Contraction delta measured with 65,536 values:
 *
 *              near 2.5   sr 2.5   near 0   sr 0    (round, clip; scale=ls)
 *   Gaussian     .632      .493     .184    .286
 *   Laplace      .656      .494     .081    .179
 *
 * A clip of 1.22 would be best for Gaussian values, with delta .810. The codec thr2 has this
 * threshold.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/codecs/quartic.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <math.h>

enum {
    /* Indices of the codec's arguments in `arg`, the array of argument values that its functions
     * get. */
    TERN_BLOCK,
    TERN_CLIP,
    TERN_ROUND,
    TERN_SCALE
};
enum { SCALE_LS, SCALE_RAW };

static const char *const scale_choices[] = {"ls", "raw", NULL};

static const struct codec_param tern_params[] = {
    PARAMS_BLOCK("block", 0),
    {.name = "clip",
     .kind = CODEC_DECIMAL,
     .option = true,
     .high = INT64_C(1000000000000),
     .preset = INT64_C(2500000000),
     .wants = "in [0, 1000], 0 for none"},
    PARAMS_ROUND(ROUND_NEAR),
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_LS,
     .wants = "ls or raw"},
    {.name = NULL},
};

static size_t tern_block(const int64_t *arg)
{
    return (size_t)arg[TERN_BLOCK];
}

static size_t tern_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 4 + quartic_size(n);
}

/* Returns M, the limit to which the values of a block are clipped. M is above 0 if any value is not
 * 0. */
static float clip_of(const int64_t *arg, const struct codec_block *b)
{
    double rms = sqrt(b->x2 / (double)b->n);
    double clip = (double)arg[TERN_CLIP] / 1e9 * rms;
    float m = clip > 0.0 && clip < (double)b->max ? (float)clip : b->max;
    return m > 0.0f ? m : b->max;
}

/* Turns random numbers u in [0, 1), given in limit[], into the limits 2 u M. quartic_digits() sends
 * a value if 2 |v| exceeds its limit, which happens with probability |v| / M. */
VEC_CLONES static void coins_to_limits(float *limit, size_t n, float m)
{
    for (size_t i = 0; i < n; i++)
        limit[i] = 2.0f * (limit[i] * m);
}

/* Writes the digits of a whole block. Returns the number of values sent and the sum of their
 * magnitudes. */
static struct quartic_sent put_digits(const int64_t *arg, const struct codec_block *b, float m,
                                      uint8_t *dst)
{
    struct quartic_sent sent = {.n = 0};
    uint8_t digit[QUARTIC_GROUP];
    float limit[CODEC_CHUNK];
    for (size_t i = 0; i < CODEC_CHUNK && i < b->n; i++)
        limit[i] = m;
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        size_t in = at % QUARTIC_GROUP;
        if (arg[TERN_ROUND] == ROUND_SR) {
            simd_coin(limit, b->key, b->first + at, count);
            coins_to_limits(limit, count, m);
        }
        quartic_digits(digit + in, b->v + at, limit, count, &sent);
        if (in + count == QUARTIC_GROUP || at + count == b->n)
            quartic_put(dst + (at - in) / QUARTIC_DIGITS, digit, in + count);
    }
    return sent;
}

static double tern_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    float m = clip_of(arg, b);
    struct quartic_sent sent = put_digits(arg, b, m, dst + 4);
    double sum = quartic_sum(&sent);
    double k = (double)sent.n;
    float scale = 0.0f; /* The scale is 0 if no value of the block becomes plus or minus. */
    if (sent.n > 0)
        scale = arg[TERN_SCALE] == SCALE_LS ? (float)(sum / k) : m;
    bytes_put_float(dst, scale);
    double s = (double)scale;
    return fmax(0.0, b->x2 - s * (2.0 * sum - k * s));
}

static bool tern_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    bool any;
    uint32_t scale = bytes_get_u32(src);
    /* Scales are compared as bit patterns. Negative scales, -0 and NaN have bit patterns of at
     * least CODEC_LIMIT_BITS, so they are rejected too. */
    return scale < CODEC_LIMIT_BITS && quartic_check(src + 4, n, &any) && (scale != 0) == any;
}

static void tern_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)arg;
    quartic_get(src + 4, n, at, count, bytes_get_float(src), v);
}

static const struct codec_values tern_values = {
    .block = tern_block,
    .size = tern_size,
    .encode = tern_encode,
    .check = tern_check,
    .decode = tern_decode,
};

extern const struct codec codec_tern;
const struct codec codec_tern = {
    .name = "tern",
    .about = "minus, zero or plus one scale per block, five values per byte",
    .class = CODEC_CONTRACTION,
    .bound = "delta = S^2 / (k |v|^2) >= 1/n, S the sum of the k values |v| sent",
    .unbiased = "clip=0,round=sr,scale=raw",
    .source = "Wen et al. 2017 (TernGrad); packing of Lim et al. 2019",
    .params = tern_params,
    .values = &tern_values,
};
