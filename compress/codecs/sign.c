/* compress/codecs/sign.c -- one bit a value and the mean of |v| a block.
 *
 * Block of n:  [ scale f32 ] | n bits, 1 for v < 0, low bit first, zeros behind
 *
 * C(v) = |v|_1 / n * sign(v) with sign(0) = +1: the least-squares scale for
 * these signs (Karimireddy et al. 2019; CHOCO's "scaled sign"). Error exactly
 * |v|^2 - |v|_1^2 / n; contraction |v|_1^2 / (n |v|^2), in [1/n, 1], 2/pi on
 * Gaussian data.
 *
 * The default block: one scale over a long vector stalls in pure consensus
 * (the residual grows heavy tails), blocks of 64 to 256 do not; but 4 bytes a
 * block leave 32 / (1 + 32/B) times fewer bytes: 21.3 at 64, 28.4 at 256,
 * 30.1 at 512, 31.0 at 1024. 512 is the smallest above 30.
 *
 * scale=none sends no scale and C is +-1, as signSGD has it (Bernstein et al.
 * 2018): |C|^2 is n whatever v is, so it is no contraction and does not follow
 * the scale of v. It is there to reproduce that this diverges.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <math.h>

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

/* How many bytes of a block come before the bits: those of the scale. */
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

/* Write the scale of a block whose bits are written; returns the error. */
static double finish_block(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    double n = (double)b->n;
    float scale = 1.0f;
    if (arg[SIGN_SCALE] == SCALE_L1) {
        scale = (float)(b->l1 / n);
        bytes_put_float(dst, scale);
    }
    if (!(scale > 0.0f)) { /* All zero, or the mean is below every float. */
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
    if (scale >= CODEC_LIMIT_BITS) /* Also every negative, -0 and NaN. */
        return false;
    if (scale != 0)
        return true;
    unsigned any = 0;
    for (size_t i = 4; i < size; i++)
        any |= src[i];
    return any == 0;
}

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
    .about = "one bit a value and the mean of |v| a block",
    .class = CODEC_CONTRACTION,
    .bound = "delta = |v|_1^2 / (n |v|^2) of each block",
    .source = "Karimireddy et al. 2019",
    .params = sign_params,
    .values = &sign_values,
};
