/* compress/codecs/thr2.c -- values codec "thr2": two bits per value: plus, minus or zero.
 *
 * Encoded block of n values:  [scale f32] | ceil(n / 4) bytes with codes of 2 bits
 *                             00 zero, 11 plus, 10 minus; 01 is invalid
 *
 * The codes are stored in chunks of at most 1024. A chunk of r codes takes m = ceil(r / 4) bytes.
 * The first m codes are in the lowest two bits of these bytes, the next m codes in the next two
 * bits, and so on. Thus one long loop handles each quarter. Codes past the end are zero.
 *
 * form=free (default): the threshold is t times the mean of |v|, but at most the largest |v|, so
 * that at least one value is sent. The scale is the mean magnitude of the values sent, which
 * minimises the squared error. If k values are sent and their magnitudes sum to S, the squared
 * error is |v|^2 - S^2 / k. Measured contraction delta for several t:
 *
 *   t          0.5   0.6   0.7   0.8   0.9   1.0   1.2
 *   Gaussian    .787  .801  .808  .809  .804  .792  .752
 *   Laplace     .683  .703  .718  .729  .735  .737  .730
 *
 * form=mxnet: the number t is both the threshold and the decoded magnitude, and no scale is sent,
 * as in the gradient compression of MXNet. The squared error is at most |v|^2. Values below t are
 * never sent, so delta is 0 if all values are small. This form exists only to reproduce published
 * results.
 */
#include "compress/codec.h"

#include "compress/codecs/params.h"
#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

#include <math.h>

enum {
    /* Indices of the codec's arguments in `arg`, the array of argument values that its functions
     * get. */
    THR2_T,
    THR2_BLOCK,
    THR2_FORM
};
enum { FORM_FREE, FORM_MXNET };
enum { LANES = 16 };

/* The parameter t in billionths: its default with form=free, its default with form=mxnet, and its
 * largest allowed value. */
#define T_FREE  INT64_C(800000000)
#define T_MXNET INT64_C(500000000)
#define T_MAX   INT64_C(1000000000000)

static const char *const form_choices[] = {"free", "mxnet", NULL};

static const struct codec_param thr2_params[] = {
    {.name = "t",
     .kind = CODEC_DECIMAL,
     .low = 1,
     .high = T_MAX,
     .preset = CODEC_UNSET,
     .settled = true,
     .wants = "in (0, 1000]"},
    PARAMS_BLOCK("block", 0),
    {.name = "form",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = form_choices,
     .preset = FORM_FREE,
     .wants = "free or mxnet"},
    {.name = NULL},
};

static bool thr2_settle(int64_t *arg, char *why, size_t n)
{
    (void)why;
    (void)n;
    if (arg[THR2_T] == CODEC_UNSET)
        arg[THR2_T] = arg[THR2_FORM] == FORM_FREE ? T_FREE : T_MXNET;
    return true;
}

static size_t thr2_block(const int64_t *arg)
{
    return (size_t)arg[THR2_BLOCK];
}

/* Returns the number of bytes of the scale at the start of a block: 4, or 0 with form=mxnet, which
 * sends no scale. */
static size_t head_size(const int64_t *arg)
{
    return arg[THR2_FORM] == FORM_FREE ? 4 : 0;
}

static size_t thr2_size(const int64_t *arg, size_t n)
{
    return head_size(arg) + (n + 3) / 4;
}

static double t_of(const int64_t *arg)
{
    return 1e-9 * (double)arg[THR2_T];
}

/* Statistics of the values sent in a block: the sum of |v|, as LANES partial sums, and the number n
 * of values. */
struct sent
{
    double sum[LANES];
    size_t n;
};

/* Computes the codes of n values, one byte each. Adds the values sent to the statistics in *out. n
 * must be a multiple of LANES, and the threshold t > 0. */
VEC_CLONES static void codes_of(uint8_t *restrict code, const float *restrict v, size_t n, float t,
                                struct sent *restrict out)
{
    double sum[LANES] = {0};
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t take = __builtin_fabsf(v[i]) >= t;
        uint32_t plus = 1u ^ bytes_of_float(v[i]) >> 31;
        code[i] = (uint8_t)(take << 1 | (take & plus));
        k += take;
    }
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            float a = __builtin_fabsf(v[i + j]);
            /* A mask instead of a branch lets the compiler vectorise the loop. */
            uint32_t take = 0u - (uint32_t)(a >= t);
            sum[j] += (double)bytes_to_float(bytes_of_float(a) & take);
        }
    for (size_t j = 0; j < LANES; j++)
        out->sum[j] += sum[j];
    out->n += k;
}

/* Packs 4 m codes, one byte each, into m bytes. */
VEC_CLONES static void pack_codes(uint8_t *restrict dst, const uint8_t *restrict code, size_t m)
{
    for (size_t i = 0; i < m; i++)
        dst[i] =
            (uint8_t)(code[i] | code[m + i] << 2 | code[2 * m + i] << 4 | code[3 * m + i] << 6);
}

