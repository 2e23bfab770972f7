/* compress/codecs/qnt.c -- a codebook of each block's own quantiles (SketchML).
 *
 * Block of n:  K means f32, not falling | n codes of log2 K bits
 *              K is the largest power of two that is at most q and at most n
 *
 * The line is cut into K buckets of equal mass, and each value becomes the
 * mean of its bucket (Jiang et al. 2018; hivemind's 8-bit codebook), which is
 * the least-squares value for these codes. Error: the squares within buckets,
 * |v|^2 - sum of n_b mean_b^2, so never above |v|^2.
 *
 * Quantiles come from a histogram of at most 16384 values, every s-th of the
 * block, over cells: sign, exponent (32 below the largest value's) and seven
 * bits of mantissa, in the order of the line. An edge between buckets is one
 * between cells; so a code is one look-up, and an edge is off by at most 1/128
 * of itself. A cell with the mass of two buckets or more, as the zeros of a
 * sparse vector are, is a bucket by itself, and the others share the rest.
 *
 * Equal mass is what the paper has, and it spends few codes on tails: delta is
 * .999 on Gaussian data with q = 256 but .85 on fourth powers of it.
 *
 * Codes are used from 0 on; means behind the last one used repeat it.
 */
#include "compress/codec.h"

#include "compress/codecs/error2.h"
#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"
#include "compress/coding/pack.h"

#include "nn/math/vec.h"

#include <math.h>
#include <stdio.h>

enum { QNT_Q, QNT_BLOCK };
enum {
    K_MAX = 256,
    SAMPLE_MAX = 16384,
    OCTAVES = 32,
    CELL_SHIFT = 23 - 7,                       /* Mantissa bits below a cell. */
    CELLS_HALF = OCTAVES << (23 - CELL_SHIFT), /* Cells of values with one sign. */
    CELLS = 2 * CELLS_HALF,
    LANES = 4 /* Sums per code, as neighbours often have the same one. */
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

/* Bits of a code: log2 of the K at the top of this file. */
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

/* ---- cells ---- */

/* The cell of v times a power of two that brings the largest value below 2, so that subnormal
 * values have cells like all others. */
static inline uint32_t cell_of(float v, float shift)
{
    const uint32_t base = (uint32_t)(127 - (OCTAVES - 1)) << 23;
    uint32_t bits = bytes_of_float(v * shift);
    uint32_t abs = bits & 0x7fffffffu;
    uint32_t up = ((abs > base ? abs : base) - base) >> CELL_SHIFT;
    uint32_t minus = 0u - (bits >> 31); /* All ones: count downwards. */
    return (up ^ minus) + CELLS_HALF;
}

VEC_CLONES static void cells_of(uint16_t *restrict cell, const float *restrict v, size_t n,
                                float shift)
{
    for (size_t i = 0; i < n; i++)
        cell[i] = (uint16_t)cell_of(v[i], shift);
}

/* ---- buckets ---- */

/* The histogram: how many of the sampled values are in each cell. */
struct sample
{
    uint32_t n;
    uint16_t count[CELLS];
};

/* The step is odd, so that it meets every column of a matrix whose width is a
 * power of two. */
static void take_sample(struct sample *s, const struct codec_block *b, float shift)
{
    *s = (struct sample){0};
    size_t step = (b->n + SAMPLE_MAX - 1) / SAMPLE_MAX | 1;
    for (size_t i = 0; i < b->n; i += step) {
        s->count[cell_of(b->v[i], shift)]++;
        s->n++;
    }
}

/* A code for every cell, rising along the line; at most K of them. A light
 * cell's bucket follows from the light mass below its middle, in L = K - 2 H equal
 * parts: H heavy cells take a bucket each, and may each cut a light one in two.
 */
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
    uint32_t now = 0; /* The code. */
    int part = -1;    /* The part of the cell before; -1 where a new one must begin. */
    bool any = false; /* Has the bucket a value? */
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

/* ---- encoding ---- */

struct mass
{
    double sum, n;
};

static inline uint16_t code_one(struct mass *mass, const uint8_t *table, uint16_t cell, float v)
{
    uint16_t code = table[cell];
    mass[code].sum += (double)v;
    mass[code].n += 1.0;
    return code;
}

/* Code a chunk, and add its values to their buckets. */
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

/* Write the means; returns |v - C(v)|^2 less |v|^2, a negative number. */
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
            mean = (float)(m.sum / m.n) + 0.0f; /* No -0. */
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
    /* A difference of sums is good for 1e-12 of |v|^2: see whether that will
     * do. */
    double e2 = b->x2 + put_means(dst, mass, k);
    if (e2 > 1e-6 * b->x2)
        return e2;
    return codec_error2(&qnt_values, arg, dst, b->v, b->n);
}

/* ---- decoding ---- */

/* The bits of a float as an integer of the same order; not for -0. */
static inline int64_t order_of(uint32_t bits)
{
    int64_t abs = (int64_t)(bits & 0x7fffffffu);
    return bits >> 31 ? -abs : abs;
}

/* Are the means in range, without -0, and none below the one before? */
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

/* Codes from 0 to the last one used are all used, and the means behind it
 * repeat its own. */
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
    memset(code, 0, count * sizeof *code); /* The only code of no bits. */
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
    .about = "means of the buckets between a block's quantiles",
    .class = CODEC_CONTRACTION,
    .bound = "delta = 1 - (squares within buckets) / |v|^2",
    .source = "Jiang et al. 2018 (SketchML), in use in hivemind",
    .params = qnt_params,
    .settle = qnt_settle,
    .values = &qnt_values,
};
