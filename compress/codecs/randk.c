/* compress/codecs/randk.c -- selector "randk": random elements, one from each stratum.
 *
 * The selector chooses k = ceil(keep * n) elements. The indices [0, n) are cut into k strata of
 * floor(n/k) or ceil(n/k) elements. One element of each stratum is drawn with random numbers that
 * depend on a seed. The positions therefore ascend without repetition. The message contains the
 * seed, eight bytes, instead of the positions.
 *
 *   scale=biased     sends the values unchanged: a contraction with delta = k/n on average over
 *                    the elements, at least 1/ceil(n/k) for each
 *   scale=unbiased   multiplies each value by the size of its stratum (n/k if k divides n): omega
 *                    = n/k - 1, and not a contraction (CHOCO-SGD diverges)
 */
#include "compress/codec.h"

#include "compress/codecs/keep.h"
#include "compress/simd/simd.h"

#include "nn/math/rng.h"

#include <errno.h>

/* Index of the argument `scale` in `arg`, the array of argument values. */
enum { RANDK_SCALE = KEEP_OPTIONS };
enum { SCALE_BIASED, SCALE_UNBIASED };
enum {
    MEASURED = 4 * CODEC_CHUNK /* Number of elements that one call of simd_load_blocks() sums. */
};

static const char *const scale_choices[] = {"biased", "unbiased", NULL};

static const struct codec_param randk_params[] = {
    KEEP_PARAMS,
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_BIASED,
     .wants = "biased or unbiased"},
    {.name = NULL},
};

/* Iterator over the strata: the vector is cut into k strata, and one random element of each stratum
 * is chosen. Stratum j consists of the elements `[j * n / k, (j+1) * n / k)`, for 1 <= k <= n <
 * 2^32. The iterator holds quotient and remainder, `j * n = from * k + rest`, which avoids a
 * division in each step. */
struct walk
{
    /* Seed from which the positions are drawn, index of the next stratum, and number of strata. */
    uint64_t seed, j, k;
    /* `from` is the first element of stratum j, and `rest` is `(j * n) mod k`. */
    uint64_t from, rest;
    /* Increments from one stratum to the next: `from` grows by `quotient` = n / k (rounded down),
     * and `rest` by `fraction` = n mod k. */
    uint64_t quotient, fraction;
};

/* Returns an iterator that begins at stratum j. */
static struct walk walk_from(uint64_t seed, uint64_t j, uint64_t k, uint64_t n)
{
    return (struct walk){seed, j, k, j * n / k, j * n % k, n / k, n % k};
}

/* Returns the random position that is chosen in the next stratum. Sets *width to the number of
 * elements of that stratum. */
static inline uint32_t walk_next(struct walk *w, uint32_t *width)
{
    uint64_t rest = w->rest + w->fraction;
    uint64_t carry = rest >= w->k;
    uint64_t wide = w->quotient + carry;
    uint64_t at = w->from + ((rng_at(w->seed, w->j) >> 32) * wide >> 32);
    w->rest = carry ? rest - w->k : rest;
    w->from += wide;
    w->j++;
    *width = (uint32_t)wide;
    return (uint32_t)at;
}

/* Multiplies each value by the size of its stratum, for scale=unbiased. Stores the original values
 * in pick->truth, because the error is measured against them. */
static void scale_up(struct codec_pick *pick, size_t n)
{
    struct walk w = walk_from(pick->seed, 0, pick->k, n);
    for (size_t j = 0; j < pick->k; j++) {
        uint32_t width;
        walk_next(&w, &width);
        pick->truth[j] = pick->value[j];
        pick->value[j] *= (float)width;
    }
    pick->scaled = true;
}

/* This function reads only the k elements that are sent. randk_measure() reads the others. */
static int randk_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    pick->k = keep_count(arg, s->n, s->round);
    pick->seed = s->key;
    struct walk w = walk_from(s->key, 0, pick->k, s->n);
    for (size_t j = 0; j < pick->k; j++) {
        uint32_t width;
        uint32_t at = walk_next(&w, &width);
        pick->index[j] = at;
        pick->value[j] = codec_difference(s, at);
    }
    if (arg[RANDK_SCALE] == SCALE_UNBIASED)
        scale_up(pick, s->n);
    return 0;
}

/* The squares of the chosen elements are subtracted from the sum of all squares, chunk by chunk. If
 * a chosen element is very large, the squares of the other elements in its chunk may be lost in
 * rounding. The result may therefore be wrong by about 1e-16 |v|^2. */
static int randk_measure(const struct codec_source *s, struct codec_pick *pick)
{
    const float *taken = pick->scaled ? pick->truth : pick->value;
    size_t k = 0;
    pick->rest2 = 0.0;
    for (size_t at = 0; at < s->n; at += MEASURED) {
        struct simd_sums sums[MEASURED / CODEC_CHUNK];
        size_t n = s->n - at < MEASURED ? s->n - at : MEASURED;
        simd_load_blocks(
            sums, NULL,
            &(struct simd_source){s->x + at, codec_x_hat(s, at), n, CODEC_CHUNK, SIMD_AHEAD});
        for (size_t i = 0; i * CODEC_CHUNK < n; i++) {
            if (sums[i].max >= CODEC_LIMIT_BITS)
                return -ERANGE;
            double rest2 = sums[i].x2;
            for (; k < pick->k && pick->index[k] < at + (i + 1) * CODEC_CHUNK; k++)
                rest2 -= (double)taken[k] * (double)taken[k];
            pick->rest2 += rest2 > 0.0 ? rest2 : 0.0;
        }
    }
    return 0;
}

static void randk_places(const int64_t *arg, uint64_t seed, size_t n, size_t k, size_t at,
                         size_t count, uint32_t *index)
{
    (void)arg;
    struct walk w = walk_from(seed, at, k, n);
    uint32_t width;
    for (size_t i = 0; i < count; i++)
        index[i] = walk_next(&w, &width);
}

/* With a warm-up the message contains k, because k then depends on the round, which a message does
 * not contain. */
static bool randk_sends_k(const int64_t *arg)
{
    return arg[KEEP_WARM] > 0;
}

static const struct codec_selector randk_selector = {
    .most = keep_most,
    .typical = keep_typical,
    .select = randk_select,
    .measure = randk_measure,
    .places = randk_places,
    .sends_k = randk_sends_k,
};

extern const struct codec codec_randk;
const struct codec codec_randk = {
    .name = "randk",
    .about =
        "random elements, one from each stratum; the message contains a seed instead of positions",
    .class = CODEC_EXPECTED,
    .bound = "E delta = keep",
    .unbiased = "scale=unbiased",
    .source = "Stich et al. 2018; the strata are new here",
    .params = randk_params,
    .selector = &randk_selector,
};
