/* compress/fp16.c -- half precision after a power-of-two shift a block.
 *
 * Block of n <= 1024:  e u8 | n x binary16
 *
 * With E the exponent of the largest |v| of the block, values are multiplied
 * by 2^(14-E), so that the largest falls in [2^14, 2^15], rounded to nearest
 * even and sent as binary16; e is E + 127, or 0 for a block of zeros. The
 * shift makes the codec scale-equivariant: a plain cast loses everything
 * below 3e-8, where the differences of a converging run end up.
 *
 * Error: 2^-11 relative, and 2^-38 of the block's largest below 2^-28 of it.
 * 16 bits a value and 8 a block.
 */
#include "compress/codec.h"

#include "compress/bytes.h"

#include "nn/vec.h"

enum {
    FP16_BLOCK = 1024,
    FP16_BIAS = 127,
    FP16_E_MAX = FP16_BIAS + 63, /* Largest below 2^64. */
    FP16_CODE_MAX = 0x7800       /* 2^15: what the largest may round up to. */
};

/* Halves of the shift: its whole, up to 2^140, is no float. */
struct shift
{
    float first, second;
};

static struct shift shift_by(int s)
{
    return (struct shift){bytes_pow2(s / 2), bytes_pow2(s - s / 2)};
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

/* yes ? a : b, as the vectoriser does not see through a branch here. */
static inline uint32_t pick(bool yes, uint32_t a, uint32_t b)
{
    uint32_t mask = 0u - (uint32_t)yes;
    return (a & mask) | (b & ~mask);
}

/* binary16 of f, |f| <= 2^15, to nearest even, never the code of -0. Below
 * 2^-14 a half's step is 2^-24, which adding 1/2 makes the step of the float;
 * above, the bits dropped are rounded in integers. */
static inline uint16_t half_of(float f)
{
    uint32_t bits = bytes_of_float(f);
    uint32_t abs = bits & 0x7fffffffu;
    uint32_t small = bytes_of_float(bytes_to_float(abs) + 0.5f) - 0x3f000000u;
    uint32_t large = ((abs + 0xfffu + (abs >> 13 & 1)) >> 13) - (112u << 10);
    uint32_t code = pick(abs < 0x38800000u, small, large);
    uint32_t sign = pick(code != 0, bits >> 16 & 0x8000u, 0);
    return (uint16_t)(code | sign);
}

static inline float half_to_float(uint16_t h)
{
    uint32_t code = h & 0x7fffu;
    float small = (float)(int32_t)code * 0x1p-24f;
    uint32_t large = (code << 13) + (112u << 23);
    uint32_t bits = pick(code < 0x400, bytes_of_float(small), large);
    return bytes_to_float(bits | (uint32_t)(h & 0x8000u) << 16);
}

VEC_CLONES static void encode_halves(uint8_t *restrict dst,
                                     const float *restrict v, size_t n,
                                     struct shift s)
{
    for (size_t i = 0; i < n; i++)
        bytes_put_u16(dst + 2 * i, half_of(v[i] * s.first * s.second));
}

static bool fp16_encode(const int64_t *arg, const struct codec_block *b,
                        uint8_t *dst)
{
    (void)arg;
    if (!(b->max > 0.0f)) {
        memset(dst, 0, 1 + 2 * b->n);
        return true;
    }
    int e = bytes_exponent(b->max);
    dst[0] = (uint8_t)(e + FP16_BIAS);
    encode_halves(dst + 1, b->v, b->n, shift_by(14 - e));
    return true;
}

VEC_CLONES static bool fp16_check(const int64_t *arg, const uint8_t *src,
                                  size_t n)
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

VEC_CLONES static void decode_halves(const uint8_t *restrict src, size_t n,
                                     struct shift s, float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = half_to_float(bytes_get_u16(src + 2 * i)) * s.first * s.second;
}

static void fp16_decode(const int64_t *arg, const uint8_t *src, size_t n,
                        size_t at, size_t count, float *v)
{
    (void)arg;
    (void)n;
    int e = (int)src[0] - FP16_BIAS;
    decode_halves(src + 1 + 2 * at, count, shift_by(e - 14), v);
}

static const struct codec_values fp16_values = {
    fp16_block, fp16_size, fp16_encode, fp16_check, fp16_decode,
};

const struct codec codec_fp16 = {.name = "fp16", .values = &fp16_values};
