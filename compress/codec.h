/* compress/codec.h -- inside compress/: what one codec is, and the table of all.
 *
 * One codec is one file and one line in codec_all[]. There are two roles:
 *
 *   values    v[0..n) -> bytes, block by block; each block stands alone
 *   selector  picks k of n coordinates; their values go to a values codec
 *
 *   message of a unit:   0                          the difference is zero
 *                        1 [positions] [blocks]     positions: selectors only
 *
 * compress/dense.c drives a values codec over the blocks of a vector and
 * measures what each block leaves by decoding the bytes just written, so that
 * e2 cannot disagree with what the receiver will see. compress/sparse.c puts
 * a selector before it. compress/spec.c parses and prints `params`, the same
 * way for every codec.
 *
 * Every decoded increment is at most CODEC_LIMIT in size, so a replica that is
 * finite stays finite (2^64 vanishes beside FLT_MAX). A difference of that
 * size or more is refused by the encoder, a scale that could give one by check.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include "compress/rice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_LIMIT 0x1p64f

enum {
    CODEC_ARGS_MAX = 8,
    CODEC_CHUNK = 1024, /* Elements decoded at a time; blocks are cut here. */
    CODEC_BLOCK_MAX = 1 << 20,
    CODEC_LIMIT_BITS = 0x5f800000 /* CODEC_LIMIT as the bits of a float. */
};

enum codec_param_kind {
    CODEC_INTEGER, /* low..high, a multiple of step. */
    CODEC_DECIMAL, /* Billionths, low..high: 0.01 is 10000000. */
    CODEC_WORD     /* An index into words. */
};

/* Default of a parameter that must be given, or that settle() works out. */
#define CODEC_UNSET INT64_MIN

/* One argument of a codec. Positional ones come first, options after them. */
struct codec_param
{
    const char *name;
    enum codec_param_kind kind;
    bool option;     /* ",name=value" and not ":value". */
    bool settled;    /* If left out, settle() fills it in. */
    int64_t low, high, step;
    int64_t preset;  /* The default, or CODEC_UNSET. */
    const char *const *words; /* NULL-terminated. */
    const char *wants;        /* "in (0, 1]": for the error sentence. */
};

/* One block to encode. */
struct codec_block
{
    const float *v; /* No -0, every |v| < CODEC_LIMIT. */
    size_t n;
    size_t first;   /* Index of v[0] in the coded vector: addresses randomness. */
    uint64_t key;   /* Stream of the random choices. */
    double x2;      /* |v|^2. */
    float max;      /* max |v|. */
    float *work;    /* n floats of scratch. */
};

/* A values codec. `arg` are the parsed parameters, in the order of params. */
struct codec_values
{
    /* Elements a block (a multiple of 8), or 0 for one block of everything. */
    size_t (*block)(const int64_t *arg);
    /* Bytes of a block of n elements, exactly. */
    size_t (*size)(const int64_t *arg, size_t n);
    /* Write size(n) bytes. False if a scale is out of range. */
    bool (*encode)(const int64_t *arg, const struct codec_block *b,
                   uint8_t *dst);
    /* Is src[0..size(n)) a block that decode may be given? */
    bool (*check)(const int64_t *arg, const uint8_t *src, size_t n);
    /* Values at..at+count of a block of n. at is a multiple of CODEC_CHUNK,
     * count at most CODEC_CHUNK. */
    void (*decode)(const int64_t *arg, const uint8_t *src, size_t n, size_t at,
                   size_t count, float *v);
};

/* Where a difference is read from. x_hat NULL stands for zeros. */
struct codec_source
{
    const float *x, *x_hat;
    size_t n;
    uint64_t key;
};

/* What a selector took: ordered positions and their values. */
struct codec_pick
{
    uint32_t *index; /* keep(n) + CODEC_CHUNK of room. */
    float *value;    /* Likewise. */
    void *scratch;   /* scratch(n) bytes. */
    size_t k;
    double rest2;    /* Squares of what was not taken. */
    uint64_t seed;   /* Of a selector that sends no positions. */
};

/* Reads the positions of a message, in order. */
struct codec_positions
{
    size_t n, k;
    size_t used; /* Bytes of the positions in the message. */
    size_t at;   /* Positions read so far. */
    uint64_t seed;
    struct rice_reader rice;
};

struct codec_selector
{
    size_t (*keep)(const int64_t *arg, size_t n); /* At most this many. */
    size_t (*scratch)(const int64_t *arg, size_t n);
    size_t (*bound)(const int64_t *arg, size_t n); /* Bytes of positions. */
    size_t (*nominal)(const int64_t *arg, size_t n);
    /* Fill pick. 0, or -ERANGE where the difference is not finite. */
    int (*select)(const int64_t *arg, const struct codec_source *s,
                  struct codec_pick *pick);
    /* Write the positions; returns their length. */
    size_t (*put)(const int64_t *arg, size_t n, const struct codec_pick *pick,
                  uint8_t *dst);
    /* Parse the head of the positions at src. False if malformed. */
    bool (*open)(const int64_t *arg, size_t n, const uint8_t *src, size_t len,
                 struct codec_positions *p);
    /* The next count positions, count <= CODEC_CHUNK. False if malformed. */
    bool (*next)(struct codec_positions *p, uint32_t *index, size_t count);
    /* After the last position: is the encoding of the positions proper? */
    bool (*end)(const struct codec_positions *p);
};

struct codec
{
    const char *name;
    const struct codec_param *params; /* Ended by a NULL name; may be NULL. */
    /* Fill in and check what hangs together. May be NULL. On false, a clause
     * for the error sentence is in why[0..n). */
    bool (*settle)(int64_t *arg, char *why, size_t n);
    const struct codec_values *values;     /* Exactly one of the two. */
    const struct codec_selector *selector;
};

extern const struct codec codec_none, codec_fp16, codec_sign, codec_qsgd,
    codec_topk, codec_randk;

/* Every codec, ended by NULL. */
extern const struct codec *const codec_all[];

/* A codec with its arguments. */
struct codec_stage
{
    const struct codec *codec;
    int64_t arg[CODEC_ARGS_MAX];
};

/* Streams of a unit's key: the selector's choices and the coder's. */
enum codec_stream {
    CODEC_STREAM_SELECT = 1,
    CODEC_STREAM_VALUES
};

/* v = x - x_hat with -0 made +0; returns the bits of max |v|, which are
 * CODEC_LIMIT_BITS or more if any value is too large, infinite or NaN. */
uint32_t codec_load(float *restrict v, const float *x, const float *x_hat,
                    size_t n);

/* ceil(billionths / 1e9 * n), at least 1 where n > 0; n < 2^32. */
size_t codec_share(uint64_t billionths, size_t n);

#endif
