/* compress/codecs/thr.c -- selector "thr": all values with |v| >= t, for a fixed threshold t.
 *
 * As in common frameworks, t is an absolute number. The same t therefore selects most differences
 * of a model early in training and none late in training. If no value reaches t, nothing is sent,
 * so the contraction delta may be 0. The codec exists only to reproduce published results. The
 * selectors adath and aji compute a threshold from v instead.
 */
#include "compress/codec.h"

#include "compress/codecs/scan.h"

enum {
    /* Index of the argument `t` in `arg`, the array of argument values. `t` is stored in
     * billionths. */
    THR_T
};
enum {
    /* For planning bandwidth, the codec estimates that one value in TYPICAL_PART is selected. */
    TYPICAL_PART = 100
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
    .about = "elements with magnitude at least t",
    .class = CODEC_NEITHER,
    .bound = "|error| < t for each element; delta = 0 if all |v| < t",
    .source = "GRACE (Xu et al. 2021)",
    .params = thr_params,
    .selector = &thr_selector,
};
