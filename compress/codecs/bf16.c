/* compress/codecs/bf16.c -- values codec "bf16": bfloat16, the upper half of each float.
 *
 * Encoded block of n <= 1024 values:  n x u16, the upper 16 bits of the float
 *
 * The lower 16 bits of a float are rounded away, to nearest even. bfloat16 has the exponent range
 * of a float, so it needs no scaling factor per block as fp16 does.
 *
 * The relative error is at most 2^-8 for values above 2^-126. Smaller values are rounded to
 * multiples of 2^-133. A value that rounds to zero gets code 0 without a sign.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

enum {
    /* The bfloat16 code of CODEC_LIMIT. A valid code without its sign bit is below this number. */
    BF16_LIMIT = CODEC_LIMIT_BITS >> 16
};

static size_t bf16_block(const int64_t *arg)
{
    (void)arg;
    return CODEC_CHUNK;
}

static size_t bf16_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 2 * n;
}

/* Returns the upper 16 bits of a positive float, given as its bit pattern, rounded to nearest even.
 * The function adds 0x7fff, which is half a step minus 1, plus 1 if the last remaining bit is 1,
 * and cuts off the lower half. A carry into the exponent gives the correct next power of two. */
static inline uint32_t upper_half(uint32_t abs)
{
    return (abs + 0x7fffu + (abs >> 16 & 1)) >> 16;
}

/* Writes the bfloat16 code of each value to dst. Writes the squared rounding error of each value,
 * multiplied by shift^2 (error2.h), to square[]. */
VEC_CLONES static void encode_halves(uint8_t *restrict dst, float *restrict square,
                                     const float *restrict v, size_t n, float shift)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bytes_of_float(v[i]);
        uint32_t code = upper_half(bits & 0x7fffffffu);
        uint32_t sign = bits >> 16 & 0x8000u & (0u - (uint32_t)(code != 0));
        bytes_put_u16(dst + 2 * i, (uint16_t)(code | sign));
        float d = (v[i] - bytes_to_float((code | sign) << 16)) * shift;
        square[i] = d * d;
    }
}

static double bf16_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    (void)arg;
    if (upper_half(bytes_of_float(b->max)) >= BF16_LIMIT)
        /* A value just below 2^64 would be rounded to 2^64, which no receiver accepts. Encoding
         * such a block fails. */
        return -1.0;
    float square[CODEC_CHUNK];
    encode_halves(dst, square, b->v, b->n, error2_shift(b->max));
    return error2_unshift(simd_sum_squares(square, b->n), b->max);
}

static inline float value_at(const uint8_t *src, size_t i)
{
    return bytes_to_float((uint32_t)bytes_get_u16(src + 2 * i) << 16);
}

VEC_CLONES static bool bf16_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned code = bytes_get_u16(src + 2 * i);
        bad |= (code & 0x7fff) >= BF16_LIMIT;
        bad |= code == 0x8000;
    }
    return bad == 0;
}

VEC_CLONES static void bf16_decode(const int64_t *arg, const uint8_t *restrict src, size_t n,
                                   size_t at, size_t count, float *restrict v)
{
    (void)arg;
    (void)n;
    for (size_t i = 0; i < count; i++)
        v[i] = value_at(src, at + i);
}

VEC_CLONES static void bf16_add(const int64_t *arg, const uint8_t *restrict src, size_t n,
                                size_t at, size_t count, float *restrict y)
{
    (void)arg;
    (void)n;
    for (size_t i = 0; i < count; i++)
        y[i] += value_at(src, at + i);
}

static const struct codec_values bf16_values = {
    .block = bf16_block,
    .size = bf16_size,
    .encode = bf16_encode,
    .check = bf16_check,
    .decode = bf16_decode,
    .add = bf16_add,
};

extern const struct codec codec_bf16;
const struct codec codec_bf16 = {
    .name = "bf16",
    .about = "bfloat16: the upper 16 bits of each float",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 - 2^-16",
    .source = "used in PyTorch and Horovod",
    .values = &bf16_values,
};
