/* compress/codecs/keep.h -- the selector parameters keep= and warm=: the share of elements.
 *
 * `keep` is the share of elements that a selector chooses, in (0, 1]. With warm=N the share is
 * larger in the first N rounds and falls gradually to `keep`, as in Deep Gradient Compression
 * (codec_warm_share()). Round 0 has the largest share. topk, randk, aji, adaq and wangni have these
 * two parameters before their own ones.
 */
#ifndef COMPRESS_CODECS_KEEP_H
#define COMPRESS_CODECS_KEEP_H

#include "compress/codec.h"

enum {
    /* Index of the argument `keep` in the codec's array of argument values. `keep` is in
     * billionths. */
    KEEP_SHARE,
    KEEP_WARM, /* Index of the argument `warm`, a number of rounds. */
    /* Index of the first parameter after `keep` and `warm`. A selector's own parameters begin
     * here. */
    KEEP_OPTIONS
};

/* The entries of the parameters `keep` and `warm` in codec.params. */
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

/* Returns the share of elements that is chosen in a round, in billionths. */
static inline uint64_t keep_billionths(const int64_t *arg, uint64_t round)
{
    return codec_warm_share((uint64_t)arg[KEEP_SHARE], (uint64_t)arg[KEEP_WARM], round);
}

/* Number of elements that are chosen out of n, rounded up. keep_count() returns it for the given
 * round, keep_most() for round 0, in which it is largest, and keep_typical() for rounds after the
 * warm-up. */
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
