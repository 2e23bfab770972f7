/* compress/codecs/keep.h -- keep= and warm=, the share of coordinates that a selector takes.
 *
 * The parameters that topk, randk, aji, adaq and wangni have in common, first
 * in the order of their arguments, and what they come to in a round. `warm`
 * rounds go from 1 towards the share as Deep Gradient Compression does
 * (codec_warm_share()): round 0 takes the most.
 */
#ifndef COMPRESS_CODECS_KEEP_H
#define COMPRESS_CODECS_KEEP_H

#include "compress/codec.h"

enum {
    KEEP_SHARE,
    KEEP_WARM,
    KEEP_OPTIONS /* A selector's own parameters begin here. */
};

#define KEEP_PARAMS                                                                                \
    {.name = "keep",                                                                               \
     .kind = CODEC_DECIMAL,                                                                        \
     .low = 1,                                                                                     \
     .high = 1000000000,                                                                           \
     .preset = 10000000,                                                                           \
     .wants = "in (0, 1]"},                                                                        \
    {                                                                                              \
        .name = "warm", .kind = CODEC_INTEGER, .option = true, .high = 1000000, .step = 1,         \
        .wants = "rounds, 0 to 1000000"                                                            \
    }

/* The share of a round, in billionths. */
static inline uint64_t keep_billionths(const int64_t *arg, uint64_t round)
{
    return codec_warm_share((uint64_t)arg[KEEP_SHARE], (uint64_t)arg[KEEP_WARM], round);
}

/* Coordinates of n, rounded up: in a round, in the round of most, and when
 * warm-up is over. */
static inline size_t keep_count(const int64_t *arg, size_t n, uint64_t round)
{
    return codec_share(keep_billionths(arg, round), n);
}

static inline size_t keep_most(const int64_t *arg, size_t n)
{
    return keep_count(arg, n, 0);
}

static inline size_t keep_typical(const int64_t *arg, size_t n)
{
    return keep_count(arg, n, UINT64_MAX);
}

#endif
