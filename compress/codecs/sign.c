/* compress/codecs/sign.c -- values codec "sign": the sign of each value, one scale per block.
 *
 * Encoded block of n values:  [ scale f32 ] | n bits, 1 for v < 0, low bit first, zero padding
 *
 * The scale is |v|_1 / n, the mean magnitude of the block, and C(v) = scale * sign(v) with
 * sign(0) = +1. No other scale gives a smaller squared error (Karimireddy et al. 2019; "scaled
 * sign" in CHOCO-SGD). The squared error is exactly |v|^2 - |v|_1^2 / n. The contraction
 * delta = |v|_1^2 / (n |v|^2) is in [1/n, 1], and about 2/pi for Gaussian values.
 *
 * Choice of the default block length B: with one scale for a long vector, gossip without local
 * steps stops making progress, because the difference x - x_hat gets heavy tails. With blocks of 64
 * to 256 elements it does not stop. The 4 bytes of each scale limit the compression factor to
 * 32 / (1 + 32/B): 21.3 for B = 64, 28.4 for 256, 30.1 for 512, 31.0 for 1024. The default, 512, is
 * the smallest power of two with a factor above 30.
 *
 * scale=none sends no scale: each C(v) is +1 or -1, as in signSGD (Bernstein et al. 2018). |C(v)|^2
 * is then n for every v, so the codec is not a contraction. The option exists to show that
 * CHOCO-SGD diverges with such a codec.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <math.h>

/* Indices of the codec's arguments in `arg`, the array of argument values that its functions
 * get. */
enum { SIGN_BLOCK, SIGN_SCALE };
enum { SCALE_L1, SCALE_NONE };

static const char *const scale_choices[] = {"l1", "none", NULL};

static const struct codec_param sign_params[] = {
    PARAMS_BLOCK("block", 512),
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_L1,
     .wants = "l1 or none"},
    {.name = NULL},
};

/* Returns the number of bytes of the scale before the sign bits: 4, or 0 with scale=none. */
static size_t head_size(const int64_t *arg)
{
    return arg[SIGN_SCALE] == SCALE_L1 ? 4 : 0;
}

static float scale_of(const int64_t *arg, const uint8_t *src)
{
    return arg[SIGN_SCALE] == SCALE_L1 ? bytes_get_float(src) : 1.0f;
}

static size_t sign_block(const int64_t *arg)
{
    return (size_t)arg[SIGN_BLOCK];
}

static size_t sign_size(const int64_t *arg, size_t n)
{
    return head_size(arg) + (n + 7) / 8;
}

/* Writes the scale of a block whose sign bits have already been written. Returns the squared
 * error. */
static double finish_block(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    double n = (double)b->n;
    float scale = 1.0f;
    if (arg[SIGN_SCALE] == SCALE_L1) {
        scale = (float)(b->l1 / n);
        bytes_put_float(dst, scale);
    }
    /* The scale is 0 if all values are zero, or if the mean magnitude is below the smallest
     * positive float. The sign bits are then all 0. */
    if (!(scale > 0.0f)) {
        memset(dst + 4, 0, sign_size(arg, b->n) - 4);
        return b->x2;
    }
    double s = (double)scale;
    return fmax(0.0, b->x2 - s * (2.0 * b->l1 - n * s));
}

static double sign_stream(const int64_t *arg, const struct codec_source *s, struct codec_block *b,
                          uint8_t *dst)
{
    struct simd_sums sums = simd_load_signs(dst + head_size(arg), s->x + b->first,
                                            codec_x_hat(s, b->first), b->n, SIMD_AHEAD);
    b->x2 = sums.x2;
    b->l1 = sums.l1;
    b->max = bytes_to_float(sums.max);
    return finish_block(arg, b, dst);
}

static bool sign_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    size_t size = sign_size(arg, n);
    if (n % 8 != 0 && src[size - 1] >> (n % 8) != 0)
        return false;
    if (arg[SIGN_SCALE] == SCALE_NONE)
        return true;
    uint32_t scale = bytes_get_u32(src);
    /* The bit pattern of the scale is compared, so that negative scales, -0 and NaN are rejected
     * too. */
    if (scale >= CODEC_LIMIT_BITS)
        return false;
    if (scale != 0)
        return true;
    unsigned any = 0;
    for (size_t i = 4; i < size; i++)
        any |= src[i];
    return any == 0;
}

/* Decodes n_bytes bytes of eight sign bits. `scale` is the bit pattern of the scale. */
VEC_CLONES static void decode_bytes(const uint8_t *restrict src, size_t n_bytes, uint32_t scale,
                                    float *restrict v)
{
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned j = 0; j < 8; j++) {
            uint32_t sign = (uint32_t)src[i] << (31 - j) & 0x80000000u;
            v[8 * i + j] = bytes_to_float(scale | sign);
        }
}

static void sign_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)n;
    uint32_t scale = bytes_of_float(scale_of(arg, src));
    src += head_size(arg) + at / 8;
    size_t whole = count / 8;
    decode_bytes(src, whole, scale, v);
    float tail[8];
    if (count % 8 != 0) {
        decode_bytes(src + whole, 1, scale, tail);
        memcpy(v + 8 * whole, tail, (count % 8) * sizeof *v);
    }
}

static void sign_add(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                     float *y)
{
    (void)n;
    simd_sign_add(y, src + head_size(arg) + at / 8, count, scale_of(arg, src));
}

static const struct codec_values sign_values = {
    .block = sign_block,
    .size = sign_size,
    .wants_l1 = true,
    .encode_stream = sign_stream,
    .check = sign_check,
    .decode = sign_decode,
    .add = sign_add,
};

extern const struct codec codec_sign;
const struct codec codec_sign = {
    .name = "sign",
    .about = "one bit per value and the mean of |v| per block",
    .class = CODEC_CONTRACTION,
    .bound = "delta = |v|_1^2 / (n |v|^2) of each block",
    .source = "Karimireddy et al. 2019",
    .params = sign_params,
    .values = &sign_values,
};
