/* compress/coding/bitmap.c -- writes and reads positions as a bitmap, 64 bits at a time.
 *
 * The reader takes one 64-bit word at a time and removes its set bits from the low end. A word of
 * zeros thus costs one comparison for 64 positions. The number of set bits is known before the
 * inner loop, so the CPU mispredicts at most one branch per word.
 */
#include "compress/coding/bitmap.h"

#include "compress/coding/words.h"

#include "nn/math/vec.h"

void bitmap_put(const uint32_t *index, size_t k, size_t n, uint8_t *dst)
{
    const uint8_t *end = dst + bitmap_size(n);
    uint64_t bits = 0;
    size_t word = 0;
    memset(dst, 0, bitmap_size(n));
    for (size_t i = 0; i < k; i++) {
        if (index[i] / 64 != word) {
            words_put(dst + 8 * word, end, bits);
            word = index[i] / 64;
            bits = 0;
        }
        bits |= UINT64_C(1) << (index[i] % 64);
    }
    words_put(dst + 8 * word, end, bits);
}

/* Returns 64-bit word number `word` of the bitmap, padded with zeros past its end. */
static inline uint64_t word_of(const struct bitmap_reader *r, size_t word)
{
    return words_get(r->src, bitmap_size(r->n), 8 * word);
}

void bitmap_open(struct bitmap_reader *r, size_t n, const uint8_t *src)
{
    *r = (struct bitmap_reader){.src = src, .n = n, .word = 1};
    r->bits = word_of(r, 0);
}

VEC_CLONES bool bitmap_get(struct bitmap_reader *r, uint32_t *index, size_t count)
{
    uint64_t bits = r->bits;
    size_t word = r->word;
    for (size_t i = 0; i < count;) {
        for (; bits == 0; bits = word_of(r, word++))
            if (64 * word >= r->n)
                return false;
        size_t first = 64 * (word - 1);
        size_t left = (size_t)__builtin_popcountll(bits);
        size_t end = left < count - i ? i + left : count;
        for (; i < end; i++, bits &= bits - 1)
            index[i] = (uint32_t)first + (unsigned)__builtin_ctzll(bits);
    }
    r->bits = bits;
    r->word = word;
    return index[count - 1] < r->n;
}

/* A set bit that was not read may be in the present word, in a later word or in the padding. Such a
 * bit makes the bitmap invalid, because a set of positions must have exactly one encoding. */
bool bitmap_ended(const struct bitmap_reader *r)
{
    uint64_t bits = r->bits;
    for (size_t word = r->word; 64 * word < r->n; word++)
        bits |= word_of(r, word);
    return bits == 0;
}
