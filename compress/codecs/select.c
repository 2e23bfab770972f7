/* compress/codecs/select.c -- finds the k largest magnitudes exactly, in about one pass.
 *
 * Sorting or a heap would cost many times as much as reading the n values. Instead, a sample gives
 * an estimate of the k-th largest magnitude, with a lower and an upper bound that are five standard
 * deviations away. One pass over all values then collects the few candidates above the lower bound,
 * and an exact search among the candidates finds the result.
 *
 * If a bound is wrong, histograms find the same result in more passes. The result never depends on
 * the sample. Only the time does.
 */
#include "compress/codecs/select.h"

#include "compress/codecs/sample.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

enum {
    /* Number of elements that are scanned before the number of candidates is compared with the size
     * of their arrays. */
    SCAN_CHUNK = 4096,
    /* Number of digits into which the 31 bits of a key (bit pattern of a magnitude) are divided. */
    DIGITS = 3,
    /* Number of values that a digit of a key can have: 2^11 for the longest digit. */
    DIGIT_SIZE = 2048
};

/* A key is the 31 bits of |v|. It has three digits of 11, 11 and 9 bits, the highest digit
 * first. */
static const unsigned digit_shift[DIGITS] = {20, 9, 0};
static const unsigned digit_bits[DIGITS] = {11, 11, 9};

/* Returns the key of f: the bit pattern of |f|. Keys have the order of the magnitudes. */
static inline uint32_t key_of(float f)
{
    return bytes_of_float(f) & 0x7fffffffu;
}

/* ---- Radix search for the k-th largest key ---- */

/* State of the search for the k-th largest key. Each pass over the keys finds one digit (9 or 11
 * bits) of the result. Successive elements are counted in different tables: if equal digits were
 * counted in one table, each count would wait for the previous store. */
struct radix
{
    /* Histogram of the digit that the next pass finds: the sum of two tables. Elements with an even
     * index are counted in table 0, the others in table 1. */
    uint32_t count[2][DIGIT_SIZE];
    /* Digits of the k-th largest key that have been found so far, at their place in the key. All
     * lower bits are 0. */
    uint32_t prefix;
    size_t left; /* Rank of the k-th largest key among the keys that begin with `prefix`. */
    size_t same; /* Number of keys that begin with `prefix`, the digits already found. */
    /* Index of the digit of the key that the next pass finds. 0: the highest digit. */
    unsigned digit;
};

static void radix_start(struct radix *r, size_t k)
{
    *r = (struct radix){.left = k};
}

/* Returns true if the key begins with the digits in `prefix`, which are the digits of the k-th
 * largest key that have been found so far. */
static bool has_prefix(const struct radix *r, uint32_t key)
{
    unsigned above = digit_shift[r->digit] + digit_bits[r->digit];
    return key >> above == r->prefix >> above;
}

/* For those keys of v[0..n) that begin with `prefix` (the digits already found), counts how often
 * each value of the next digit occurs. */
static void radix_count(struct radix *r, const float *v, size_t n)
{
    unsigned shift = digit_shift[r->digit];
    uint32_t mask = (1u << digit_bits[r->digit]) - 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(v[i]);
        if (has_prefix(r, key))
            r->count[i % 2][key >> shift & mask]++;
    }
}

/* Finds the next digit of the k-th largest key from the histogram: goes down from the highest value
 * until the wanted rank is reached. Clears the histogram. */
static void radix_next(struct radix *r)
{
    size_t i = DIGIT_SIZE - 1;
    size_t in = r->count[0][i] + r->count[1][i];
    for (; in < r->left; in = r->count[0][i] + r->count[1][i]) {
        r->left -= in;
        assert(i > 0);
        i--;
    }
    r->same = in;
    r->prefix |= (uint32_t)i << digit_shift[r->digit];
    r->digit++;
    memset(r->count, 0, sizeof r->count);
}

/* Removes the elements of v whose keys do not begin with `prefix`, the digits already found. The
 * next pass is then shorter. Returns the number of elements left. */
