/* compress/codecs/adaq.c -- selector "adaq": the largest values of each sign.
 *
 * AdaQ (Dryden et al. 2016) chooses the top ceil(keep * n+) of the n+ positive values and, by
 * magnitude, the top ceil(keep * n-) of the n- negative ones. Thus both signs are represented. The
 * default values codec, onebit, sends one bit per value and one mean for each sign. Of equal values
 * the lowest index is chosen.
 *
 * The threshold of each sign is the magnitude of its last chosen value. Both thresholds are found
 * at the same time, by histograms over the 31 bits of |v| in digits of 11, 11 and 9 bits. This
 * takes three passes, and another pass collects the values. To make these passes short, a sample
 * first gives a threshold t below which usually no element is chosen:
 *
 *   count    n+ and n-, which give the numbers k+ and k- to choose
 *   sample   the threshold t: slightly below both final thresholds
 *   scan     all elements with |v| >= t are candidates
 *   search   among the candidates, or in all of v if there are too many or too few
 *
 * With onebit, the contraction delta is (S+^2 / k+ + S-^2 / k-) / |v|^2, where S+ and S- are the
 * sums of the magnitudes sent of each sign. For the k largest of n values with sum S, S^2 / k >=
 * |v|^2 / n. Therefore delta >= 1/n.
 */
#include "compress/codec.h"

#include "compress/codecs/keep.h"
#include "compress/codecs/sample.h"
#include "compress/codecs/scan.h"
#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

enum {
    /* Number of signs. In arrays index 0 is for the positive values, index 1 for the negative
     * ones. */
    SIDES = 2,
    DIGITS = 3, /* Number of digits into which the 31 bits of a magnitude are divided. */
    /* Number of values that a digit of a magnitude can have: 2^11 for the longest digit. */
    DIGIT_SIZE = 2048
};

/* Position and length in bits of each digit of |v|, the highest digit first. */
static const unsigned digit_shift[DIGITS] = {20, 9, 0};
static const unsigned digit_bits[DIGITS] = {11, 11, 9};

static const struct codec_param adaq_params[] = {
    KEEP_PARAMS,
    {.name = NULL},
};

/* The numbers of positive and of negative values to choose are rounded up separately. The sum of
 * the two may therefore exceed the rounded share of all n values by one. */
static size_t adaq_most(const int64_t *arg, size_t n)
{
    size_t share = keep_most(arg, n);
    return share < n ? share + 1 : n;
}

/* State of the search for the k-th largest magnitude among the values of one sign. */
struct side
{
    /* Histogram of the digit of the magnitude that the search finds next. */
    uint32_t count[DIGIT_SIZE];
    /* The leading digits of the k-th largest magnitude that have been found so far. At the end of
     * the search: all bits of the magnitude. */
    uint32_t key;
    /* Rank of the k-th largest magnitude among the magnitudes with the same leading digits. At the
     * end of the search: the number of chosen values that equal the k-th largest magnitude. */
    size_t left;
    size_t k;
};

/* Removes the sign bit of a float. */
static inline uint32_t key_of(uint32_t bits)
{
    return bits & 0x7fffffffu;
}

/* Adds the number of positive values to size[0] and the number of negative values to size[1]. Zeros
 * count for neither sign. In the histograms they fall into the lowest cell, which the search never
 * reaches. */
VEC_CLONES static void count_sides(const float *v, size_t n, size_t size[SIDES])
{
    uint32_t above = 0;
    uint32_t below = 0;
    for (size_t i = 0; i < n; i++) {
        above += v[i] > 0.0f;
        below += v[i] < 0.0f;
    }
    size[0] += above;
    size[1] += below;
}

/* Adds one digit of each of n values to the histogram of its sign. Only magnitudes that begin with
 * the digits found so far are counted. */
static void count_digits(struct side side[SIDES], unsigned digit, const float *v, size_t n)
{
    unsigned shift = digit_shift[digit];
    unsigned above = shift + digit_bits[digit];
    uint32_t mask = (1u << digit_bits[digit]) - 1;
    uint32_t known[SIDES] = {side[0].key >> above, side[1].key >> above};
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bytes_of_float(v[i]);
        uint32_t key = key_of(bits);
        if (key >> above == known[bits >> 31])
            side[bits >> 31].count[key >> shift & mask]++;
    }
}

