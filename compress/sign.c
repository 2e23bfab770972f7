/* compress/sign.c -- one bit a value and the mean of |v| a block.
 *
 * Block of n:  scale f32 | n bits, 1 for v < 0, low bit first, zeros to a byte
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
 */
#include "compress/codec.h"

#include "compress/bytes.h"

#include "nn/vec.h"

enum {
    SIGN_BLOCK /* Index of the argument. */
};

static const struct codec_param sign_params[] = {
    {.name = "block", .kind = CODEC_INTEGER, .high = CODEC_BLOCK_MAX, .step = 8,
     .preset = 512, .wants = "0 (all) or a multiple of 8 up to 1048576"},
    {.name = NULL},
};

static size_t sign_block(const int64_t *arg)
{
    return (size_t)arg[SIGN_BLOCK];
}

static size_t sign_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return 4 + (n + 7) / 8;
}

/* Sum of |v|, in eight lanes so that no build changes the order. */
VEC_CLONES static double sum_abs(const float *v, size_t n)
{
    double l[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            l[j] += (double)__builtin_fabsf(v[i + j]);
    for (size_t j = 0; i < n; i++, j++)
        l[j] += (double)__builtin_fabsf(v[i]);
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

/* One byte a sign, 0 or 1. */
VEC_CLONES static void signs_of(uint8_t *restrict sign,
                                const float *restrict v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sign[i] = (uint8_t)(bytes_of_float(v[i]) >> 31); /* There is no -0. */
}

/* Eight bytes of 0 or 1 to eight bits: the product's top byte collects byte i
 * at bit i, and no two terms meet. */
VEC_CLONES static void pack_bits(uint8_t *restrict dst,
                                 const uint8_t *restrict sign, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        dst[i] = (uint8_t)(bytes_get_u64(sign + 8 * i) *
                               UINT64_C(0x0102040810204080) >>
                           56);
}

static bool sign_encode(const int64_t *arg, const struct codec_block *b,
                        uint8_t *dst)
{
    float scale = (float)(sum_abs(b->v, b->n) / (double)b->n);
    bytes_put_float(dst, scale);
    if (!(scale > 0.0f)) { /* All zero, or the mean is below every float. */
        memset(dst + 4, 0, sign_size(arg, b->n) - 4);
        return true;
    }
    uint8_t sign[CODEC_CHUNK];
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        signs_of(sign, b->v + at, count);
        size_t n_bytes = (count + 7) / 8;
        memset(sign + count, 0, 8 * n_bytes - count);
        pack_bits(dst + 4 + at / 8, sign, n_bytes);
    }
    return true;
}

static bool sign_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    uint32_t scale = bytes_get_u32(src);
    if (scale >= CODEC_LIMIT_BITS) /* Also every negative, -0 and NaN. */
        return false;
    size_t size = sign_size(arg, n);
    if (n % 8 != 0 && src[size - 1] >> (n % 8) != 0)
        return false;
    if (scale != 0)
        return true;
    unsigned any = 0;
    for (size_t i = 4; i < size; i++)
        any |= src[i];
    return any == 0;
}

VEC_CLONES static void decode_bytes(const uint8_t *restrict src,
                                    size_t n_bytes, uint32_t scale,
                                    float *restrict v)
{
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned j = 0; j < 8; j++) {
            uint32_t sign = (uint32_t)src[i] << (31 - j) & 0x80000000u;
            v[8 * i + j] = bytes_to_float(scale | sign);
        }
}

static void sign_decode(const int64_t *arg, const uint8_t *src, size_t n,
                        size_t at, size_t count, float *v)
{
    (void)arg;
    (void)n;
    uint32_t scale = bytes_get_u32(src);
    src += 4 + at / 8;
    size_t whole = count / 8;
    decode_bytes(src, whole, scale, v);
    float tail[8];
    if (count % 8 != 0) {
        decode_bytes(src + whole, 1, scale, tail);
        memcpy(v + 8 * whole, tail, (count % 8) * sizeof *v);
    }
}

static const struct codec_values sign_values = {
    sign_block, sign_size, sign_encode, sign_check, sign_decode,
};

const struct codec codec_sign = {
    .name = "sign", .params = sign_params, .values = &sign_values};