static size_t radix_shrink(const struct radix *r, float *v, size_t n)
{
    unsigned shift = digit_shift[r->digit - 1];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        float f = v[i];
        v[kept] = f;
        kept += key_of(f) >> shift == r->prefix >> shift;
    }
    return kept;
}

/* Returns the k-th largest key of v[0..n). Sets *ties to the number of elements with exactly this
 * key among the k largest elements. Changes the order of v. */
static uint32_t kth_key(float *v, size_t n, size_t k, size_t *ties)
{
    struct radix r;
    radix_start(&r, k);
    while (r.digit < DIGITS) {
        radix_count(&r, v, n);
        radix_next(&r);
        n = radix_shrink(&r, v, n);
    }
    *ties = r.left;
    return r.prefix;
}

/* ---- Bounds of the threshold from a sample ---- */

/* Returns the number of sampled elements: sample_size(n) rounded down to whole cache lines, or n if
 * all elements are sampled. Reading a whole cache line costs as much as reading one element of
 * it. */
static size_t lines_size(size_t n)
{
    size_t s = sample_size(n);
    return s == n ? n : s / SELECT_LINE * SELECT_LINE;
}

/* Returns the rank in the sample that gives the lower bound of the k-th largest key: the expected
 * rank plus five standard deviations. If cache lines are independent of each other, the bound is
 * too high once in a million cases. */
static size_t sample_rank(size_t n, size_t k)
{
    size_t s = lines_size(n);
    if (s == n)
        return k;
    double mean = (double)k * (double)s / (double)n;
    size_t rank = (size_t)ceil(mean + 5.0 * sqrt(mean) + 1.0);
    return rank < s ? rank : s;
}

/* Returns the rank in the sample that gives the upper bound of the k-th largest key: the expected
 * rank minus five standard deviations. Returns 0, which means no upper bound, if that rank would be
 * less than 1 or if the sample has all elements. */
static size_t sample_rank_above(size_t n, size_t k)
{
    size_t s = lines_size(n);
    double mean = (double)k * (double)s / (double)n;
    double rank = floor(mean - 5.0 * sqrt(mean));
    return s == n || rank < 1.0 ? 0 : (size_t)rank;
}

/* Returns the number of candidates that there is room for: the expected number plus six standard
 * deviations, plus the elements that one step of the scan may add before the room is checked again.
 * The expected number follows from the rank of the lower bound in the sample. */
static size_t candidate_room(size_t n, size_t k)
{
    size_t s = lines_size(n);
    double rank = (double)sample_rank(n, k);
    double most = (rank + 6.0 * sqrt(rank) + 16.0) * (double)n / (double)s;
    size_t room = most < (double)n ? (size_t)most : n;
    return (room > k ? room : k) + SCAN_CHUNK + SIMD_LANES;
}

/* The arrays in the scratch memory: values and indices of the candidates, and the sample. When the
 * sample is no longer needed, its memory holds the candidates near the threshold. */
struct scratch
{
    float *value;
    uint32_t *index;
    float *sample;
    size_t room; /* Capacity of `value` and `index`: the largest number of candidates. */
};

/* Places the arrays of struct scratch in the scratch memory at `at`. */
static struct scratch carve(void *at, size_t n, size_t k)
{
    struct scratch s = {.value = at, .room = candidate_room(n, k)};
    s.index = (uint32_t *)(void *)(s.value + s.room);
    s.sample = (float *)(void *)(s.index + s.room);
    return s;
}

size_t select_scratch(size_t n, size_t k)
{
    /* Number of floats in the sample and in a copy of it, together. */
    size_t sample = 2 * lines_size(n);
    size_t room = candidate_room(n, k);
    return 8 * room + 4 * (sample > room ? sample : room);
}

size_t select_lines(size_t n)
{
    return lines_size(n) / SELECT_LINE;
}

/* Each cache line of the sample has a fixed random position in one of equal strata (parts of the
 * vector). The positions may be the same for all messages and may be predictable, because a wrong
 * estimate of the threshold costs time, but does not change the result. */
size_t select_line_at(size_t n, size_t j)
{
    size_t stratum = n / select_lines(n);
    size_t span = stratum - SELECT_LINE + 1;
    return j * stratum + (size_t)((rng_at(j, 0) >> 32) * span >> 32);
}

