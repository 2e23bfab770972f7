#include "compress/select.h"

#include "compress/bytes.h"

#include "nn/rng.h"
#include "nn/vec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

enum {
    SAMPLE_MAX = 65536,
    SAMPLE_ALL = 8192, /* Up to here the sample is everything. */
    DIGITS = 3,
    DIGIT_SIZE = 2048
};

/* 31 bits of |v| as digits of 11, 11 and 9 bits, high first. */
static const unsigned digit_shift[DIGITS] = {20, 9, 0};
static const unsigned digit_bits[DIGITS] = {11, 11, 9};

static inline uint32_t key_of(float f)
{
    return bytes_of_float(f) & 0x7fffffffu;
}

/* A search for the k-th largest key, one digit a pass. */
struct radix
{
    uint32_t count[DIGIT_SIZE];
    uint32_t prefix; /* Digits known, in place. */
    size_t left;     /* Rank sought among the keys with that prefix. */
    unsigned digit;
};

static void radix_start(struct radix *r, size_t k)
{
    *r = (struct radix){.left = k};
}

static void radix_count(struct radix *r, const float *v, size_t n)
{
    unsigned shift = digit_shift[r->digit];
    unsigned above = shift + digit_bits[r->digit];
    uint32_t mask = (1u << digit_bits[r->digit]) - 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(v[i]);
        if (key >> above == r->prefix >> above)
            r->count[key >> shift & mask]++;
    }
}

/* Settle the digit just counted. */
static void radix_next(struct radix *r)
{
    size_t i = DIGIT_SIZE;
    while (r->count[--i] < r->left) {
        r->left -= r->count[i];
        assert(i > 0);
    }
    r->prefix |= (uint32_t)i << digit_shift[r->digit];
    r->digit++;
    memset(r->count, 0, sizeof r->count);
}

/* The k-th largest key of v, and how many of those equal to it are wanted. */
static uint32_t kth_key(const float *v, size_t n, size_t k, size_t *ties)
{
    struct radix r;
    radix_start(&r, k);
    while (r.digit < DIGITS) {
        radix_count(&r, v, n);
        radix_next(&r);
    }
    *ties = r.left;
    return r.prefix;
}

static size_t sample_size(size_t n)
{
    if (n <= SAMPLE_ALL)
        return n;
    size_t s = n / 32 > SAMPLE_ALL ? n / 32 : SAMPLE_ALL;
    s = s < SAMPLE_MAX ? s : SAMPLE_MAX;
    return s / SELECT_LINE * SELECT_LINE;
}

/* Rank of the threshold in the sample: five standard deviations to the safe
 * side, so that a miss is one in a million where lines are independent. */
static size_t sample_rank(size_t n, size_t k)
{
    size_t s = sample_size(n);
    if (s == n)
        return k;
    double mean = (double)k * (double)s / (double)n;
    size_t rank = (size_t)ceil(mean + 5.0 * sqrt(mean) + 1.0);
    return rank < s ? rank : s;
}

/* Room for candidates: what the rank brings, five deviations, and a line. */
static size_t candidate_room(size_t n, size_t k)
{
    size_t s = sample_size(n);
    double rank = (double)sample_rank(n, k);
    double most = (rank + 6.0 * sqrt(rank) + 16.0) * (double)n / (double)s;
    size_t room = most < (double)n ? (size_t)most : n;
    return (room > k ? room : k) + CODEC_CHUNK;
}

/* Scratch: candidates' values and indices, then the sample. */
struct scratch
{
    float *value;
    uint32_t *index;
    float *sample;
    size_t room;
};

static struct scratch carve(void *at, size_t n, size_t k)
{
    struct scratch s = {.value = at, .room = candidate_room(n, k)};
    s.index = (uint32_t *)(void *)(s.value + s.room);
    s.sample = (float *)(void *)(s.index + s.room);
    return s;
}

size_t select_scratch(size_t n, size_t k)
{
    return 8 * candidate_room(n, k) + 4 * sample_size(n);
}

size_t select_lines(size_t n)
{
    return sample_size(n) / SELECT_LINE;
}

/* A fixed place in the j-th of equal strata: it need not be secret or fresh,
 * as a miss costs time and nothing else. */
size_t select_line_at(size_t n, size_t j)
{
    size_t stratum = n / select_lines(n);
    size_t span = stratum - SELECT_LINE + 1;
    return j * stratum + (size_t)((rng_at(j, 0) >> 32) * span >> 32);
}

static uint32_t sample_threshold(const struct codec_source *s, size_t k,
                                 float *sample)
{
    size_t size = sample_size(s->n);
    if (size == s->n) {
        codec_load(sample, s->x, s->x_hat, s->n);
    } else {
        for (size_t j = 0; j < size / SELECT_LINE; j++) {
            size_t at = select_line_at(s->n, j);
            codec_load(sample + j * SELECT_LINE, s->x + at,
                       s->x_hat != NULL ? s->x_hat + at : NULL, SELECT_LINE);
        }
    }
    size_t ties;
    uint32_t t = kth_key(sample, size, sample_rank(s->n, k), &ties);
    return t > 0 ? t : 1; /* Zeros are not taken. */
}

/* Append the positions of v[0..n) whose key is t or more to index, without a
 * branch on a value: most lines have none, so those are skipped whole. */
