/* compress/codecs/scan.c -- loops over all elements of a difference x - x_hat, shared by several
 * selectors. Each loop computes the difference again. x and x_hat must be read from memory in any
 * case; reading a stored copy of the difference would be additional memory traffic.
 */
#include "compress/codecs/scan.h"

#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <errno.h>

enum {
    /* Number of elements that are scanned before the number of chosen elements is compared with the
     * size of the output arrays. The arrays have CODEC_CHUNK elements of extra room for the output
     * of one such step. */
    STEP = CODEC_CHUNK - SIMD_LANES
};

uint32_t scan_load(const struct codec_source *s, size_t at, float *v, size_t *count)
{
    *count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
    return codec_load(v, s->x + at, codec_x_hat(s, at), *count);
}

int scan_max(const struct codec_source *s, uint32_t *max_bits)
{
    float v[CODEC_CHUNK];
    *max_bits = 0;
    for (size_t at = 0, count; at < s->n; at += count) {
        uint32_t bits = scan_load(s, at, v, &count);
        *max_bits = bits > *max_bits ? bits : *max_bits;
    }
    return *max_bits < CODEC_LIMIT_BITS ? 0 : -ERANGE;
}

/* Floats >= 0 have the same order as their bit patterns. If converting t to float has rounded it
 * down, the smallest float that is at least t therefore has the next larger bit pattern. */
uint32_t scan_threshold(double t)
{
    float near = (float)t;
    return bytes_of_float(near) + ((double)near < t ? 1 : 0);
}

/* The room in the output arrays is checked once per step. A step writes at most STEP values, and
 * the vector kernel writes at most SIMD_LANES unused values after them. */
int scan_above(const struct codec_source *s, uint32_t threshold, size_t most,
               struct codec_pick *pick)
{
    struct simd_scan scan = {
        .t = threshold > 0 ? threshold : 1, .value = pick->value, .index = pick->index};
    for (size_t at = 0; at < s->n; at += STEP) {
        size_t count = s->n - at < STEP ? s->n - at : STEP;
        uint32_t max = simd_scan(&scan, s->x + at, codec_x_hat(s, at), count, (uint32_t)at);
        if (max >= CODEC_LIMIT_BITS)
            return -ERANGE;
        if (scan.found > most)
            return 1;
    }
    pick->k = scan.found;
    pick->rest2 = scan.rest2;
    return 0;
}

/* Packs eight bytes with the values 0 or 1 into the eight bits of one byte. The multiplication
 * moves byte i to bit i of the top byte of the product, without carries. */
static inline uint64_t eight_bits(const uint8_t *mark)
{
    return bytes_get_u64(mark) * UINT64_C(0x0102040810204080) >> 56;
}

/* Handles 64 marks (bytes with the value 0 or 1) at a time. The number of set marks is known before
 * the inner loop, so the CPU mispredicts at most one branch per 64 marks. */
VEC_CLONES size_t scan_marked(uint8_t *mark, size_t n, uint32_t *index)
{
    size_t found = 0;
    memset(mark + n, 0, (64 - n % 64) % 64);
    for (size_t i = 0; i < n; i += 64) {
        uint64_t bits = 0;
        for (unsigned j = 0; j < 8; j++)
            bits |= eight_bits(mark + i + 8 * j) << (8 * j);
        size_t end = found + (size_t)__builtin_popcountll(bits);
        for (; found < end; found++, bits &= bits - 1)
            index[found] = (uint32_t)i + (unsigned)__builtin_ctzll(bits);
    }
    return found;
}
