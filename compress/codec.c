#include "compress/codec.h"

#include "nn/vec.h"

#include <string.h>

const struct codec *const codec_all[] = {
    &codec_none,
    &codec_fp16,
    &codec_sign,
    &codec_qsgd,
    &codec_topk,
    &codec_randk,
    NULL,
};

static inline uint32_t abs_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits & 0x7fffffffu;
}

VEC_CLONES static uint32_t load_difference(float *restrict v,
                                           const float *restrict x,
                                           const float *restrict x_hat,
                                           size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = (x[i] - x_hat[i]) + 0.0f; /* -0 + 0 is +0. */
        uint32_t bits = abs_bits(v[i]);
        max = bits > max ? bits : max;
    }
    return max;
}

VEC_CLONES static uint32_t load_plain(float *restrict v,
                                      const float *restrict x, size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = x[i] + 0.0f;
        uint32_t bits = abs_bits(v[i]);
        max = bits > max ? bits : max;
    }
    return max;
}

uint32_t codec_load(float *restrict v, const float *x, const float *x_hat,
                    size_t n)
{
    return x_hat != NULL ? load_difference(v, x, x_hat, n)
                         : load_plain(v, x, n);
}

size_t codec_share(uint64_t billionths, size_t n)
{
    return (size_t)((billionths * n + 999999999u) / 1000000000u);
}
