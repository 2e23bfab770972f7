/* compress/codecs/aji.c -- selector "aji": all values above an estimated quantile.
 *
 * Gradient dropping (Aji, Heafield 2017) is top-k with an estimated threshold: the (1 -
 * keep)-quantile of |v|, estimated from a sample of m elements. The number of selected values is
 * therefore only about keep * n, with a relative standard deviation of 1 / sqrt(keep * m).
 *
 *   sample    m elements (sample.h)
 *   collect   all values that reach the ceil(keep * m)-th largest value of the sample
 *
 * Zeros are never sent, even if the quantile is zero. The estimate can be far too low, if most
 * values are equal or if the sample missed the large values. If more than 2 * keep * n + 64 values
 * reach the threshold, the ceil(keep * n) largest values are sent instead, as topk does.
 *
 * The values sent are always the largest values of v, so the contraction delta is at least 1/n.
 */
#include "compress/codec.h"

#include "compress/codecs/keep.h"
#include "compress/codecs/sample.h"
#include "compress/codecs/scan.h"
#include "compress/codecs/select.h"
#include "compress/coding/bytes.h"

/* The largest number of selected values is twice the wanted number, plus SLACK. */
enum { SLACK = 64 };

static const struct codec_param aji_params[] = {
    KEEP_PARAMS,
    {.name = NULL},
};

/* Returns the largest number of values that may be selected out of n, if `share` values are
 * wanted. */
static size_t aji_limit(size_t share, size_t n)
{
    return 2 * share + SLACK < n ? 2 * share + SLACK : n;
}

static size_t aji_most(const int64_t *arg, size_t n)
{
    return aji_limit(keep_most(arg, n), n);
}

/* ---- Estimating the threshold from a sample ---- */

/* Returns n_bytes rounded up to whole cache lines of 64 bytes. */
static size_t whole_lines(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

/* Buffers for finding the magnitude of a given rank in a sample: the sample `v`, and the elements
 * `top` that select_top() chooses from it. All arrays are in the scratch memory. */
struct sample
{
    float *v;
    struct codec_pick top;
};

/* Places the arrays of struct sample in the scratch memory at `at`, for a sample of m elements. */
static struct sample carve(uint8_t *at, size_t m, size_t rank)
{
    size_t picks = whole_lines((rank + CODEC_CHUNK) * 4);
    struct sample s = {.v = (float *)(void *)at};
    at += whole_lines(m * 4);
    s.top.index = (uint32_t *)(void *)at;
    s.top.value = (float *)(void *)(at + picks);
    s.top.scratch = at + 2 * picks;
    return s;
}

/* Returns the scratch size in bytes. The sample and the exact top-k search share one area, because
 * the search begins when the sample is no longer needed. */
static size_t aji_scratch(const int64_t *arg, size_t n)
{
    size_t m = sample_size(n);
    size_t rank = keep_most(arg, m);
    size_t sample =
        whole_lines(m * 4) + 2 * whole_lines((rank + CODEC_CHUNK) * 4) + select_scratch(m, rank);
    size_t all = select_scratch(n, keep_most(arg, n));
    return sample > all ? sample : all;
}

/* Sets *threshold to the bit pattern of the rank-th largest magnitude in a sample of m elements, or
 * to 0 if that magnitude is zero. Returns 0 or -ERANGE. */
static int sample_quantile(const struct codec_source *s, size_t m, size_t rank, uint8_t *scratch,
                           uint32_t *threshold)
{
    struct sample sample = carve(scratch, m, rank);
    struct codec_source drawn = {.x = sample.v, .n = m};
    sample_draw(s, sample.v);
    int err = select_top(&drawn, rank, &sample.top, NULL);
    if (err != 0)
        return err;
    *threshold = sample.top.k < rank ? 0 : UINT32_MAX;
    for (size_t i = 0; i < sample.top.k; i++) {
        uint32_t bits = bytes_of_float(sample.top.value[i]) & 0x7fffffffu;
        *threshold = bits < *threshold ? bits : *threshold;
    }
    return 0;
}

static int aji_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    size_t share = keep_count(arg, s->n, s->round);
    size_t m = sample_size(s->n);
    uint32_t threshold;
    int err = sample_quantile(s, m, keep_count(arg, m, s->round), pick->scratch, &threshold);
    if (err == 0)
        err = scan_above(s, threshold, aji_limit(share, s->n), pick);
    return err > 0 ? select_top(s, share, pick, NULL) : err;
}

static const struct codec_selector aji_selector = {
    .most = aji_most,
    .typical = keep_typical,
    .scratch = aji_scratch,
    .select = aji_select,
};

extern const struct codec codec_aji;
const struct codec codec_aji = {
    .name = "aji",
    .about = "elements above a quantile of |v| that is estimated from a sample",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n, and about keep",
    .source = "Aji, Heafield 2017",
    .params = aji_params,
    .selector = &aji_selector,
};
