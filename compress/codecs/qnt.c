/* compress/codecs/qnt.c -- values codec "qnt": a codebook of each block's own quantiles (SketchML).
 *
 * Encoded block of n values:  K means f32 in ascending order | n codes of log2 K bits
 *                             K is the largest power of two that is at most q and at most n
 *
 * The values of a block are divided into K buckets by quantiles, so that each bucket has about the
 * same number of values. The code of a value is the number of its bucket, and the value is decoded
 * as the mean of the bucket (Jiang et al. 2018; the 8-bit codebook of hivemind). No other codebook
 * has a smaller squared error for the same codes. With n_b values of mean m_b in bucket b, the
 * squared error is |v|^2 - sum of n_b m_b^2, which never exceeds |v|^2.
 *
 * Quantiles are estimated from a histogram of at most 16384 values, every s-th value of the block.
 * A cell of the histogram is a sign, one of 32 exponents from the largest value down, and seven
 * bits of mantissa. The cells are ordered by value. Borders between buckets are borders between
 * cells. A code is therefore found by one table lookup, and a border is wrong by at most 1/128 of
 * its value. A cell with as many values as two buckets or more, such as the zeros of a sparse
 * vector, is a bucket of its own. The other cells share the remaining buckets.
 *
 * Buckets of equal numbers of values follow the paper and spend few codes on the largest values.
 * With q = 256 the contraction delta is 0.999 for Gaussian values, but 0.85 for fourth powers of
 * Gaussian values.
 *
 * The codes in use are 0, 1, 2, ... without gaps. The means of unused codes repeat the last used
 * mean.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/coding/pack.h"

#include "nn/math/vec.h"

#include <math.h>
#include <stdio.h>

/* Indices of the codec's arguments in `arg`, the array of argument values that its functions
 * get. */
enum { QNT_Q, QNT_BLOCK };
enum {
    K_MAX = 256,        /* Largest number of buckets, the groups of values that share one code. */
    SAMPLE_MAX = 16384, /* Largest number of sampled values of a block. */
    OCTAVES = 32,       /* Number of exponents that the histogram distinguishes. */
    /* Number of low mantissa bits that the histogram ignores: 16 of 23. */
    CELL_SHIFT = 23 - 7,
    /* Number of histogram cells for values of one sign. */
    CELLS_HALF = OCTAVES << (23 - CELL_SHIFT),
    CELLS = 2 * CELLS_HALF, /* Number of histogram cells. */
    /* Number of separate sums for each code. With a single sum, each addition for a code would wait
     * for the previous addition. */
    LANES = 4
};

static const struct codec_param qnt_params[] = {
    {.name = "q",
     .kind = CODEC_INTEGER,
     .low = 2,
     .high = K_MAX,
     .step = 2,
     .preset = K_MAX,
     .wants = "a power of two from 2 to 256"},
    PARAMS_BLOCK("block", 0),
    {.name = NULL},
};

static bool qnt_settle(int64_t *arg, char *why, size_t n)
{
    if ((arg[QNT_Q] & (arg[QNT_Q] - 1)) == 0)
        return true;
    snprintf(why, n, "q must be a power of two from 2 to 256, found %d", (int)arg[QNT_Q]);
    return false;
}

static size_t qnt_block(const int64_t *arg)
{
    return (size_t)arg[QNT_BLOCK];
}

/* Returns the number of bits of a code: log2 of the number of buckets K (see the top of this
 * file). */
static unsigned bits_of(const int64_t *arg, size_t n)
{
    unsigned bits = 0;
    while (2u << bits <= (size_t)arg[QNT_Q] && (size_t)2 << bits <= n)
        bits++;
    return bits;
}

static size_t qnt_size(const int64_t *arg, size_t n)
{
    unsigned bits = bits_of(arg, n);
    return ((size_t)4 << bits) + pack_size(n, bits);
}

/* ---- Cells of the histogram of values ---- */

/* Returns the histogram cell of v. `shift` is a power of two that brings the largest value of the
 * block below 2, so that subnormal values have cells like all others. */
static inline uint32_t cell_of(float v, float shift)
{
    const uint32_t base = (uint32_t)(127 - (OCTAVES - 1)) << 23;
    uint32_t bits = bytes_of_float(v * shift);
    uint32_t abs = bits & 0x7fffffffu;
    uint32_t up = ((abs > base ? abs : base) - base) >> CELL_SHIFT;
    /* `minus` has all bits set if the value is negative. The cells of negative values are numbered
     * downwards, so that cells ascend with the value. */
    uint32_t minus = 0u - (bits >> 31);
    return (up ^ minus) + CELLS_HALF;
}

