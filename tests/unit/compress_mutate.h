/* tests/unit/compress_mutate.h -- random changes that make a message invalid.
 *
 * Most of them keep the length, so that the message passes the first check: bytes and 32-bit words
 * with a special meaning, header bytes, runs of one byte, swaps. */
#ifndef TESTS_UNIT_COMPRESS_MUTATE_H
#define TESTS_UNIT_COMPRESS_MUTATE_H

#include "nn/math/rng.h"

#include <stdint.h>
#include <string.h>

/* Bytes that some codec treats specially: in ternary codes, 121 (five zeros), the run bytes and the
 * invalid bytes; special bytes of the position codes bitmap and Elias-Fano; and codes of the value
 * -0. */
static const uint8_t mutate_bytes[] = {0x00, 0x01, 0x7f, 0x80, 0x88, 0xff, 0x3f, 0x5f,
                                       0x78, 0x7c, 31,   32,   63,   64,   65,   121,
                                       242,  243,  255,  0xc0, 0x55, 0xaa};

/* 32-bit words. Most are floats with a special meaning: -0, NaN, infinities, 2^64 and the float
 * just below it, subnormals, -1 and 2^63. The last word occurs in the longest variable-length
 * integer. */
static const uint32_t mutate_words[] = {
    0x80000000u, 0x7fc00000u, 0x7f800000u, 0xff800000u, 0x5f800000u, 0x5f7fffffu, 0x00000001u,
    0x007fffffu, 0x00800000u, 0x80000001u, 0xbf800000u, 0x5f000000u, 0x00000000u, 0xffffffffu};

static inline void mutate_word(struct rng *r, uint8_t *m, size_t len)
{
    if (len < 4)
        return;
    uint32_t word = mutate_words[rng_below(r, sizeof mutate_words / sizeof mutate_words[0])];
    /* In half of the cases the 32-bit word is written near the start of the message, where
     * codecs store scales. */
    size_t most = rng_below(r, 2) == 0 && len > 24 ? 24 : len;
    uint8_t *at = m + rng_below(r, most - 3);
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(word >> (8 * i));
}

/* Makes one change to m[0..len), with len >= 1 and room for `room` bytes. Returns the new length,
 * at least 1. */
static inline size_t mutate(struct rng *r, uint8_t *m, size_t len, size_t room)
{
    size_t at = rng_below(r, len + 1);
    size_t some = 1 + rng_below(r, 8);
    switch (rng_below(r, 9)) {
    case 0: /* Sets a byte to a value that some codec treats specially. */
        if (at < len)
            m[at] = mutate_bytes[rng_below(r, sizeof mutate_bytes)];
        break;
    case 1: /* Sets one of the first 12 bytes of the message, where counts and parameters are. */
        m[rng_below(r, len < 12 ? len : 12)] = (uint8_t)rng_u64(r);
        break;
    case 2: /* Overwrites a part of the message with a run of one byte. */
        for (size_t i = at; i < len && i < at + some; i++)
            m[i] = mutate_bytes[at % sizeof mutate_bytes];
        break;
    case 3: /* Removes some bytes from the message. */
        some = some < len - at ? some : len - at;
        memmove(m + at, m + at + some, len - at - some);
        len -= some;
        break;
    case 4: /* Inserts bytes into the message. */
        some = some < room - len ? some : room - len;
        memmove(m + at + some, m + at, len - at);
        for (size_t i = 0; i < some; i++)
            m[at + i] = (uint8_t)rng_u64(r);
        len += some;
        break;
    case 5: /* Flips one bit of the message. */
        if (at < len)
            m[at] ^= (uint8_t)(1u << rng_below(r, 8));
        break;
    case 6: /* Adds a small number to a header byte, or subtracts it. */
        at %= 12;
        if (at < len)
            m[at] = (uint8_t)(m[at] + (some < 5 ? some : 4 - some));
        break;
    case 7:
        mutate_word(r, m, len);
        break;
    default: /* Replaces bytes by copies of other bytes of the message. */
        for (size_t i = at; i < len && i < at + some; i++)
            m[i] = m[rng_below(r, len)];
        break;
    }
    if (len == 0)
        m[len++] = 1;
    return len;
}

#endif
