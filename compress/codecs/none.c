/* compress/codecs/none.c -- values codec "none": plain floats, 4 bytes each, without error.
 *
 * Encoded block of n values:  n x f32
 *
 * `none` is the default values codec of most selectors. The matrix codecs also use it, for vectors
 * and small tensors. check() rejects values of 2^64 or more, which could take a replica out of
 * range (codec.h). It also rejects -0, which no encoder writes.
 */
#include "compress/codec.h"

#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

static size_t none_block(const int64_t *arg)
{
    (void)arg;
    return CODEC_CHUNK;
}

static size_t none_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 4 * n;
}

VEC_CLONES static void put_floats(uint8_t *restrict dst, const float *restrict v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes_put_float(dst + 4 * i, v[i]);
}

static double none_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    (void)arg;
    put_floats(dst, b->v, b->n);
    return 0.0;
}

/* The loop has no branch, so that it vectorises: an invalid value only sets a flag, which is tested
 * after the loop. */
VEC_CLONES static bool none_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    (void)arg;
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bytes_get_u32(src + 4 * i);
        bad |= (bits & 0x7fffffffu) >= CODEC_LIMIT_BITS;
        bad |= bits == 0x80000000u;
    }
    return bad == 0;
}

VEC_CLONES static void none_decode(const int64_t *arg, const uint8_t *restrict src, size_t n,
                                   size_t at, size_t count, float *restrict v)
{
    (void)arg;
    (void)n;
    for (size_t i = 0; i < count; i++)
        v[i] = bytes_get_float(src + 4 * (at + i));
}

VEC_CLONES static void none_add(const int64_t *arg, const uint8_t *restrict src, size_t n,
                                size_t at, size_t count, float *restrict y)
{
    (void)arg;
    (void)n;
    for (size_t i = 0; i < count; i++)
        y[i] += bytes_get_float(src + 4 * (at + i));
}

static const struct codec_values none_values = {
    .block = none_block,
    .size = none_size,
    .encode = none_encode,
    .check = none_check,
    .decode = none_decode,
    .add = none_add,
};

extern const struct codec codec_none;
const struct codec codec_none = {
    .name = "none",
    .about = "plain floats",
    .class = CODEC_CONTRACTION,
    .bound = "delta = 1",
    .unbiased = "",
    .source = "-",
    .values = &none_values,
};