/* Finds the next digit of the k-th largest magnitude from the histogram, and clears the
 * histogram. */
static void settle_digit(struct side *s, unsigned digit)
{
    size_t i = DIGIT_SIZE;
    while (s->count[--i] < s->left) {
        s->left -= s->count[i];
        assert(i > 0);
    }
    s->key |= (uint32_t)i << digit_shift[digit];
    memset(s->count, 0, sizeof s->count);
}

/* Finds the k[0]-th largest magnitude of the positive values and the k[1]-th largest of the
 * negative values. The difference must be finite and have at least k[0] positive and k[1] negative
 * values. */
static void search_sides(const struct codec_source *s, const size_t k[SIDES],
                         struct side side[SIDES])
{
    float v[CODEC_CHUNK];
    memset(side, 0, SIDES * sizeof side[0]);
    for (size_t i = 0; i < SIDES; i++)
        side[i].k = side[i].left = k[i];
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        for (size_t at = 0, count; at < s->n; at += count) {
            scan_load(s, at, v, &count);
            count_digits(side, digit, v, count);
        }
        for (size_t i = 0; i < SIDES; i++)
            if (k[i] > 0)
                settle_digit(&side[i], digit);
    }
}

/* Marks the chosen elements: values of at least `above`, and values of at most `below`. */
VEC_CLONES static void mark_sides(uint8_t *restrict mark, const float *restrict v, size_t n,
                                  float above, float below)
{
    for (size_t i = 0; i < n; i++)
        mark[i] = (v[i] >= above) | (v[i] <= below);
}

/* Copies the chosen elements to `pick`. Of the values that equal the threshold of their sign, only
 * the first `left` (struct side) are copied. */
static void collect_sides(const struct codec_source *s, struct side side[SIDES],
                          struct codec_pick *pick)
{
    float v[CODEC_CHUNK];
    uint8_t mark[CODEC_CHUNK];
    uint32_t local[CODEC_CHUNK];
    /* If all values of one sign are left out (k is 0), their threshold is CODEC_LIMIT, which no
     * element reaches. */
    float above = side[0].k > 0 ? bytes_to_float(side[0].key) : CODEC_LIMIT;
    float below = side[1].k > 0 ? -bytes_to_float(side[1].key) : -CODEC_LIMIT;
    pick->k = 0;
    pick->rest2 = 0.0;
    for (size_t at = 0, count; at < s->n; at += count) {
        scan_load(s, at, v, &count);
        mark_sides(mark, v, count, above, below);
        size_t m = scan_marked(mark, count, local);
        for (size_t i = 0; i < m; i++) {
            float value = v[local[i]];
            struct side *of = &side[value < 0.0f];
            if (key_of(bytes_of_float(value)) == of->key && of->left-- == 0) {
                of->left = 0;
                continue;
            }
            pick->index[pick->k] = (uint32_t)at + local[i];
            pick->value[pick->k++] = value;
            v[local[i]] = 0.0f;
        }
        pick->rest2 += vec_norm2(v, count);
    }
    assert(pick->k == side[0].k + side[1].k);
}

/* ---- Candidates for the thresholds, and the choice of elements ---- */

/* Returns the rank of the threshold among the `size` sampled values of one sign: the expected rank
 * plus five standard deviations, so that the threshold is rarely too high. */
static size_t rank_of(double share, size_t size)
{
    double mean = share * (double)size;
    size_t rank = (size_t)ceil(mean + 5.0 * sqrt(mean) + 1.0);
    return rank < size ? rank : size;
}

/* Returns the number of candidates for which memory is reserved: twice the expected number. The
 * expectation assumes that the positive and the negative values have similar sizes. */
static size_t room_for(double share, size_t n)
{
    double m = (double)sample_size(n);
    double mean = share * m;
    double most = 2.0 * (mean + 8.0 * sqrt(mean) + 16.0) * (double)n / m;
    return most < (double)n ? (size_t)most : n;
}

