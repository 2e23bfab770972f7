/* compress/coding/rice.c -- writes and reads Rice-coded gaps, and finds the best parameter.
 *
 * The decoder is the inner loop of every sparse message: four gaps are taken from
 * one 64-bit window where they fit, which they nearly always do, and one by one
 * where they do not. While it reads it counts what rice_least() needs to know
 * whether the sender's parameter was the best, so that no second pass is made.
 */
#include "compress/coding/rice.h"

#include "compress/coding/words.h"

#include "nn/math/vec.h"

#include <assert.h>

enum {
    WINDOW = 57, /* Bits that eight bytes hold, from any bit of the first. */
    GROUP = 4    /* Positions read from one window where they fit. */
};

/* The longest stream, in bits, that k gaps can have at parameter b: their sum is at most n - k. */
static uint64_t worst_bits(uint64_t k, uint64_t n, unsigned b)
{
    return k * (1 + b) + ((n - k) >> b);
}

/* The parameter with the shortest of these longest streams. The cost is convex in b, so the
 * search stops at the first rise. */
static unsigned worst_best(uint64_t k, uint64_t n)
{
    unsigned b = 0;
    while (b < RICE_B_MAX && worst_bits(k, n, b + 1) < worst_bits(k, n, b))
        b++;
    return b;
}

size_t rice_bound(size_t k, size_t n)
{
    assert(k <= n);
    return (size_t)((worst_bits(k, n, worst_best(k, n)) + 7) / 8);
}

/* Gaps of random positions are geometric: P(gap >= m) = q^m with q = 1 - k/n,
 * so that gap >> b is x / (1 - x) on average, x = q^(2^b). */
size_t rice_nominal(size_t k, size_t n)
{
    double x = 1.0 - (double)k / (double)n;
    double best = (double)n;
    for (unsigned b = 0; b <= RICE_B_MAX; b++, x *= x) {
        double bits = (double)k * (1.0 + b + (x < 1.0 ? x / (1.0 - x) : 0.0));
        best = bits < best ? bits : best;
    }
    return (size_t)(best / 8.0) + 1;
}

/* ---- cost ---- */

/* Sums of gap >> b at b, b + 1 and b + 2. Gaps sum to less than 2^32. */
struct highs
{
    uint32_t sum[3];
};

VEC_CLONES static struct highs highs_of(const uint32_t *index, size_t k, unsigned b)
{
    uint32_t s0 = index[0] >> b;
    uint32_t s1 = s0 >> 1;
    uint32_t s2 = s0 >> 2;
    for (size_t i = 1; i < k; i++) {
        uint32_t high = (index[i] - index[i - 1] - 1) >> b;
        s0 += high;
        s1 += high >> 1;
        s2 += high >> 2;
    }
    return (struct highs){{s0, s1, s2}};
}

uint64_t rice_bits(const uint32_t *index, size_t k, unsigned b)
{
    return (uint64_t)k * (1 + b) + highs_of(index, k, b).sum[0];
}

/* Looks at three parameters a pass, as one pass over the gaps gives the cost of all three, and
 * moves on while the best is not the middle one. */
unsigned rice_best(const uint32_t *index, size_t k, size_t n, uint64_t *bits)
{
    assert(k >= 1 && k <= n);
    unsigned b = worst_best(k, n); /* The middle. */
    b = b < 1 ? 1 : b < RICE_B_MAX ? b : RICE_B_MAX - 1;
    for (;;) {
        struct highs h = highs_of(index, k, b - 1);
        uint64_t low = (uint64_t)k * b + h.sum[0];
        uint64_t middle = (uint64_t)k * (b + 1) + h.sum[1];
        uint64_t high = (uint64_t)k * (b + 2) + h.sum[2];
        if (low <= middle && b > 1) {
            b--;
        } else if (high < middle && b < RICE_B_MAX - 1) {
            b++;
        } else if (low <= middle) {
            *bits = low;
            return b - 1;
        } else {
            *bits = high < middle ? high : middle;
            return high < middle ? b + 1 : b;
        }
    }
}

/* ---- writing ---- */

/* Bits not yet written, from the low end; always fewer than eight between
 * calls of put_bits(). */
struct writer
{
    uint8_t *dst, *end;
    uint64_t bits;
    unsigned n_bits;
};

/* Up to 56 bits. Eight bytes are stored whatever there is to say, as long as
 * they are within the stream: what is too much is overwritten. */
static inline void put_bits(struct writer *w, uint64_t bits, unsigned n_bits)
{
    w->bits |= bits << w->n_bits;
    w->n_bits += n_bits;
    unsigned whole = w->n_bits / 8;
    if (w->end - w->dst >= 8) {
        bytes_put_u64(w->dst, w->bits);
    } else {
        for (unsigned i = 0; i < whole; i++)
            w->dst[i] = (uint8_t)(w->bits >> (8 * i));
    }
    w->dst += whole;
    w->bits = whole < 8 ? w->bits >> (8 * whole) : 0;
    w->n_bits %= 8;
}

/* One gap as a code; *n_bits is its length, and the code proper if that is at
 * most 56. */
static inline uint64_t code_of(uint32_t gap, unsigned b, uint64_t *n_bits)
{
    uint32_t high = gap >> b;
    uint64_t low = gap & ((UINT64_C(1) << b) - 1);
    *n_bits = (uint64_t)high + 1 + b;
    return (low << 1 | 1) << (high & 63);
}