/* Loads the sample of the difference. If the sample contains NaN, its bounds are useless, but the
 * scan of all elements then reports the error. */
VEC_CLONES static void load_lines(float *restrict sample, const struct codec_source *s)
{
    size_t n_lines = select_lines(s->n);
    for (size_t j = 0; j < n_lines; j++) {
        size_t at = select_line_at(s->n, j);
        float *to = sample + j * SELECT_LINE;
        for (size_t i = 0; i < SELECT_LINE; i++)
            to[i] = s->x[at + i];
        if (s->x_hat != NULL)
            for (size_t i = 0; i < SELECT_LINE; i++)
                to[i] -= s->x_hat[at + i];
    }
}

/* Estimate of the k-th largest key, the threshold. It is usually in [low, high). If the sample has
 * all elements, `exact` is true, `low` is the threshold itself, and `ties` is the number of
 * elements equal to it that are chosen. */
struct guess
{
    uint32_t low, high;
    bool exact;
    size_t ties;
};

/* Estimates the threshold from a sample. `sample` has room for the sample and a copy of it. */
static struct guess guess_from(const struct codec_source *s, size_t k, float *sample)
{
    struct guess g = {.high = UINT32_MAX};
    size_t size = lines_size(s->n);
    g.exact = size == s->n;
    if (g.exact)
        codec_load(sample, s->x, s->x_hat, s->n);
    else
        load_lines(sample, s);
    size_t above = sample_rank_above(s->n, k);
    /* The rank of the upper bound is searched in a copy of the sample, because a search changes the
     * order of its array. */
    if (above > 0) {
        size_t ties;
        float *copy = sample + size;
        memcpy(copy, sample, size * sizeof *sample);
        g.high = kth_key(copy, size, above, &ties);
    }
    g.low = kth_key(sample, size, sample_rank(s->n, k), &g.ties);
    /* A lower bound of 0 means that few values are nonzero. The bound is raised to 1, the key of
     * the smallest positive float, so that all nonzero values are candidates and zeros are never
     * chosen. */
    if (g.low == 0) {
        g.low = 1;
        g.exact = false;
    }
    return g;
}

/* ---- Scan that collects the candidates ---- */

/* Returns a scan that will collect the candidates with a key of at least t in `c`. The scan has not
 * started. */
static struct simd_scan scan_into(const struct scratch *c, uint32_t t)
{
    return (struct simd_scan){.t = t, .value = c->value, .index = c->index};
}

/* Collects all candidates of the difference `s`. Returns 0, 1 if the arrays are too small for all
 * candidates, or -ERANGE. */
static int scan_candidates(const struct codec_source *s, const struct scratch *c,
                           struct simd_scan *found)
{
    for (size_t at = 0; at < s->n; at += SCAN_CHUNK) {
        size_t count = s->n - at < SCAN_CHUNK ? s->n - at : SCAN_CHUNK;
        if (found->found + count + SIMD_LANES > c->room)
            return 1;
        uint32_t max = simd_scan(found, s->x + at, codec_x_hat(s, at), count, (uint32_t)at);
        if (max >= CODEC_LIMIT_BITS)
            return -ERANGE;
    }
    return 0;
}

/* Returns the number of elements of v[0..n) that have the key t (bit pattern of the magnitude). */
VEC_CLONES static size_t count_equal(const float *v, size_t n, uint32_t t)
{
    uint32_t count = 0; /* A 32-bit count is enough, because n is at most CODEC_CHUNK. */
    for (size_t i = 0; i < n; i++)
        count += key_of(v[i]) == t;
    return count;
}

/* Copies the elements with a key (bit pattern of the magnitude) above the threshold to->t to `to`,
 * and also the first `ties` elements with the key to->t. Handles one element at a time. */
static void take_ties(struct simd_scan *to, const float *value, const uint32_t *index, size_t n,
                      size_t ties)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(value[i]);
        bool tie = key == to->t && ties > 0;
        bool taken = key > to->t || tie;
        to->index[to->found] = index[i];
        to->value[to->found] = value[i];
        ties -= tie;
        to->found += taken;
        to->rest2 += taken ? 0.0 : (double)value[i] * (double)value[i];
    }
}

