/* compress/codecs/keep.h -- the selector parameters keep= and warm=: the share of elements.
 *
 * topk, randk, aji, adaq and wangni have these parameters, as the first ones of their arguments.
 * During the first `warm` rounds the share falls gradually to `keep`, as in Deep Gradient
 * Compression (codec_warm_share()). Round 0 has the largest share.
 */
#ifndef COMPRESS_CODECS_KEEP_H
#define COMPRESS_CODECS_KEEP_H

#include "compress/codec.h"

enum {
    KEEP_SHARE,
    KEEP_WARM,
    /* Index of the first parameter that is specific to a selector, after keep and warm. */
    KEEP_OPTIONS
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

/* Returns the share of elements in a round, in billionths. */
static inline uint64_t keep_billionths(const int64_t *arg, uint64_t round)
{
    return codec_warm_share((uint64_t)arg[KEEP_SHARE], (uint64_t)arg[KEEP_WARM], round);
}

/* Number of elements to choose out of n, rounded up: keep_count() in a given round, keep_most()
 * in round 0 (the largest number), keep_typical() after the warm-up. */
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