/* Writes the codes of a whole block. Returns the statistics of the values sent. */
static struct sent put_codes(uint8_t *dst, const struct codec_block *b, float t)
{
    struct sent out = {.n = 0};
    uint8_t code[CODEC_CHUNK];
    for (size_t at = 0; at < b->n; at += CODEC_CHUNK) {
        size_t count = b->n - at < CODEC_CHUNK ? b->n - at : CODEC_CHUNK;
        size_t whole = count / LANES * LANES;
        codes_of(code, b->v + at, whole, t, &out);
        if (whole < count) {
            /* The last values of the block are padded with zeros. Zeros are below the threshold t,
             * so they do not count as sent. */
            float tail[LANES] = {0};
            memcpy(tail, b->v + at + whole, (count - whole) * sizeof *tail);
            codes_of(code + whole, tail, LANES, t, &out);
        }
        pack_codes(dst + at / 4, code, (count + 3) / 4);
    }
    return out;
}

/* Returns the threshold as a float: the smaller of t and the largest magnitude `max`, but at least
 * the smallest positive float. A threshold of 0 would send zeros. */
static float threshold(double t, float max)
{
    float rounded = t < (double)max ? (float)t : max;
    return rounded > 0.0f ? rounded : 0x1p-149f;
}

static double thr2_encode(const int64_t *arg, const struct codec_block *b, uint8_t *dst)
{
    bool scaled = arg[THR2_FORM] == FORM_FREE;
    double t = t_of(arg);
    float limit = scaled ? threshold(t * b->l1 / (double)b->n, b->max) : (float)t;
    struct sent out = put_codes(dst + head_size(arg), b, limit);
    double sum = codec_sum(out.sum, LANES);
    double k = (double)out.n;
    float scale = limit;
    if (scaled) {
        scale = out.n > 0 ? (float)(sum / k) : 0.0f;
        bytes_put_float(dst, scale);
    }
    double s = (double)scale;
    return fmax(0.0, b->x2 - s * (2.0 * sum - k * s));
}

/* Returns true if any 2-bit code is 01, which is invalid. Sets *any to the OR of all bytes. */
VEC_CLONES static bool improper(const uint8_t *src, size_t n_bytes, unsigned *any)
{
    unsigned bad = 0;
    unsigned all = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        bad |= (unsigned)src[i] & ~((unsigned)src[i] >> 1) & 0x55u;
        all |= src[i];
    }
    *any = all;
    return bad != 0;
}

/* Returns true if the last chunk, which has r codes, has valid padding: all codes past its end are
 * zero. */
static bool tail_padded(const uint8_t *src, size_t r)
{
    size_t m = (r + 3) / 4;
    unsigned behind = 0;
    for (size_t i = r; i < 4 * m; i++)
        behind |= src[i % m] >> (2 * (i / m)) & 3;
    return behind == 0;
}

static bool thr2_check(const int64_t *arg, const uint8_t *src, size_t n)
{
    unsigned any;
    const uint8_t *codes = src + head_size(arg);
    size_t last = (n - 1) / CODEC_CHUNK * CODEC_CHUNK;
    if (improper(codes, (n + 3) / 4, &any) || !tail_padded(codes + last / 4, n - last))
        return false;
    if (arg[THR2_FORM] == FORM_MXNET)
        return true;
    uint32_t scale = bytes_get_u32(src);
    return scale < CODEC_LIMIT_BITS && (scale != 0) == (any != 0);
}

/* Decodes n codes that are in the bits `shift` and `shift` + 1 of n bytes. `scale` is the bit
 * pattern of the decoded magnitude. */
VEC_CLONES static void get_quarter(const uint8_t *restrict src, size_t n, unsigned shift,
                                   uint32_t scale, float *restrict v)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t code = (uint32_t)src[i] >> shift;
        uint32_t take = 0u - (code >> 1 & 1u);
        uint32_t sign = ~code << 31;
        v[i] = bytes_to_float((scale | sign) & take);
    }
}

static void thr2_decode(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                        float *v)
{
    (void)n;
    bool scaled = arg[THR2_FORM] == FORM_FREE;
    uint32_t scale = scaled ? bytes_get_u32(src) : bytes_of_float((float)t_of(arg));
    size_t m = (count + 3) / 4;
    src += head_size(arg) + at / 4;
    for (size_t first = 0; first < count; first += m) {
        size_t some = count - first < m ? count - first : m;
        get_quarter(src, some, (unsigned)(2 * (first / m)), scale, v + first);
    }
}

static const struct codec_values thr2_values = {
    .block = thr2_block,
    .size = thr2_size,
    .wants_l1 = true,
    .encode = thr2_encode,
    .check = thr2_check,
    .decode = thr2_decode,
};

extern const struct codec codec_thr2;
const struct codec codec_thr2 = {
    .name = "thr2",
    .about = "two bits per value: plus, minus or zero, by a threshold on |v|",
    .class = CODEC_CONTRACTION,
    .bound = "delta = S^2 / (k |v|^2), S the sum of the k values |v| sent; form=mxnet: delta = 0, "
             "and not scale-equivariant",
    .source = "MXNet; the threshold relative to mean |v| is new here",
    .params = thr2_params,
    .settle = thr2_settle,
    .values = &thr2_values,
};