VEC_CLONES static size_t find_above(const float *restrict v, size_t n,
                                    int32_t t, uint32_t *restrict index)
{
    size_t found = 0;
    for (size_t g = 0; g < n; g += SELECT_LINE) {
        size_t end = n - g < SELECT_LINE ? n : g + SELECT_LINE;
        if (end - g == SELECT_LINE) {
            int32_t any = 0;
            for (size_t i = 0; i < SELECT_LINE; i++)
                any |= (int32_t)key_of(v[g + i]) >= t;
            if (!any)
                continue;
        }
        for (size_t i = g; i < end; i++) {
            index[found] = (uint32_t)i;
            found += (int32_t)key_of(v[i]) >= t;
        }
    }
    return found;
}

/* What a scan has found so far. */
struct found
{
    size_t n;
    double rest2; /* Squares of the others. */
};

/* Move what is >= t in v[0..n), which starts at element `base`, to the
 * candidates; v is left with zeros there. */
static void take_above(float *v, size_t n, uint32_t t, size_t base,
                       const struct scratch *c, struct found *found)
{
    uint32_t local[CODEC_CHUNK];
    size_t m = find_above(v, n, (int32_t)t, local);
    for (size_t i = 0; i < m; i++) {
        c->value[found->n] = v[local[i]];
        c->index[found->n] = (uint32_t)base + local[i];
        found->n++;
        v[local[i]] = 0.0f;
    }
    found->rest2 += vec_norm2(v, n);
}

/* 1 if the candidates have more than their room. */
static int scan(const struct codec_source *s, uint32_t t,
                const struct scratch *c, struct found *found)
{
    float v[CODEC_CHUNK];
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        if (found->n + count > c->room)
            return 1;
        uint32_t max = codec_load(v, s->x + at,
                                  s->x_hat != NULL ? s->x_hat + at : NULL,
                                  count);
        if (max >= CODEC_LIMIT_BITS)
            return -ERANGE;
        take_above(v, count, t, at, c, found);
    }
    return 0;
}

/* Copy to pick the candidates above t and the first `ties` equal to it. */
static void choose(const struct scratch *c, const struct found *found,
                   uint32_t t, size_t ties, struct codec_pick *pick)
{
    size_t k = 0;
    double rest2 = found->rest2;
    for (size_t i = 0; i < found->n; i++) {
        uint32_t key = key_of(c->value[i]);
        pick->index[k] = c->index[i];
        pick->value[k] = c->value[i];
        bool tie = key == t && ties > 0;
        bool taken = key > t || tie;
        ties -= tie;
        k += taken;
        rest2 += taken ? 0.0 : (double)c->value[i] * (double)c->value[i];
    }
    pick->k = k;
    pick->rest2 = rest2;
}

/* One pass of the histograms. False if the difference is not finite. */
static bool count_all(const struct codec_source *s, struct radix *r)
{
    float v[CODEC_CHUNK];
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        uint32_t max = codec_load(v, s->x + at,
                                  s->x_hat != NULL ? s->x_hat + at : NULL,
                                  count);
        if (max >= CODEC_LIMIT_BITS)
            return false;
        radix_count(r, v, count);
    }
    radix_next(r);
    return true;
}

/* Collect straight into pick: at most k values are above t or wanted ties. */
static void collect(const struct codec_source *s, uint32_t t, size_t ties,
                    struct codec_pick *pick)
{
    float v[CODEC_CHUNK];
    pick->k = 0;
    pick->rest2 = 0.0;
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        codec_load(v, s->x + at, s->x_hat != NULL ? s->x_hat + at : NULL,
                   count);
        for (size_t i = 0; i < count; i++) {
            uint32_t key = key_of(v[i]);
            if (key < t || (key == t && ties == 0))
                continue;
            ties -= key == t;
            pick->index[pick->k] = (uint32_t)(at + i);
            pick->value[pick->k++] = v[i];
            v[i] = 0.0f;
        }
        pick->rest2 += vec_norm2(v, count);
    }
}

int select_top_histogram(const struct codec_source *s, size_t k,
                         struct codec_pick *pick)
{
    assert(k >= 1 && k <= s->n);
    struct radix r;
    radix_start(&r, k);
    while (r.digit < DIGITS)
        if (!count_all(s, &r))
            return -ERANGE;
    if (r.prefix == 0) /* Fewer than k are not zero: all of those. */
        r.left = 0;
    collect(s, r.prefix, r.left, pick);
    return 0;
}

int select_top(const struct codec_source *s, size_t k, struct codec_pick *pick,
               bool *fell_back)
{
    assert(k >= 1 && k <= s->n);
    struct scratch c = carve(pick->scratch, s->n, k);
    struct found found = {0};
    uint32_t t = sample_threshold(s, k, c.sample);
    int err = scan(s, t, &c, &found);
    bool missed = err > 0 || (found.n < k && t > 1);
    if (fell_back != NULL)
        *fell_back = missed;
    if (err < 0)
        return err;
    if (missed)
        return select_top_histogram(s, k, pick);
    size_t ties = 0;
    uint32_t kth = 0;
    if (found.n > k)
        kth = kth_key(c.value, found.n, k, &ties);
    choose(&c, &found, kth, ties, pick);
    return 0;
}
