/* compress/codecs/aji.c -- every |v| at or above a sample's (1 - keep)-quantile.
 *
 * Gradient dropping (Aji, Heafield 2017): top-k by a threshold that is only
 * estimated, so that the number sent is not known beforehand: about keep * n,
 * with a relative deviation of 1 / sqrt(keep * m).
 *
 *   sample   m elements (sample.h)
 *   take     all >= the ceil(keep * m)-th largest of them
 *
 * Zeros are never sent, though the quantile may be zero. More than twice the
 * share and 64 (most values tie, or the sample missed what is large) are not
 * sent either: then it is the exact top ceil(keep * n), as topk's.
 *
 * Whatever the sample says, what is sent is the largest of v: delta >= 1/n.
 */
#include "compress/codec.h"

#include "compress/codecs/keep.h"
#include "compress/codecs/sample.h"
#include "compress/codecs/scan.h"
#include "compress/codecs/select.h"
#include "compress/coding/bytes.h"

enum { SLACK = 64 };

static const struct codec_param aji_params[] = {
    KEEP_PARAMS,
    {.name = NULL},
};

static size_t aji_limit(size_t share, size_t n)
{
    return 2 * share + SLACK < n ? 2 * share + SLACK : n;
}

static size_t aji_most(const int64_t *arg, size_t n)
{
    return aji_limit(keep_most(arg, n), n);
}

/* ---- the sample ---- */

static size_t whole_lines(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

/* The parts of scratch that finding the rank-th largest of a sample of m needs. */
struct sample
{
    float *v;
    struct codec_pick top;
};

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

/* The larger of two needs: the sample is done with when all of v is searched. */
static size_t aji_scratch(const int64_t *arg, size_t n)
{
    size_t m = sample_size(n);
    size_t rank = keep_most(arg, m);
    size_t sample =
        whole_lines(m * 4) + 2 * whole_lines((rank + CODEC_CHUNK) * 4) + select_scratch(m, rank);
    size_t all = select_scratch(n, keep_most(arg, n));
    return sample > all ? sample : all;
}

/* Find the bits of the quantile, 0 where it is zero. 0 or -ERANGE. */
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
    .about = "coordinates above a quantile, as a sample has it",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n, and about keep",
    .source = "Aji, Heafield 2017",
    .params = aji_params,
    .selector = &aji_selector,
};
