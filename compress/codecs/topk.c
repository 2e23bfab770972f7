/* compress/codecs/topk.c -- selector "topk": the ceil(keep * n) elements of largest magnitude.
 *
 * Of equal magnitudes the lowest index is chosen. Zeros are never sent, so k, the number of
 * elements sent, may be smaller than ceil(keep * n). The squared error is exactly the sum of the
 * n - k smallest squares. The contraction delta is therefore at least k/n.
 */
#include "compress/codec.h"

#include "compress/codecs/keep.h"
#include "compress/codecs/select.h"

static const struct codec_param topk_params[] = {
    KEEP_PARAMS,
    {.name = NULL},
};

static size_t topk_scratch(const int64_t *arg, size_t n)
{
    return select_scratch(n, keep_most(arg, n));
}

static int topk_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    return select_top(s, keep_count(arg, s->n, s->round), pick, NULL);
}

static const struct codec_selector topk_selector = {
    .most = keep_most,
    .typical = keep_typical,
    .scratch = topk_scratch,
    .select = topk_select,
};

extern const struct codec codec_topk;
const struct codec codec_topk = {
    .name = "topk",
    .about = "the elements of largest magnitude",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= keep",
    .source = "Aji, Heafield 2017; Stich et al. 2018",
    .params = topk_params,
    .selector = &topk_selector,
};
