/* compress/codecs/nat.c -- values codec "nat": natural compression (sign and exponent).
 *
 * Encoded block of n <= 1024 values:  n exponent bytes | n sign bits, 1 for v < 0, low bit
 *                                     first, zero padding
 *
 * A value 2^k * m with 1 <= m < 2 becomes 2^(k+1) with probability m - 1, otherwise 2^k (Horvath et
 * al. 2019). Adding 23 random bits to the bits of the float carries into the exponent with exactly
 * this probability. The codec is therefore unbiased: E C(v) = v. Its variance is v^2
 * (m - 1)(2 - m) / m^2, which is at most v^2 / 8 (at m = 4/3): omega = 1/8.
 *
 *   round=near    rounds up if m >= 1.5, without random bits. Each error is at most |v| / 3
 *   scale=raw     decodes to these powers of two. Default with round=near
 *   scale=inv1w   decodes to 8/9 = 1 / (1 + omega) of them: delta >= 8/9 on average, and each
 *                 error is below 0.78 |v|. Default with round=sr
 *
 * The exponent byte is the exponent field of a float, which is 127 for 1.0. Byte 0 is an exact zero
 * without a sign. Values below 2^-126 (subnormal floats) become zero in every mode. The codec is
 * unbiased only for larger values. With scale=raw, the encoder fails if a value rounds up to 2^64.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

/* Indices of the codec's arguments in `arg`, the array of argument values that its functions
 * get. */
enum { NAT_ROUND, NAT_SCALE };
enum { SCALE_INV1W, SCALE_RAW };
enum {
    MANTISSA = 23, /* Number of mantissa bits of a float. */
    /* Exponent byte of 2^64, the limit of decoded values. */
    NAT_TOP = CODEC_LIMIT_BITS >> MANTISSA
};

static const char *const scale_choices[] = {"inv1w", "raw", NULL};

static const struct codec_param nat_params[] = {
    PARAMS_ROUND(ROUND_SR),
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = CODEC_UNSET,
     .settled = true,
     .wants = "inv1w or raw"},
    {.name = NULL},
};

static bool nat_settle(int64_t *arg, char *why, size_t n)
{
    (void)why;
    (void)n;
    if (arg[NAT_SCALE] == CODEC_UNSET)
        arg[NAT_SCALE] = arg[NAT_ROUND] == ROUND_SR ? SCALE_INV1W : SCALE_RAW;
    return true;
}

static size_t nat_block(const int64_t *arg)
{
    (void)arg;
    return CODEC_CHUNK;
}

static size_t nat_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return n + (n + 7) / 8;
}

static float factor_of(const int64_t *arg)
{
    return arg[NAT_SCALE] == SCALE_INV1W ? 8.0f / 9.0f : 1.0f;
}

/* Returns the largest valid exponent byte. With scale=inv1w the byte of 2^64 is valid, because it
 * decodes to 8/9 of 2^64. */
static unsigned top_of(const int64_t *arg)
{
    return arg[NAT_SCALE] == SCALE_INV1W ? NAT_TOP : NAT_TOP - 1;
}

static double nat_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    struct simd_powers p = {
        .random = arg[NAT_ROUND] == ROUND_SR,
        .key = b->key,
        .first = b->first,
        .factor = factor_of(arg),
        .shift = error2_shift(b->max),
    };
    double e2 = simd_power_put(&p, dst, b->v, b->n);
    return p.top <= top_of(arg) ? error2_unshift(e2, b->max) : -1.0;
}

/* Expands each byte of eight sign bits to eight bytes of 0 or 0x80. The multiplication copies the
 * byte eight times, the mask keeps a different bit of each copy, and the addition carries that bit
 * to the top of its byte. */
VEC_CLONES static void spread_signs(uint8_t *restrict minus, const uint8_t *restrict sign,
                                    size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        uint64_t own = sign[i] * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
        bytes_put_u64(minus + 8 * i,
                      (own + UINT64_C(0x7f7f7f7f7f7f7f7f)) & UINT64_C(0x8080808080808080));
    }
}

/* Result of a pass over all codes of a block. check() decides with it whether the block is
 * valid. */
struct seen
{
    uint8_t top;  /* Largest exponent byte in the block. */
    uint8_t bare; /* Not 0: the block is invalid, because some zero has a sign bit. */
};

VEC_CLONES static struct seen look_at_codes(const uint8_t *restrict exponent,
                                            const uint8_t *restrict minus, size_t n)
{
    struct seen s = {0};
    for (size_t i = 0; i < n; i++) {
        s.top = exponent[i] > s.top ? exponent[i] : s.top;
        s.bare |= minus[i] & (uint8_t)(0 - (exponent[i] == 0));
    }
    return s;
}

static bool nat_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    const uint8_t *sign = src + n;
    if (n % 8 != 0 && sign[n / 8] >> (n % 8) != 0)
        return false;
    uint8_t minus[CODEC_CHUNK];
    spread_signs(minus, sign, (n + 7) / 8);
    struct seen s = look_at_codes(src, minus, n);
    return s.top <= top_of(arg) && s.bare == 0;
}

/* Returns the decoded value: the power of two of the exponent byte, times `factor`. `minus` is 0x80
 * for a negative value, else 0. */
static inline float value_of(uint8_t exponent, uint8_t minus, float factor)
{
    float power = bytes_to_float((uint32_t)exponent << MANTISSA) * factor;
    return bytes_to_float(bytes_of_float(power) | (uint32_t)minus << 24);
}

VEC_CLONES static void values_of(const uint8_t *restrict exponent, const uint8_t *restrict minus,
                                 size_t n, float factor, float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = value_of(exponent[i], minus[i], factor);
}

static void nat_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                       float *v)
{
    uint8_t minus[CODEC_CHUNK];
    spread_signs(minus, src + n + at / 8, (count + 7) / 8);
    values_of(src + at, minus, count, factor_of(arg), v);
}

static void nat_add(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                    float *y)
{
    simd_power_add(y, src + at, src + n + at / 8, count, factor_of(arg));
}

static const struct codec_values nat_values = {
    .block = nat_block,
    .size = nat_size,
    .encode = nat_encode,
    .check = nat_check,
    .decode = nat_decode,
    .add = nat_add,
};

extern const struct codec codec_nat;
const struct codec codec_nat = {
    .name = "nat",
    .about = "sign and exponent of each value, rounded at random to a power of two",
    .class = CODEC_EXPECTED,
    .bound = "delta >= 8/9",
    .unbiased = "scale=raw",
    .source = "Horvath et al. 2019",
    .params = nat_params,
    .settle = nat_settle,
    .values = &nat_values,
};
