/* compress/codecs/thr.c -- every |v| >= t, with t fixed beforehand.
 *
 * As frameworks have it: t is absolute, so that the same spec takes all of a
 * young model's differences and none of an old one's. Where nothing passes,
 * nothing is sent: delta may be 0, and is not the same for 2^k v. For
 * reproduction; adath and aji find a threshold in v itself.
 */
#include "compress/codec.h"

#include "compress/codecs/scan.h"

enum {
    THR_T /* Billionths. */
};
enum {
    TYPICAL_PART = 100 /* One in so many passes, for planning. */
};

static const struct codec_param thr_params[] = {
    {.name = "t",
     .kind = CODEC_DECIMAL,
     .low = 1,
     .high = INT64_C(1000000000000000),
     .preset = 1000000,
     .wants = "in (0, 1000000]"},
    {.name = NULL},
};

static size_t thr_most(const int64_t *arg, size_t n)
{
    (void)arg;
    return n;
}

static size_t thr_typical(const int64_t *arg, size_t n)
{
    (void)arg;
    return (n + TYPICAL_PART - 1) / TYPICAL_PART;
}

static int thr_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    uint32_t t = scan_threshold((double)arg[THR_T] / 1e9);
    return scan_above(s, t, s->n, pick);
}

static const struct codec_selector thr_selector = {
    .most = thr_most,
    .typical = thr_typical,
    .select = thr_select,
};

extern const struct codec codec_thr;
const struct codec codec_thr = {
    .name = "thr",
    .about = "coordinates of a fixed magnitude t or more",
    .class = CODEC_NEITHER,
    .bound = "|error| < t each; delta = 0 if all |v| < t",
    .source = "GRACE (Xu et al. 2021)",
    .params = thr_params,
    .selector = &thr_selector,
};