VEC_CLONES static void cells_of(uint16_t *restrict cell, const float *restrict v, size_t n,
                                float shift)
{
    for (size_t i = 0; i < n; i++)
        cell[i] = (uint16_t)cell_of(v[i], shift);
}

/* ---- Dividing the cells among the codes ---- */

/* Histogram of the sample: the number of sampled values in each cell. */
struct sample
{
    uint32_t n;
    uint16_t count[CELLS];
};

/* Counts every `step`-th value of the block in the histogram. `step` is odd: if the block is a
 * matrix with a power of two as width, an even step would skip some of its columns. */
static void take_sample(struct sample *s, const struct codec_block *b, float shift)
{
    *s = (struct sample){0};
    size_t step = (b->n + SAMPLE_MAX - 1) / SAMPLE_MAX | 1;
    for (size_t i = 0; i < b->n; i += step) {
        s->count[cell_of(b->v[i], shift)]++;
        s->n++;
    }
}

/* Assigns one of at most K codes to each cell of the histogram. Larger values get larger codes. A
 * cell is heavy if it has as many values as two buckets or more, and gets a code of its own. A
 * heavy cell may split a bucket of light cells in two, which takes one more code, so H heavy cells
 * leave K - 2 H codes for the light cells. The values of the light cells are divided into equal
 * parts, one per code. A light cell belongs to the part that contains its middle value. */
static void assign_codes(uint8_t *restrict code, const struct sample *s, uint32_t k)
{
    uint32_t light = s->n;
    uint32_t parts = k;
    uint32_t heavy = 2 * s->n / k + (2 * s->n % k != 0);
    for (size_t i = 0; i < CELLS; i++)
        if (s->count[i] >= heavy) {
            light -= s->count[i];
            parts -= 2;
        }
    uint32_t below = 0;
    uint32_t now = 0; /* Code of the bucket to which the loop now adds cells of the histogram. */
    /* A light cell is a cell without a bucket of its own. The values of all light cells are divided
     * into `parts` equal parts. `part` is the number of the part that contains the previous light
     * cell. -1: the next cell must begin a new bucket. */
    int part = -1;
    bool any = false; /* True: the present bucket contains at least one value. */
    double share = (double)parts / (double)(light > 0 ? light : 1);
    for (size_t i = 0; i < CELLS; i++) {
        uint32_t count = s->count[i];
        if (count > 0) {
            bool alone = count >= heavy;
            double middle = (double)below + 0.5 * (double)count;
            int in = alone ? -1 : (int)(middle * share);
            if (any && (alone || in != part))
                now++;
            any = true;
            part = in;
            below += alone ? 0 : count;
        }
        code[i] = (uint8_t)now;
    }
}

/* ---- Encoding a block ---- */

/* Sum and number of the values of a bucket. */
struct mass
{
    double sum, n;
};

/* Returns the code of the value v, given its histogram cell. Also adds v to the sum of the values
 * that have this code. */
static inline uint16_t code_one(struct mass *mass, const uint8_t *table, uint16_t cell, float v)
{
    uint16_t code = table[cell];
    mass[code].sum += (double)v;
    mass[code].n += 1.0;
    return code;
}

/* Writes the codes of n values. Also adds each value to the sum of the values that have the same
 * code. */
static void code_chunk(uint16_t *restrict code, struct mass (*restrict mass)[K_MAX],
                       const uint8_t *restrict table, const uint16_t *restrict cell,
                       const float *restrict v, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            code[i + j] = code_one(mass[j], table, cell[i + j], v[i + j]);
    for (; i < n; i++)
        code[i] = code_one(mass[0], table, cell[i], v[i]);
}

/* Writes the codebook, that is the mean of each of the k buckets. Returns the change of the squared
 * error, |v - C(v)|^2 - |v|^2, which is not positive. */
static double put_means(uint8_t *dst, struct mass (*mass)[K_MAX], size_t k)
{
    double gain = 0.0;
    float mean = 0.0f;
    for (size_t c = 0; c < k; c++) {
        struct mass m = {0};
        for (size_t j = 0; j < LANES; j++) {
            m.sum += mass[j][c].sum;
            m.n += mass[j][c].n;
        }
        if (m.n > 0.0) {
            /* Adding 0 turns a mean of -0 into +0, because check() rejects -0. */
            mean = (float)(m.sum / m.n) + 0.0f;
            double s = (double)mean;
            gain += s * (m.n * s - 2.0 * m.sum);
        }
        bytes_put_float(dst + 4 * c, mean);
    }
    return gain;
}

static const struct codec_values qnt_values;

