/* compress/coding/elias.c -- writes and reads positions in the Elias-Fano code.
 *
 * High and low parts of positions are read in two separate loops. The high parts are read like a
 * bitmap, one 64-bit word at a time. The low parts are at fixed bit offsets, so the CPU can read
 * several of them at the same time.
 */
#include "compress/coding/elias.h"

#include "compress/coding/words.h"

#include "nn/math/vec.h"

#include <assert.h>

unsigned elias_low_bits(size_t k, size_t n)
{
    assert(k >= 1 && k <= n && n <= UINT32_MAX);
    unsigned b = 0;
    while (b < ELIAS_B_MAX && (uint64_t)k << (b + 1) <= n)
        b++;
    return b;
}

/* Returns the size in bytes of the stream of high parts: one set bit for each position and one zero
 * bit for each increment of the high part. */
static size_t high_bytes(size_t k, size_t n, unsigned b)
{
    return (k + ((n - 1) >> b) + 7) / 8;
}

/* Returns the size in bytes of the stream of low parts. */
static size_t low_bytes(size_t k, unsigned b)
{
    return (size_t)(((uint64_t)k * b + 7) / 8);
}

size_t elias_size(size_t k, size_t n)
{
    unsigned b = elias_low_bits(k, n);
    return high_bytes(k, n, b) + low_bytes(k, b);
}

/* Returns a bound for at most k positions. The bound is computed in bits, because both streams are
 * rounded up to bytes: the size in bytes may decrease by one as k grows, but the size in bits never
 * decreases. Proof: when k grows by one and b thereby falls by one, the low parts lose k - b + 1
 * bits, which is at most k, and the high parts gain at least k bits. */
size_t elias_bound(size_t k, size_t n)
{
    unsigned b = elias_low_bits(k, n);
    return (size_t)(((uint64_t)k * (b + 1) + ((n - 1) >> b) + 14) / 8);
}

/* ---- Writing the streams of positions ---- */

/* Writes the stream of high parts. Position i sets bit high(i) + i. No two positions set the same
 * bit, because the high parts do not decrease. */
VEC_CLONES static void put_high(const uint32_t *index, size_t k, unsigned b, uint8_t *dst,
                                const uint8_t *end)
{
    uint64_t bits = 0;
    size_t word = 0;
    for (size_t i = 0; i < k; i++) {
        size_t at = (index[i] >> b) + i;
        for (; at / 64 > word; word++, bits = 0)
            words_put(dst + 8 * word, end, bits);
        bits |= UINT64_C(1) << (at % 64);
    }
    for (; dst + 8 * word < end; word++, bits = 0)
        words_put(dst + 8 * word, end, bits);
}

/* Writes the stream of low parts. Handles four positions at a time if their bits and up to seven
 * pending bits fit into 64 bits. If at least eight bytes are left in the stream, whole eight bytes
 * are stored. If the last of these bytes are not complete yet, the next iteration stores them
 * again. */
VEC_CLONES static void put_low(const uint32_t *index, size_t k, unsigned b, uint8_t *dst,
                               const uint8_t *end)
{
    uint64_t mask = (UINT64_C(1) << b) - 1;
    uint64_t bits = 0;
    /* Number of bits in `bits` that are not written yet. Below 8 between two iterations. */
    unsigned n_bits = 0;
    size_t i = 0;
    for (; i + 4 <= k && b <= 14 && end - dst >= 8; i += 4) {
        uint64_t first = (index[i] & mask) | (index[i + 1] & mask) << b;
        uint64_t second = (index[i + 2] & mask) | (index[i + 3] & mask) << b;
        bits |= (first | second << 2 * b) << n_bits;
        n_bits += 4 * b;
        bytes_put_u64(dst, bits);
        dst += n_bits / 8;
        bits >>= n_bits & 56;
        n_bits %= 8;
    }
    for (; i < k; i++) {
        bits |= (index[i] & mask) << n_bits;
        for (n_bits += b; n_bits >= 8; n_bits -= 8, bits >>= 8)
            *dst++ = (uint8_t)bits;
    }
    if (n_bits > 0)
        *dst++ = (uint8_t)bits;
    assert(dst == end);
}

void elias_put(const uint32_t *index, size_t k, size_t n, uint8_t *dst)
{
    unsigned b = elias_low_bits(k, n);
    uint8_t *low = dst + high_bytes(k, n, b);
    put_high(index, k, b, dst, low);
    put_low(index, k, b, low, low + low_bytes(k, b));
}