/* Copies the elements with a key (bit pattern of the magnitude) above the threshold to->t to `to`,
 * and also the first *ties elements with the key to->t. Subtracts the number of copied elements
 * with the key to->t from *ties. */
static void take_chunk(struct simd_scan *to, const float *value, const uint32_t *index, size_t n,
                       size_t *ties)
{
    size_t equal = *ties > 0 ? count_equal(value, n, to->t) : 0;
    if (equal <= *ties) {
        uint32_t t = to->t;
        /* If no more elements with the key t are wanted, the threshold is raised by 1, so that
         * simd_filter() skips such elements. */
        to->t += *ties == 0;
        simd_filter(to, value, index, n);
        to->t = t;
        *ties -= equal;
    } else {
        take_ties(to, value, index, n, *ties);
        *ties = 0;
    }
}

/* Fills in `pick` with the candidates that have a key (bit pattern of the magnitude) above t, and
 * with the first `ties` candidates that have the key t. */
static void choose_top(const struct simd_scan *found, uint32_t t, size_t ties,
                       struct codec_pick *pick)
{
    struct simd_scan to = {
        .t = t, .value = pick->value, .index = pick->index, .rest2 = found->rest2};
    for (size_t at = 0; at < found->found; at += CODEC_CHUNK) {
        size_t n = found->found - at < CODEC_CHUNK ? found->found - at : CODEC_CHUNK;
        take_chunk(&to, found->value + at, found->index + at, n, &ties);
    }
    pick->k = to.found;
    pick->rest2 = to.rest2;
}

/* Copies the candidates with keys below `high` to near[]. Returns their number. */
static size_t below_high(const struct simd_scan *found, uint32_t high, float *near)
{
    size_t n = 0;
    for (size_t i = 0; i < found->found; i++) {
        near[n] = found->value[i];
        n += key_of(found->value[i]) < high;
    }
    return n;
}

/* Returns the k-th largest key of more than k candidates. Sets *ties to the number of candidates
 * with exactly this key among the k largest ones. If the upper bound `high` is right, only the
 * candidates below it are searched. */
static uint32_t kth_candidate(const struct simd_scan *found, size_t k, uint32_t high, float *near,
                              size_t *ties)
{
    size_t n = below_high(found, high, near);
    size_t above = found->found - n;
    if (above < k)
        return kth_key(near, n, k - above, ties);
    /* At least k candidates have keys that reach the upper bound, so the bound was too low. All
     * candidates are searched instead. */
    n = below_high(found, UINT32_MAX, near);
    return kth_key(near, n, k, ties);
}

/* ---- Selection by histograms of all elements ---- */

/* Computes the first digit of the key of each element of x - x_hat. Returns the largest digit. */
VEC_CLONES static uint32_t first_digits(uint16_t *restrict digit, const float *restrict x,
                                        const float *restrict x_hat, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t d = key_of(x[i] - x_hat[i]) >> digit_shift[0];
        digit[i] = (uint16_t)d;
        top = d > top ? d : top;
    }
    return top;
}

/* Counts the first digits of the keys in a pass over all elements, and finds the first digit of the
 * k-th largest key. Returns false if an element is not finite or reaches CODEC_LIMIT: the first
 * digit of such an element is larger than that of any valid element. */
static bool count_first(const struct codec_source *s, struct radix *r)
{
    static const float zeros[CODEC_CHUNK];
    uint16_t digit[CODEC_CHUNK + 1];
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        uint32_t max =
            first_digits(digit, s->x + at, s->x_hat != NULL ? s->x_hat + at : zeros, count);
        if (max >= (uint32_t)CODEC_LIMIT_BITS >> digit_shift[0])
            return false;
        for (size_t i = 0; i + 2 <= count; i += 2) {
            r->count[0][digit[i]]++;
            r->count[1][digit[i + 1]]++;
        }
        if (count % 2 != 0)
            r->count[0][digit[count - 1]]++;
    }
    radix_next(r);
    return true;
}

/* Counts the next digits of the keys in a pass over all elements, and finds the next digit of the
 * k-th largest key. */
