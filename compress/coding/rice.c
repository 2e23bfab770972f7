/* compress/coding/rice.c -- writes and reads Rice-coded gaps, and finds the best parameter.
 *
 * The decoder is the inner loop for every sparse message. It reads four gaps from one 64-bit load
 * if they fit, which they nearly always do, and single gaps otherwise. While it reads, it updates
 * counts from which rice_least() finds out whether the sender used the best parameter. Thus no
 * second pass is needed.
 */
#include "compress/coding/rice.h"

#include "compress/coding/words.h"

#include "nn/math/vec.h"

#include <assert.h>

enum {
    /* A window is a 64-bit load from the stream that begins at any bit of a byte. Up to 7 bits
     * before that bit are dropped, so a window has at least 57 bits. */
    WINDOW = 57,
    /* Number of positions in a group. A group is read from one window, if its codes fit into it. */
    GROUP = 4
};

/* Returns the length in bits of the longest possible stream of k positions below n with parameter
 * b. The gaps sum to at most n - k. */
static uint64_t worst_bits(uint64_t k, uint64_t n, unsigned b)
{
    return k * (1 + b) + ((n - k) >> b);
}

/* Returns the parameter b for which the longest possible stream (worst_bits()) is the shortest. The
 * length is convex in b, so the search stops at the first increase. */
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

/* Returns the size in bytes of a typical stream, for random positions. The gaps between random
 * positions have a geometric distribution: P(gap >= m) = q^m with q = 1 - k/n. The mean of gap >> b
 * is therefore x / (1 - x) with x = q^(2^b). */
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

/* ---- Cost in bits for each parameter ---- */

/* Sum of the high parts (gap >> b) of all gaps, for each of the parameters b, b + 1 and b + 2. The
 * sums stay below 2^32. */
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

/* Finds the parameter with the shortest stream. One pass over the gaps gives the lengths for three
 * successive parameters. The search moves up or down until the middle one is the best. */
unsigned rice_best(const uint32_t *index, size_t k, size_t n, uint64_t *bits)
{
    assert(k >= 1 && k <= n);
    /* b is the parameter in the middle of the three that are compared. */
    unsigned b = worst_best(k, n);
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

/* ---- Writing the stream of gaps ---- */

/* Bit writer. The low n_bits bits of `bits` are pending, that is, not written yet. Between two
 * calls of put_bits() fewer than eight bits are pending. */
struct writer
{
    uint8_t *dst, *end;
    uint64_t bits;
    unsigned n_bits;
};

/* Writes up to 56 bits. If at least eight bytes are left in the stream, whole eight bytes are
 * stored. If the last of these bytes are not complete yet, the next call stores them again. */
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

/* Returns the code of one gap and sets *n_bits to its length in bits. The code is valid only if the
 * length is at most 56. */
static inline uint64_t code_of(uint32_t gap, unsigned b, uint64_t *n_bits)
{
    uint32_t high = gap >> b;
    uint64_t low = gap & ((UINT64_C(1) << b) - 1);
    *n_bits = (uint64_t)high + 1 + b;
    return (low << 1 | 1) << (high & 63);
}

/* Writes the code of one gap between two positions. The code may be of any length, so its zero bits
 * are written 24 at a time. */
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
    /* Two gaps are written together, because the CPU then waits for the result of the previous
     * write only half as often. */
    for (; i + 2 <= k; i += 2) {
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

/* ---- Reading the stream of gaps ---- */

/* Returns at least WINDOW bits of the stream from bit `at` on. Bits past the end of the stream are
 * zero. */
static inline uint64_t window(const struct rice_reader *r, size_t at)
{
    return words_get(r->src, r->len, at / 8) >> (at % 8);
}

/* Reads the code of one gap between two positions. The code may be of any length. Returns false if
 * the stream ends inside the code. */
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

/* Reads one position with all checks. Used if a group (GROUP positions) does not fit into one
 * window (64-bit load). */
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

/* Reads groups of GROUP positions, each group from one window. Returns the number of positions
 * read. Stops before a group that does not fit into its window or contains a position of n or
 * more. */
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
            /* Counts the zero bits before the next set bit. The top bit is set artificially,
             * because __builtin_ctzll(0) is undefined. If the count stops only at this bit, the gap
             * is too long for the window. */
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

/* If a group (GROUP positions) does not fit into its window (64-bit load), its positions are read
 * one by one. After them, groups are read again. */
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

/* Bytes that were not read, or a set padding bit, make the stream invalid. Otherwise a set of
 * positions would have a second encoding. */
bool rice_ended(const struct rice_reader *r)
{
    if (r->len != (r->at + 7) / 8)
        return false;
    return r->at % 8 == 0 || r->src[r->len - 1] >> (r->at % 8) == 0;
}

/* Returns true if the parameters b - 1 and b + 1 would not give a shorter stream. Let `high` be the
 * sum of (gap >> b) over all gaps. For b - 1 this sum would be 2 * high + top, where `top` gaps
 * have bit b - 1 set. For b + 1 it would be (high - odd) / 2, where `odd` gaps have an odd (gap >>
 * b). */
bool rice_least(const struct rice_reader *r)
{
    uint64_t high = r->at - (uint64_t)r->k * (1 + r->b);
    bool below = r->b == 0 || high + r->top > r->k;
    bool above = r->b == RICE_B_MAX || 2 * (uint64_t)r->k >= high + r->odd;
    return below && above;
}