static double qnt_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    unsigned bits = bits_of(arg, b->n);
    size_t k = (size_t)1 << bits;
    float shift = error2_shift(b->max);
    uint8_t table[CELLS];
    struct sample sample;
    take_sample(&sample, b, shift);
    assign_codes(table, &sample, (uint32_t)k);

    struct mass mass[LANES][K_MAX] = {0};
    uint16_t cell[CODEC_CHUNK];
    uint16_t code[CODEC_CHUNK];
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        cells_of(cell, b->v + at, count, shift);
        code_chunk(code, mass, table, cell, b->v + at, count);
        if (bits > 0)
            pack_put(dst + 4 * k + at / 8 * bits, code, count, bits);
    }
    /* The squared error e2 is a difference of sums, with a rounding error of about 1e-12 |v|^2. If
     * e2 is not much larger than this error, the block is decoded to measure e2 exactly. */
    double e2 = b->x2 + put_means(dst, mass, k);
    if (e2 > 1e-6 * b->x2)
        return e2;
    return codec_error2(&qnt_values, arg, dst, b->v, b->n);
}

/* ---- Checking and decoding a block ---- */

/* Maps the bit pattern of a float to an integer that has the same order as the floats. -0 is not
 * allowed. */
static inline int64_t order_of(uint32_t bits)
{
    int64_t abs = (int64_t)(bits & 0x7fffffffu);
    return bits >> 31 ? -abs : abs;
}

/* Returns true if the k means in the message are valid: in range, in ascending order and not -0. */
static bool means_proper(const uint8_t *src, size_t k)
{
    int64_t last = INT64_MIN;
    for (size_t c = 0; c < k; c++) {
        uint32_t bits = bytes_get_u32(src + 4 * c);
        if ((bits & 0x7fffffffu) >= CODEC_LIMIT_BITS || bits == 0x80000000u
            || order_of(bits) < last)
            return false;
        last = order_of(bits);
    }
    return true;
}

/* Returns true if all codes from 0 to the last used code occur, and the means of the later codes
 * repeat the mean of the last used code. seen[c] is not 0 if code c occurs. */
static bool codes_proper(const uint8_t *src, const uint8_t *seen, size_t k)
{
    size_t used = k;
    while (used > 0 && !seen[used - 1])
        used--;
    for (size_t c = 0; c < used; c++)
        if (!seen[c])
            return false;
    uint32_t last = bytes_get_u32(src + 4 * (used - 1));
    for (size_t c = used; c < k; c++)
        if (bytes_get_u32(src + 4 * c) != last)
            return false;
    return true;
}

static bool qnt_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    unsigned bits = bits_of(arg, n);
    size_t k = (size_t)1 << bits;
    if (!means_proper(src, k))
        return false;
    if (bits == 0)
        return true;
    const uint8_t *packed = src + 4 * k;
    if (!pack_padded(packed, n, bits))
        return false;
    uint8_t seen[K_MAX] = {0};
    uint16_t code[CODEC_CHUNK];
    for (size_t at = 0; at < n; at += CODEC_CHUNK) {
        size_t count = n - at < CODEC_CHUNK ? n - at : CODEC_CHUNK;
        pack_get(packed + at / 8 * bits, code, count, bits);
        for (size_t i = 0; i < count; i++)
            seen[code[i]] = 1;
    }
    return codes_proper(src, seen, k);
}

static void qnt_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                       float *v)
{
    unsigned bits = bits_of(arg, n);
    size_t k = (size_t)1 << bits;
    uint16_t code[CODEC_CHUNK];
    float mean[K_MAX];
    for (size_t c = 0; c < k; c++)
        mean[c] = bytes_get_float(src + 4 * c);
    /* With a single bucket a code has 0 bits, and every code is 0. */
    memset(code, 0, count * sizeof *code);
    if (bits > 0)
        pack_get(src + 4 * k + at / 8 * bits, code, count, bits);
    for (size_t i = 0; i < count; i++)
        v[i] = mean[code[i]];
}

static const struct codec_values qnt_values = {
    .block = qnt_block,
    .size = qnt_size,
    .encode = qnt_encode,
    .check = qnt_check,
    .decode = qnt_decode,
};

extern const struct codec codec_qnt;
const struct codec codec_qnt = {
    .name = "qnt",
    .about = "for each block, a codebook with the mean of the values between successive quantiles",
    .class = CODEC_CONTRACTION,
    .bound = "delta = 1 - (squares within buckets) / |v|^2",
    .source = "Jiang et al. 2018 (SketchML); used in hivemind",
    .params = qnt_params,
    .settle = qnt_settle,
    .values = &qnt_values,
};
