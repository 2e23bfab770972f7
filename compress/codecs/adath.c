/* compress/codecs/adath.c -- every |v| >= share * max |v|.
 *
 * One pass finds the largest magnitude, one takes what is near it. At least
 * one coordinate is sent, the largest: delta >= 1/n. On Gaussian data of a
 * million values share = 0.5 takes about one in seventy; on constant data it
 * takes all.
 */
#include "compress/codec.h"

#include "compress/codecs/scan.h"
#include "compress/coding/bytes.h"

enum {
    ADATH_SHARE /* Billionths. */
};
enum {
    TYPICAL_PART = 70 /* One in so many passes, for planning. */
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

/* The largest is a float that passes: the threshold is not above it. */
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
    .about = "coordinates of a share of the largest magnitude or more",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n",
    .source = "layer-wise compression toolkit; AdaComp's kin",
    .params = adath_params,
    .selector = &adath_selector,
};