/* Write one gap of any length, 24 zeros at a time. */
static void put_gap(struct writer *w, uint32_t gap, unsigned b)
{
    uint32_t high = gap >> b;
    uint64_t low = gap & ((UINT64_C(1) << b) - 1);
    for (; high > 23; high -= 24)
        put_bits(w, 0, 24);
    put_bits(w, (low << 1 | 1) << high, high + 1 + b);
}

VEC_CLONES void rice_put(const uint32_t *index, size_t k, unsigned b, uint8_t *dst, size_t len)
{
    struct writer w = {.dst = dst, .end = dst + len};
    uint32_t next = 0;
    size_t i = 0;
    for (; i + 2 <= k; i += 2) { /* Two at a time: half the dependent steps. */
        uint64_t n0, n1;
        uint32_t gap0 = index[i] - next;
        uint32_t gap1 = index[i + 1] - index[i] - 1;
        uint64_t c0 = code_of(gap0, b, &n0);
        uint64_t c1 = code_of(gap1, b, &n1);
        next = index[i + 1] + 1;
        if (n0 + n1 <= 56) {
            put_bits(&w, c0 | c1 << n0, (unsigned)(n0 + n1));
        } else {
            put_gap(&w, gap0, b);
            put_gap(&w, gap1, b);
        }
    }
    if (i < k)
        put_gap(&w, index[i] - next, b);
    if (w.n_bits > 0)
        *w.dst++ = (uint8_t)w.bits;
    assert(w.dst == w.end);
}

/* ---- reading ---- */

/* At least WINDOW bits from bit `at` on, zeros beyond the end. */
static inline uint64_t window(const struct rice_reader *r, size_t at)
{
    return words_get(r->src, r->len, at / 8) >> (at % 8);
}

/* Read one gap, whatever its length. False where the stream ends within it. */
static bool long_gap(struct rice_reader *r, uint64_t *gap)
{
    uint64_t high = 0;
    uint64_t bits;
    size_t at = r->at;
    while ((bits = window(r, at) & ((UINT64_C(1) << WINDOW) - 1)) == 0) {
        high += WINDOW;
        at += WINDOW;
        if (at >= 8 * r->len)
            return false;
    }
    unsigned zeros = (unsigned)__builtin_ctzll(bits);
    at += zeros + 1;
    high += zeros;
    *gap = high << r->b | (window(r, at) & ((UINT64_C(1) << r->b) - 1));
    r->at = at + r->b;
    return high <= UINT32_MAX;
}

/* Read one position the slow way, with every check. */
static bool get_one(struct rice_reader *r, uint32_t *index)
{
    uint64_t gap;
    if (!long_gap(r, &gap) || r->at > 8 * r->len || gap >= r->n - r->next)
        return false;
    *index = (uint32_t)(r->next + gap);
    r->next += gap + 1;
    r->odd += gap >> r->b & 1;
    r->top += (gap << 1) >> r->b & 1;
    return true;
}

/* As many groups of positions as lie within one window each; returns how many
 * positions. Stops before what does not fit, or is not below n. */
VEC_CLONES static size_t get_groups(struct rice_reader *reader, uint32_t *index, size_t count)
{
    struct rice_reader r = *reader;
    const unsigned b = r.b;
    const uint64_t mask = (UINT64_C(1) << b) - 1;
    size_t i = 0;
    for (; i + GROUP <= count && r.at / 8 + 8 <= r.len; i += GROUP) {
        uint64_t bits = bytes_get_u64(r.src + r.at / 8) >> (r.at % 8);
        uint64_t next = r.next, odd = 0, top = 0;
        unsigned used = 0;
        for (size_t j = 0; j < GROUP; j++) {
            /* The bit at the top ends what has no end, as too long. */
            unsigned zeros = (unsigned)__builtin_ctzll(bits | UINT64_C(1) << 63);
            uint64_t gap = (uint64_t)zeros << b | (bits >> 1 >> zeros & mask);
            index[i + j] = (uint32_t)(next + gap);
            next += gap + 1;
            odd += zeros & 1;
            top += gap << 1 >> b & 1;
            used += zeros + 1 + b;
            bits = bits >> 1 >> zeros >> b;
        }
        if (used > WINDOW || next > r.n)
            break;
        r.at += used;
        r.next = next;
        r.odd += odd;
        r.top += top;
    }
    *reader = r;
    return i;
}

/* After a group that does not fit its window, the next few are read one by one and then groups
 * are tried again. */
bool rice_get(struct rice_reader *r, uint32_t *index, size_t count)
{
    r->k += count;
    for (size_t i = 0; i < count;) {
        i += get_groups(r, index + i, count - i);
        size_t end = i + GROUP < count ? i + GROUP : count;
        for (; i < end; i++)
            if (!get_one(r, &index[i]))
                return false;
    }
    return true;
}

/* A stream that goes on, or padding with a one in it, would be a second encoding. */
bool rice_ended(const struct rice_reader *r)
{
    if (r->len != (r->at + 7) / 8)
        return false;
    return r->at % 8 == 0 || r->src[r->len - 1] >> (r->at % 8) == 0;
}

/* The costs beside, from those of the high parts: h at b; 2 h + top at b - 1;
 * (h - odd) / 2 at b + 1. */
bool rice_least(const struct rice_reader *r)
{
    uint64_t high = r->at - (uint64_t)r->k * (1 + r->b);
    bool below = r->b == 0 || high + r->top > r->k;
    bool above = r->b == RICE_B_MAX || 2 * (uint64_t)r->k >= high + r->odd;
    return below && above;
}
