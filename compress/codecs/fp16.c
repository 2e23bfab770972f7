/* compress/codecs/fp16.c -- values codec "fp16": binary16 with one power of two per block.
 *
 * Encoded block of n <= 1024 values:  e u8 | n x binary16
 *
 * Let E be the exponent of the largest |v| in the block. All values are multiplied by 2^(14-E),
 * which brings the largest one into [2^14, 2^15). They are then rounded to nearest even and sent as
 * binary16. The byte e is E + 127, or 0 for a block of zeros. Because of the factor, small
 * differences lose no precision. Without the factor, a cast to binary16 would lose all values below
 * 3e-8, which is the size of differences in a converging run.
 *
 * Each error is at most 2^-11 of the value. For values below 2^-28 of the largest |v| in the block,
 * the error is at most 2^-38 of that largest |v|.
 */
#include "compress/codec.h"

#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"
#include "compress/simd/table.h"

#include "nn/math/vec.h"

enum {
    FP16_BLOCK = 1024,
    FP16_BIAS = 127,
    /* Largest valid exponent byte of a block. All values of such a block are at most 2^64. */
    FP16_E_MAX = FP16_BIAS + 63,
    /* Binary16 code of 2^15, the largest possible magnitude after the multiplication and
     * rounding. */
    FP16_CODE_MAX = 0x7800
};

/* A power of two, as the product of two factors. The power itself may be too large for a float,
 * because it can be up to 2^140. */
struct shift
{
    float first, second;
};

/* Returns 2^s as the product of two factors. */
static struct shift shift_by(int s)
{
    int first = s > 127 ? 127 : s < -126 ? -126 : s;
    return (struct shift){bytes_pow2(first), bytes_pow2(s - first)};
}

static size_t fp16_block(const int64_t *arg)
{
    (void)arg;
    return FP16_BLOCK;
}

static size_t fp16_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 1 + 2 * n;
}

/* The error is measured between the multiplied values and their binary16 codes. This is exact: the
 * factor is a power of two, so undoing the multiplication adds no error. */
static double fp16_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    (void)arg;
    if (!(b->max > 0.0f)) {
        memset(dst, 0, 1 + 2 * b->n);
        return 0.0;
    }
    int e = bytes_exponent(b->max);
    struct shift s = shift_by(14 - e);
    double whole = (double)s.first * (double)s.second;
    dst[0] = (uint8_t)(e + FP16_BIAS);
    float e2 = simd_half_put(dst + 1, b->v, b->n, s.first, s.second);
    return (double)e2 / whole / whole;
}

VEC_CLONES static bool fp16_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    if (src[0] > FP16_E_MAX)
        return false;
    unsigned max = src[0] != 0 ? FP16_CODE_MAX : 0;
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned code = bytes_get_u16(src + 1 + 2 * i);
        bad |= (code & 0x7fff) > max;
        bad |= code == 0x8000;
    }
    return bad == 0;
}

VEC_CLONES static void decode_halves(const uint8_t *restrict src, size_t n, struct shift s,
                                     float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = simd_half_to_float(bytes_get_u16(src + 2 * i)) * s.first * s.second;
}

static void fp16_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)arg;
    (void)n;
    int e = (int)src[0] - FP16_BIAS;
    decode_halves(src + 1 + 2 * at, count, shift_by(e - 14), v);
}

static void fp16_add(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                     float *y)
{
    (void)arg;
    (void)n;
    struct shift s = shift_by((int)src[0] - FP16_BIAS - 14);
    simd_half_add(y, src + 1 + 2 * at, count, s.first, s.second);
}

static const struct codec_values fp16_values = {
    .block = fp16_block,
    .size = fp16_size,
    .encode = fp16_encode,
    .check = fp16_check,
    .decode = fp16_decode,
    .add = fp16_add,
};

extern const struct codec codec_fp16;
const struct codec codec_fp16 = {
    .name = "fp16",
    .about = "binary16 with a power-of-two factor per block of 1024 values",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 - 2^-22",
    .source = "used in Horovod and PyTorch; the factor per block is new here",
    .values = &fp16_values,
};