static size_t adaq_scratch(const int64_t *arg, size_t n)
{
    double share = 1e-9 * (double)keep_billionths(arg, 0);
    size_t room = room_for(share, n) + CODEC_CHUNK;
    return 8 * room + 4 * sample_size(n);
}

/* Sets *threshold to the bit pattern of a magnitude that all chosen values probably reach,
 * estimated from a sample. Sets 0 if the sample gives no estimate. Returns 0 or -ERANGE. */
static int threshold_of(const struct codec_source *s, double share, float *v, uint32_t *threshold)
{
    struct side side[SIDES];
    struct codec_source drawn = {.x = v, .n = sample_size(s->n)};
    uint32_t max;
    size_t size[SIDES] = {0};
    sample_draw(s, v);
    int err = scan_max(&drawn, &max);
    if (err != 0)
        return err;
    count_sides(v, drawn.n, size);
    const size_t rank[SIDES] = {rank_of(share, size[0]), rank_of(share, size[1])};
    search_sides(&drawn, rank, side);
    uint32_t keys[SIDES] = {rank[0] > 0 ? side[0].key : UINT32_MAX,
                            rank[1] > 0 ? side[1].key : UINT32_MAX};
    *threshold = keys[0] < keys[1] ? keys[0] : keys[1];
    return 0;
}

/* Fills `near` with the candidates, the elements that reach the estimated threshold. Returns 0, 1
 * if there are too many or too few candidates, or -ERANGE. */
static int find_candidates(const struct codec_source *s, double share, const size_t k[SIDES],
                           void *scratch, struct codec_pick *near)
{
    uint32_t threshold;
    size_t most = room_for(share, s->n);
    size_t found[SIDES] = {0};
    near->value = scratch;
    near->index = (uint32_t *)(void *)(near->value + most + CODEC_CHUNK);
    float *sample = (float *)(void *)(near->index + most + CODEC_CHUNK);
    int err = threshold_of(s, share, sample, &threshold);
    if (err == 0)
        err = scan_above(s, threshold, most, near);
    if (err != 0)
        return err;
    count_sides(near->value, near->k, found);
    return found[0] >= k[0] && found[1] >= k[1] ? 0 : 1;
}

/* Counts the values of both signs, and sets k[0] and k[1] to the numbers of positive and of
 * negative values to choose. Returns 0 or -ERANGE. */
static int shares_of(const struct codec_source *s, uint64_t billionths, size_t k[SIDES])
{
    float v[CODEC_CHUNK];
    size_t size[SIDES] = {0};
    for (size_t at = 0, count; at < s->n; at += count) {
        if (scan_load(s, at, v, &count) >= CODEC_LIMIT_BITS)
            return -ERANGE;
        count_sides(v, count, size);
    }
    for (size_t i = 0; i < SIDES; i++)
        k[i] = codec_share(billionths, size[i]);
    return 0;
}

static int adaq_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    struct side side[SIDES];
    struct codec_pick near = {0};
    size_t k[SIDES];
    uint64_t billionths = keep_billionths(arg, s->round);
    int err = shares_of(s, billionths, k);
    if (err == 0)
        err = find_candidates(s, 1e-9 * (double)billionths, k, pick->scratch, &near);
    if (err < 0)
        return err;
    struct codec_source among = {.x = near.value, .n = near.k};
    const struct codec_source *from = err == 0 ? &among : s;
    search_sides(from, k, side);
    collect_sides(from, side, pick);
    if (err > 0)
        return 0;
    for (size_t i = 0; i < pick->k; i++)
        pick->index[i] = near.index[pick->index[i]];
    pick->rest2 += near.rest2;
    return 0;
}

static const struct codec_selector adaq_selector = {
    .coder = "onebit",
    .most = adaq_most,
    .typical = keep_typical,
    .scratch = adaq_scratch,
    .select = adaq_select,
};

extern const struct codec codec_adaq;
const struct codec codec_adaq = {
    .name = "adaq",
    .about = "the largest positive and the largest negative values, sent as two means",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= 1 / n",
    .source = "Dryden et al. 2016",
    .params = adaq_params,
    .selector = &adaq_selector,
};
