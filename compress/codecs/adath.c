/* compress/codecs/adath.c -- selector "adath": all values with |v| >= share * max |v|.
 *
 * The first pass finds the largest magnitude, and the second pass collects all values that reach
 * the given share of it. At least the largest value is sent, so the contraction delta is at least
 * 1/n. Of a million Gaussian values, share = 0.5 selects about one value in seventy. If all values
 * are equal, all of them are selected.
 */
#include "compress/codec.h"

#include "compress/codecs/scan.h"
#include "compress/coding/bytes.h"

enum {
    /* Index of the argument `share` in `arg`, the array of argument values. `share` is stored in
     * billionths. */
    ADATH_SHARE
};
enum {
    /* For planning bandwidth, the codec estimates that one value in TYPICAL_PART is selected. */
    TYPICAL_PART = 70
};

static const struct codec_param adath_params[] = {
    {.name = "share",
     .kind = CODEC_DECIMAL,
     .low = 1,
     .high = 1000000000,
     .preset = 500000000,
     .wants = "in (0, 1]"},
    {.name = NULL},
};

static size_t adath_most(const int64_t *arg, size_t n)
{
    (void)arg;
    return n;
}

static size_t adath_typical(const int64_t *arg, size_t n)
{
    (void)arg;
    return (n + TYPICAL_PART - 1) / TYPICAL_PART;
}

/* The threshold is share * max |v|. Rounding never makes the threshold larger than max |v|, so at
 * least the largest value is selected. */
static int adath_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    uint32_t max;
    int err = scan_max(s, &max);
    if (err != 0)
        return err;
    double share = (double)arg[ADATH_SHARE] / 1e9;
    uint32_t t = scan_threshold(share * (double)bytes_to_float(max));
    return scan_above(s, t, s->n, pick);
}

static const struct codec_selector adath_selector = {
    .most = adath_most,
    .typical = adath_typical,
    .select = adath_select,
};

extern const struct codec codec_adath;
const struct codec codec_adath = {
    .name = "adath",
    .about = "elements with at least a given share of the largest magnitude",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n",
    .source = "layer-wise compression toolkit; similar to AdaComp",
    .params = adath_params,
    .selector = &adath_selector,
};