static void count_next(const struct codec_source *s, struct radix *r)
{
    float v[CODEC_CHUNK];
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        codec_load(v, s->x + at, codec_x_hat(s, at), count);
        radix_count(r, v, count);
    }
    radix_next(r);
}

/* Copies the elements with keys above t, and the first `ties` elements with the key t, directly to
 * `pick`. Used if more elements have the key t than there is room for candidates. `pick` has room,
 * because at most k elements are copied. */
static void collect_crowded(const struct codec_source *s, const struct scratch *c, uint32_t t,
                            size_t ties, struct codec_pick *pick)
{
    struct simd_scan to = {.t = t, .value = pick->value, .index = pick->index};
    for (size_t at = 0; at < s->n; at += SCAN_CHUNK) {
        size_t count = s->n - at < SCAN_CHUNK ? s->n - at : SCAN_CHUNK;
        struct simd_scan found = scan_into(c, t);
        simd_scan(&found, s->x + at, codec_x_hat(s, at), count, (uint32_t)at);
        to.rest2 += found.rest2;
        for (size_t i = 0; i < found.found; i += CODEC_CHUNK) {
            size_t n = found.found - i < CODEC_CHUNK ? found.found - i : CODEC_CHUNK;
            take_chunk(&to, found.value + i, found.index + i, n, &ties);
        }
    }
    pick->k = to.found;
    pick->rest2 = to.rest2;
}

/* Returns true if the arrays for candidates have room for all elements with a key of at least
 * `prefix`. */
static bool prefix_fits(const struct radix *r, size_t k, const struct scratch *c)
{
    size_t found = k - r->left + r->same;
    return r->prefix > 0 && found + SCAN_CHUNK + SIMD_LANES <= c->room;
}

/* Digits of the k-th largest key are found, one per pass, until the arrays for candidates have room
 * for all elements with a key of at least `prefix`. One digit is enough for most vectors. */
int select_top_histogram(const struct codec_source *s, size_t k, struct codec_pick *pick)
{
    assert(k >= 1 && k <= s->n);
    struct scratch c = carve(pick->scratch, s->n, k);
    struct radix r;
    radix_start(&r, k);
    if (!count_first(s, &r))
        return -ERANGE;
    while (!prefix_fits(&r, k, &c) && r.digit < DIGITS)
        count_next(s, &r);
    if (r.prefix == 0) { /* If fewer than k values are not zero, all of them are chosen. */
        collect_crowded(s, &c, 1, s->n, pick);
        return 0;
    }
    if (!prefix_fits(&r, k, &c)) {
        collect_crowded(s, &c, r.prefix, r.left, pick);
        return 0;
    }
    struct simd_scan found = scan_into(&c, r.prefix);
    int err = scan_candidates(s, &c, &found);
    assert(err == 0);
    size_t ties;
    uint32_t t = kth_candidate(&found, k, UINT32_MAX, c.sample, &ties);
    choose_top(&found, t, ties, pick);
    return 0;
}

/* If there are fewer than k candidates, the lower bound was too high, and the slower search by
 * histograms is used. Exception: with a lower bound of 1, all nonzero values are candidates, so no
 * slower search is needed. */
int select_top(const struct codec_source *s, size_t k, struct codec_pick *pick, bool *fell_back)
{
    assert(k >= 1 && k <= s->n);
    struct scratch c = carve(pick->scratch, s->n, k);
    struct guess g = guess_from(s, k, c.sample);
    struct simd_scan found = scan_into(&c, g.low);
    int err = scan_candidates(s, &c, &found);
    bool missed = err > 0 || (found.found < k && g.low > 1);
    if (fell_back != NULL)
        *fell_back = missed;
    if (err < 0)
        return err;
    if (missed)
        return select_top_histogram(s, k, pick);
    uint32_t t = g.low;
    /* With at most k candidates, all of them are chosen, including those equal to the threshold. */
    size_t ties = found.found;
    if (found.found > k && g.exact)
        ties = g.ties;
    else if (found.found > k)
        t = kth_candidate(&found, k, g.high, c.sample, &ties);
    choose_top(&found, t, ties, pick);
    return 0;
}
