#include "compress/rice.h"

#include "compress/bytes.h"

#include "nn/vec.h"

#include <assert.h>

/* At parameter b, k gaps that sum to at most n - k take at most this. */
static uint64_t worst_bits(uint64_t k, uint64_t n, unsigned b)
{
    return k * (1 + b) + ((n - k) >> b);
}

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

/* Rounding down takes half a unit off each gap's high part on average. */
size_t rice_nominal(size_t k, size_t n)
{
    uint64_t worst = worst_bits(k, n, worst_best(k, n));
    return (size_t)((worst - k / 2 + 7) / 8);
}

/* Sum of gap >> b: the zero bits of the stream. */
VEC_CLONES static uint64_t high_parts(const uint32_t *index, size_t k,
                                      unsigned b)
{
    uint64_t sum = index[0] >> b;
    for (size_t i = 1; i < k; i++)
        sum += (index[i] - index[i - 1] - 1) >> b;
    return sum;
}

static uint64_t cost(const uint32_t *index, size_t k, unsigned b)
{
    return (uint64_t)k * (1 + b) + high_parts(index, k, b);
}

unsigned rice_best(const uint32_t *index, size_t k, size_t n)
{
    assert(k >= 1 && k <= n);
    unsigned b = worst_best(k, n);
    uint64_t best = cost(index, k, b);
    for (uint64_t c; b > 0 && (c = cost(index, k, b - 1)) < best; b--)
        best = c;
    for (uint64_t c; b < RICE_B_MAX && (c = cost(index, k, b + 1)) < best; b++)
        best = c;
    return b;
}

/* Bits not yet written, from the low end; always fewer than eight between
 * calls of put_bits(). */
struct writer
{
    uint8_t *dst;
    uint64_t bits;
    unsigned n_bits;
};

static inline void put_bits(struct writer *w, uint64_t bits, unsigned n_bits)
{
    assert(n_bits <= 56);
    w->bits |= bits << w->n_bits;
    w->n_bits += n_bits;
    for (; w->n_bits >= 8; w->n_bits -= 8) {
        *w->dst++ = (uint8_t)w->bits;
        w->bits >>= 8;
    }
}

size_t rice_put(const uint32_t *index, size_t k, unsigned b, uint8_t *dst)
{
    struct writer w = {.dst = dst};
    uint64_t next = 0;
    for (size_t i = 0; i < k; i++) {
        uint64_t gap = index[i] - next;
        uint64_t high = gap >> b;
        uint64_t low = gap & ((UINT64_C(1) << b) - 1);
        for (; high > 23; high -= 24)
            put_bits(&w, 0, 24);
        put_bits(&w, (low << 1 | 1) << high, (unsigned)high + 1 + b);
        next = index[i] + UINT64_C(1);
    }
    if (w.n_bits > 0)
        *w.dst++ = (uint8_t)w.bits;
    return (size_t)(w.dst - dst);
}

/* At least 57 bits from bit `at` on, zeros beyond the end. */
static inline uint64_t window(const struct rice_reader *r, size_t at)
{
    size_t byte = at / 8;
    if (byte + 8 <= r->len)
        return bytes_get_u64(r->src + byte) >> (at % 8);
    uint8_t tail[8] = {0};
    if (byte < r->len)
        memcpy(tail, r->src + byte, r->len - byte);
    return bytes_get_u64(tail) >> (at % 8);
}

/* A gap whose zero bits run out of one window. */
static bool long_gap(struct rice_reader *r, uint64_t *gap)
{
    uint64_t high = 0;
    uint64_t bits;
    size_t at = r->at;
    while ((bits = window(r, at) & ((UINT64_C(1) << 57) - 1)) == 0) {
        high += 57;
        at += 57;
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

bool rice_get(struct rice_reader *r, uint32_t *index, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = window(r, r->at);
        unsigned zeros = bits != 0 ? (unsigned)__builtin_ctzll(bits) : 64;
        uint64_t gap;
        if (zeros + 1 + r->b <= 57) {
            uint64_t low = bits >> (zeros + 1);
            gap = (uint64_t)zeros << r->b |
                  (low & ((UINT64_C(1) << r->b) - 1));
            r->at += zeros + 1 + r->b;
        } else if (!long_gap(r, &gap)) {
            return false;
        }
        if (r->at > 8 * r->len || gap >= r->n - r->next)
            return false;
        index[i] = (uint32_t)(r->next + gap);
        r->next += gap + 1;
    }
    return true;
}

bool rice_ended(const struct rice_reader *r)
{
    if (r->len != (r->at + 7) / 8)
        return false;
    return r->at % 8 == 0 || r->src[r->len - 1] >> (r->at % 8) == 0;
}
