/* compress/codecs/onebit.c -- values codec "onebit": one bit per value, two means per block.
 *
 * Encoded block of n values:  plus f32 | minus f32 | n bits, 1 for v < 0, low bit first,
 *                             zero padding
 *
 * The values are divided into two classes, v >= 0 and v < 0. C(v) is `plus` for v >= 0 and -`minus`
 * for v < 0, where plus and minus are the means of |v| over each class (1-bit SGD, Seide et al.
 * 2014). No other two numbers give a smaller squared error for the same bits. The squared error is
 * |v|^2 - S+^2/n+ - S-^2/n-, where S+ and S- are the sums of |v| over the classes and n+ and n- the
 * numbers of values. By Cauchy-Schwarz it never exceeds the error of the codec `sign`, which has
 * one scale.
 *
 * The mean of an empty class is 0. The negative class has the mean 0 only if it is empty, because
 * the mean of negative floats never rounds to zero.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <math.h>

enum {
    ONEBIT_BLOCK /* Index of the argument `block` in `arg`, the array of argument values. */
};
enum {
    ONEBIT_HEAD = 8, /* Size in bytes of the two means at the start of an encoded block. */
    /* Number of partial sums for each of the two classes of values (positive and negative), so that
     * the loop vectorises. */
    LANES = 16
};

static const struct codec_param onebit_params[] = {
    PARAMS_BLOCK("block", 0),
    {.name = NULL},
};

static size_t onebit_block(const int64_t *arg)
{
    return (size_t)arg[ONEBIT_BLOCK];
}

static size_t onebit_size(const int64_t *arg, size_t n)
{
    (void)arg;
    return ONEBIT_HEAD + (n + 7) / 8;
}

/* Sums of |v| over both classes of values, v >= 0 and v < 0, each as LANES partial sums. */
struct classes
{
    double plus[LANES], minus[LANES];
};

/* Adds the magnitudes of the values that have the sign bit `sign`. n is a multiple of LANES. No
 * branch is used, because signs are unpredictable. */
VEC_CLONES static void add_class(double *restrict sum, const float *restrict v, size_t n,
                                 uint32_t sign)
{
    double l[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            uint32_t bits = bytes_of_float(v[i + j]);
            uint32_t in = (bits >> 31 ^ sign) - 1u;
            l[j] += (double)bytes_to_float(bits & in & 0x7fffffffu);
        }
    for (size_t j = 0; j < LANES; j++)
        sum[j] += l[j];
}

/* Adds n values to the sums of both classes (v >= 0 and v < 0). Each class is summed by itself. The
 * sum of a class is not computed as the total minus the other class, because rounding would destroy
 * it if it is much smaller. */
static void add_both(struct classes *c, const float *v, size_t n)
{
    add_class(c->plus, v, n, 0);
    add_class(c->minus, v, n, 1);
}

/* Returns the number of bits that are set in n_bytes bytes. */
VEC_CLONES static size_t count_bits(const uint8_t *src, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned b = src[i];
        b -= b >> 1 & 0x55u;
        b = (b & 0x33u) + (b >> 2 & 0x33u);
        n += (b + (b >> 4)) & 15u;
    }
    return n;
}

/* Writes the mean of one class (the values with one sign), given their sum and number. Returns the
 * amount by which sending this mean reduces the squared error of the block. */
static double put_mean(uint8_t *dst, double sum, size_t n)
{
    float mean = n > 0 ? (float)(sum / (double)n) : 0.0f;
    bytes_put_float(dst, mean);
    double m = (double)mean;
    return m * (2.0 * sum - (double)n * m);
}

static double onebit_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    (void)arg;
    struct classes c = {.plus = {0}};
    uint8_t *bits = dst + ONEBIT_HEAD;
    /* The sign bit of a zero is always 0, because -0 is turned into +0 before values are
     * encoded. */
    simd_sign_put(bits, b->v, b->n);
    size_t whole = b->n / LANES * LANES;
    add_both(&c, b->v, whole);
    float tail[LANES] = {0};
    memcpy(tail, b->v + whole, (b->n - whole) * sizeof *tail);
    add_both(&c, tail, LANES);
    size_t negatives = count_bits(bits, (b->n + 7) / 8);
    double taken = put_mean(dst, codec_sum(c.plus, LANES), b->n - negatives)
                   + put_mean(dst + 4, codec_sum(c.minus, LANES), negatives);
    return fmax(0.0, b->x2 - taken);
}

/* Combines n_bytes bytes with OR (*any) and with AND (*every). *any is not 0 if some bit is set.
 * *every is 0xff if all bits are set. */
VEC_CLONES static void fold_bits(const uint8_t *src, size_t n_bytes, unsigned *any, unsigned *every)
{
    unsigned or = 0;
    unsigned and = 0xff;
    for (size_t i = 0; i < n_bytes; i++) {
        or |= src[i];
        and &= src[i];
    }
    *any = or ;
    *every = and;
}

static bool onebit_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    uint32_t plus = bytes_get_u32(src);
    uint32_t minus = bytes_get_u32(src + 4);
    if (plus >= CODEC_LIMIT_BITS || minus >= CODEC_LIMIT_BITS)
        /* The bit patterns of the two means are compared, so that negative means, -0 and NaN are
         * rejected too. */
        return false;
    size_t n_bytes = onebit_size(arg, n) - ONEBIT_HEAD;
    const uint8_t *bits = src + ONEBIT_HEAD;
    unsigned last = bits[n_bytes - 1];
    unsigned used = n % 8 != 0 ? 0xffu >> (8 - n % 8) : 0xffu;
    if ((last & ~used) != 0)
        return false;
    unsigned any, every;
    fold_bits(bits, n_bytes - 1, &any, &every);
    bool all = every == 0xff && last == used;
    return (minus != 0) == ((any | last) != 0) && (plus == 0 || !all);
}

/* Decodes n_bytes bytes of eight sign bits. `plus` and `minus` are the bit patterns of the two
 * decoded values; `minus` has its sign bit set. */
VEC_CLONES static void decode_bytes(const uint8_t *restrict src, size_t n_bytes, uint32_t plus,
                                    uint32_t minus, float *restrict v)
{
    uint32_t change = plus ^ minus;
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned j = 0; j < 8; j++) {
            uint32_t mask = 0u - ((uint32_t)src[i] >> j & 1u);
            v[8 * i + j] = bytes_to_float(plus ^ (change & mask));
        }
}

static void onebit_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                          float *v)
{
    (void)arg;
    (void)n;
    uint32_t plus = bytes_get_u32(src);
    uint32_t minus = bytes_get_u32(src + 4) | 0x80000000u;
    src += ONEBIT_HEAD + at / 8;
    size_t whole = count / 8;
    decode_bytes(src, whole, plus, minus, v);
    float tail[8];
    if (count % 8 != 0) {
        decode_bytes(src + whole, 1, plus, minus, tail);
        memcpy(v + 8 * whole, tail, (count % 8) * sizeof *v);
    }
}

static const struct codec_values onebit_values = {
    .block = onebit_block,
    .size = onebit_size,
    .encode = onebit_encode,
    .check = onebit_check,
    .decode = onebit_decode,
};

extern const struct codec codec_onebit;
const struct codec codec_onebit = {
    .name = "onebit",
    .about = "one bit per value, and per block the means of v >= 0 and of v < 0",
    .class = CODEC_CONTRACTION,
    .bound = "delta = (S+^2/n+ + S-^2/n-) / |v|^2 >= |v|_1^2 / (n |v|^2)",
    .source = "Seide et al. 2014",
    .params = onebit_params,
    .values = &onebit_values,
};