/* ---- Reading the streams of positions ---- */

void elias_open(struct elias_reader *r, size_t k, size_t n, const uint8_t *src)
{
    unsigned b = elias_low_bits(k, n);
    *r = (struct elias_reader){.n = n, .b = b};
    r->n_high = high_bytes(k, n, b);
    r->n_low = low_bytes(k, b);
    r->high = src;
    r->low = src + r->n_high;
    r->bits = words_get(r->high, r->n_high, 0);
    r->word = 1;
}

/* Reads the high parts of the next `count` positions into index[]. */
VEC_CLONES static bool get_high(struct elias_reader *r, uint32_t *index, size_t count)
{
    uint64_t bits = r->bits;
    size_t word = r->word;
    for (size_t i = 0; i < count;) {
        while (bits == 0) {
            if (8 * word >= r->n_high)
                return false;
            bits = words_get(r->high, r->n_high, 8 * word++);
        }
        /* The high part of a position is the bit offset of its set bit minus the number of
         * positions before it. `zeros` is the bit offset of the present word minus r->i, the number
         * of positions that earlier calls have read. */
        size_t zeros = 64 * (word - 1) - r->i;
        size_t left = (size_t)__builtin_popcountll(bits);
        size_t end = left < count - i ? i + left : count;
        for (; i < end; i++, bits &= bits - 1)
            index[i] = (uint32_t)(zeros + (unsigned)__builtin_ctzll(bits) - i);
    }
    r->bits = bits;
    r->word = word;
    return true;
}

/* Combines the high part and the low part of a position. `low` may have more than b bits, because
 * the low parts of other positions follow. Only the low b bits are used. */
static inline uint32_t with_low(uint32_t high, uint64_t low, unsigned b)
{
    return high << b | (uint32_t)(low & ((UINT64_C(1) << b) - 1));
}

/* Adds the low parts to the high parts in index[0..count). */
VEC_CLONES static void get_low(const struct elias_reader *r, uint32_t *restrict index, size_t count)
{
    const uint8_t *src = r->low;
    const unsigned b = r->b;
    const size_t first = r->i * b;
    /* Number of positions whose low part can be read with a 64-bit load inside the stream. */
    size_t safe = 0;
    if (8 * r->n_low >= first + 64 + b && b > 0)
        safe = (8 * r->n_low - first - 64) / b;
    safe = safe < count ? safe : count;
    for (size_t i = 0; i < safe; i++) {
        size_t bit = first + i * b;
        uint64_t low = bytes_get_u64(src + bit / 8) >> (bit % 8);
        index[i] = with_low(index[i], low, b);
    }
    for (size_t i = safe; i < count; i++) {
        size_t bit = first + i * b;
        uint64_t low = words_get(src, r->n_low, bit / 8) >> (bit % 8);
        index[i] = with_low(index[i], low, b);
    }
}

/* Returns true if the positions ascend. In an invalid stream they may not ascend, because the low
 * parts of positions with equal high parts can be in any order. */
VEC_CLONES static bool increase(const uint32_t *index, size_t count)
{
    uint32_t bad = 0;
    for (size_t i = 1; i < count; i++)
        bad |= index[i] <= index[i - 1];
    return bad == 0;
}

/* The high part of a position is position >> b. High parts ascend, so only the last one is checked.
 * It must be at most (n-1) >> b, so that no position overflows 32 bits. */
bool elias_get(struct elias_reader *r, uint32_t *index, size_t count)
{
    if (!get_high(r, index, count) || index[count - 1] > (r->n - 1) >> r->b)
        return false;
    get_low(r, index, count);
    if (index[0] < r->next || !increase(index, count))
        return false;
    r->next = (uint64_t)index[count - 1] + 1;
    r->i += count;
    return r->next <= r->n;
}

/* A set bit after the k-th position, or a set padding bit, makes the code invalid. Otherwise a set
 * of positions would have a second encoding. */
bool elias_ended(const struct elias_reader *r)
{
    uint64_t bits = r->bits;
    for (size_t at = 8 * r->word; at < r->n_high; at += 8)
        bits |= words_get(r->high, r->n_high, at);
    unsigned used = (unsigned)(r->i * r->b % 8);
    return bits == 0 && (used == 0 || r->low[r->n_low - 1] >> used == 0);
}
