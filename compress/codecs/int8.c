/* compress/codecs/int8.c -- values codec "int8": 8-bit integers with one scale per block.
 *
 * Encoded block of n values:  scale f32 | n x i8, from -127 to 127
 *
 * Let M be the largest |v| of the block, and scale = M / 127. The code of a value is q = v / scale,
 * rounded to nearest even, and C(v) = scale * q. Each error is at most M / 254. Each error is also
 * at most |v|, because 0 is a code. The largest value has no error. Therefore the contraction delta
 * is at least 1 - n / 64516, and at least 1 / n.
 *
 * The scale of least squared error for the same codes would need two more sums. In blocks of 256
 * Gaussian values it lowers the error by less than 1 %, so it is not used. If M / 127 is subnormal,
 * it is rounded so that M still has a code. Values up to 127 times the smallest float are then
 * exact.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

enum {
    INT8_BLOCK /* Index of the argument `block` in `arg`, the array of argument values. */
};
enum { INT8_TOP = 127 }; /* Largest magnitude of a code. */

static const struct codec_param int8_params[] = {
    PARAMS_BLOCK("block", 256),
    {.name = NULL},
};

static size_t int8_block(const int64_t *arg)
{
    return (size_t)arg[INT8_BLOCK];
}

static size_t int8_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 4 + n;
}

/* Returns the scale for a largest magnitude M: M / 127, or the next larger float if M / 127 is
 * subnormal and M would otherwise have no code. */
static float scale_of(float max)
{
    float scale = max / (float)INT8_TOP;
    if (max > 0.0f && scale < 0x1p-126f && scale * ((float)INT8_TOP + 0.5f) <= max)
        return bytes_to_float(bytes_of_float(scale) + 1);
    return scale;
}

/* Returns the factors that map values to codes. Values are first multiplied by `shift`, a power of
 * two near 1 / M. The step between two codes is then about 1/127 to 2/127, so that no division
 * involves a very small or very large number. `inv` is 1 / step. Unless the scale is subnormal,
 * `inv` is computed from the largest magnitude and not from `step`: two dependent divisions would
 * delay a block of 256. */
static struct simd_bytes grid_of(float max, float scale)
{
    float shift = error2_shift(max);
    float step = scale * shift;
    float inv = scale < 0x1p-126f ? 1.0f / step : (float)INT8_TOP / (max * shift);
    return (struct simd_bytes){.shift = shift, .inv = inv, .step = step};
}

/* Writes a block with the given scale and factors. Returns its squared error. */
static double int8_put(const int64_t *arg, const struct codec_block *b, float scale,
                       const struct simd_bytes *g, uint8_t *dst)
{
    bytes_put_float(dst, scale);
    if (!(scale > 0.0f)) {
        memset(dst + 4, 0, int8_size(arg, b->n) - 4);
        return 0.0;
    }
    double e2 = 0.0;
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        e2 += simd_byte_put(g, dst + 4 + at, b->v + at, count);
    }
    return error2_unshift(e2, b->max);
}

/* The divisions of the next block are computed before the present block is rounded, so that the CPU
 * need not wait for them. If the scale of a block is 0, its factors are computed but not used. */
static double int8_encode_all(const int64_t *arg, const struct codec_block *b, size_t count,
                              uint8_t *dst)
{
    float next = scale_of(b[0].max);
    struct simd_bytes next_grid = grid_of(b[0].max, next);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        float scale = next;
        struct simd_bytes g = next_grid;
        if (i + 1 < count) {
            next = scale_of(b[i + 1].max);
            next_grid = grid_of(b[i + 1].max, next);
        }
        if (scale * (float)INT8_TOP >= CODEC_LIMIT)
            /* The largest |v| is so near to CODEC_LIMIT that its decoded value would reach the
             * limit. Such a block is refused, because no receiver would accept it. */
            return -1.0;
        sum += int8_put(arg, &b[i], scale, &g, dst);
        dst += int8_size(arg, b[i].n);
    }
    return sum;
}

/* Returns the largest magnitude of the codes. A result of 128 means that some byte is -128, which
 * is not a valid code. */
VEC_CLONES static unsigned highest(const uint8_t *code, size_t n)
{
    uint8_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t minus = (uint8_t)(0 - code[i]);
        uint8_t abs = code[i] < minus ? code[i] : minus;
        top = abs > top ? abs : top;
    }
    return top;
}

/* In a valid block the largest value has code 127 or -127, unless the scale is subnormal. */
static bool int8_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    uint32_t bits = bytes_get_u32(src);
    if (bits >= CODEC_LIMIT_BITS)
        return false;
    float scale = bytes_to_float(bits);
    unsigned top = highest(src + 4, n);
    if (top > INT8_TOP || scale * (float)INT8_TOP >= CODEC_LIMIT)
        return false;
    if (bits == 0)
        return top == 0;
    return scale < 0x1p-126f ? top > 0 : top == INT8_TOP;
}

VEC_CLONES static void values_of(const uint8_t *restrict code, size_t n, float scale,
                                 float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = scale * (float)(int8_t)code[i];
}

static void int8_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)arg;
    (void)n;
    values_of(src + 4 + at, count, bytes_get_float(src), v);
}

VEC_CLONES static void add_values(float *restrict y, const uint8_t *restrict code, size_t n,
                                  float scale)
{
    for (size_t i = 0; i < n; i++)
        y[i] += scale * (float)(int8_t)code[i];
}

static void int8_add(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                     float *y)
{
    (void)arg;
    (void)n;
    add_values(y, src + 4 + at, count, bytes_get_float(src));
}

static const struct codec_values int8_values = {
    .block = int8_block,
    .size = int8_size,
    .encode_all = int8_encode_all,
    .check = int8_check,
    .decode = int8_decode,
    .add = int8_add,
};

extern const struct codec codec_int8;
const struct codec codec_int8 = {
    .name = "int8",
    .about = "8-bit integers, scaled by the largest value of each block",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 - block / 64516",
    .source = "blocks: Dettmers et al. 2022; used in hivemind",
    .params = int8_params,
    .values = &int8_values,
};
