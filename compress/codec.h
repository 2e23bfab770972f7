/* compress/codec.h -- inside compress/: what one codec is, and the table of all.
 *
 * One codec is one file, and two lines of codec.c: an extern, and its place in codec_all[].
 * There are three roles:
 *
 *   values    v[0..n) -> bytes, block by block; each block stands alone and
 *             has a length known beforehand             (driver: dense.c)
 *   selector  picks k of n coordinates; their values go to a values codec
 *                                                       (driver: sparse.c)
 *   body      a unit at once, by its own rules: messages whose length depends
 *             on the values, matrices, memory from message to message
 *
 *   message of a unit:   0                          nothing is sent for it
 *                        1 [positions] [blocks]     positions: selectors only
 *                        1 [body]
 *
 * A unit is what is compressed by itself (unit.h). Decoded values are added to
 * a unit's places in the flat vector through target.h. compress/spec.c parses
 * and prints `params`, the same way for every codec.
 *
 * Every decoded increment is at most CODEC_LIMIT in size, so a replica that is
 * finite stays finite (2^64 vanishes beside FLT_MAX). A difference of that
 * size or more is refused by the encoder, a scale that could give one by check.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include "compress/target.h"
#include "compress/types.h"

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
    CODEC_CHOICE   /* An index into choices. */
};

/* Default of a parameter that must be given, or that settle() works out. */
#define CODEC_UNSET INT64_MIN

/* One argument of a codec. Positional ones come first, options after them. */
struct codec_param
{
    const char *name;
    enum codec_param_kind kind;
    bool option;  /* ",name=value" and not ":value". */
    bool settled; /* If left out, settle() fills it in. */
    int64_t low, high, step;
    int64_t preset;             /* The default, or CODEC_UNSET. */
    const char *const *choices; /* NULL-terminated. */
    const char *wants;          /* "in (0, 1]": for the error sentence. */
};

/* Where a difference is read from. x_hat NULL stands for zeros. */
struct codec_source
{
    const float *x, *x_hat;
    size_t n;
    uint64_t key;   /* Stream of the random choices. */
    uint64_t round; /* The run's round, for a ratio that warms up. */
    bool measured;  /* What the message leaves over is asked for. */
};

/* x_hat from an element on, or NULL where it stands for zeros. */
static inline const float *codec_x_hat(const struct codec_source *s, size_t at)
{
    return s->x_hat != NULL ? s->x_hat + at : NULL;
}

/* One element of the difference, with -0 made +0 as simd_load() does. */
static inline float codec_difference(const struct codec_source *s, size_t at)
{
    return (s->x[at] - (s->x_hat != NULL ? s->x_hat[at] : 0.0f)) + 0.0f;
}

/* ---- values ---- */

/* One block to encode. */
struct codec_block
{
    const float *v; /* No -0, every |v| < CODEC_LIMIT. */
    size_t n;
    size_t first; /* Index of v[0] in the coded vector: addresses randomness. */
    uint64_t key; /* Stream of the random choices. */
    double x2;    /* |v|^2. */
    double l1;    /* Sum of |v|, if the codec asks for it; or else 0. */
    float max;    /* max |v|. */
    float *work;  /* n floats of scratch. */
};

/* `arg` are the parsed parameters, in the order of params. */
struct codec_values
{
    /* Elements a block (a multiple of 8), or 0 for one block of everything. */
    size_t (*block)(const int64_t *arg);
    /* Bytes of a block of n elements, exactly. */
    size_t (*size)(const int64_t *arg, size_t n);
    bool wants_l1; /* encode looks at the block's l1. */
    /* One of three ways to encode; the others are NULL.
     *
     * A block that is loaded: write size(n) bytes. Returns |v - C(v)|^2 as
     * decode will have it, or a negative number if a scale is out of range. */
    double (*encode)(const int64_t *arg, const struct codec_block *b, uint8_t *dst);
    /* `count` blocks that follow each other; returns the sum of the errors,
     * negative if one is. A codec whose passes wait for each other's sums is
     * faster so. */
    double (*encode_all)(const int64_t *arg, const struct codec_block *b, size_t count,
                         uint8_t *dst);
    /* The block of b->n elements of s at b->first, straight from x and x_hat:
     * for codes that can be written before anything is summed up. Also sets x2,
     * l1 and max of b, whose v is NULL. */
    double (*encode_stream)(const int64_t *arg, const struct codec_source *s, struct codec_block *b,
                            uint8_t *dst);
    /* Is src[0..size(n)) a block that decode may be given? */
    bool (*check)(const int64_t *arg, const uint8_t *src, size_t n);
    /* Values at..at+count of a block of n. at is a multiple of CODEC_CHUNK,
     * count at most CODEC_CHUNK. */
    void (*decode)(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                   float *v);
    /* y[0..count) += what decode would give, in one pass and with the same two
     * roundings. May be NULL: then it is decoded and added. */
    void (*add)(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                float *y);
};

/* |v - C(v)|^2 by decoding a block just encoded: for a codec that has no
 * cheaper way to know. */
double codec_error2(const struct codec_values *f, const int64_t *arg, const uint8_t *src,
                    const float *v, size_t n);

/* ---- selectors ---- */

/* What a selector took: ordered positions and their values. */
struct codec_pick
{
    uint32_t *index; /* keep(n) + CODEC_CHUNK of room. */
    float *value;    /* Likewise: what goes to the coder, not -0. */
    float *truth;    /* Likewise: v itself, where `scaled` says that value[] is
                      * not v but what v is to be replaced by. */
    bool scaled;
    void *scratch; /* scratch(n) bytes. */
    size_t k;      /* 0: nothing is sent for the unit. */
    double rest2;  /* Squares of what was not taken. */
    uint64_t seed; /* Where positions are not sent, what they follow from. */
};

struct codec_selector
{
    const char *coder; /* Coder where the spec names none; NULL: none. */
    /* At most this many coordinates are taken of n >= 1: sizes buffers and
     * limits what a message may claim. Grows with n. */
    size_t (*most)(const int64_t *arg, size_t n);
    /* How many in a typical message; NULL: keep(n). */
    size_t (*typical)(const int64_t *arg, size_t n);
    size_t (*scratch)(const int64_t *arg, size_t n); /* May be NULL: none. */
    /* Fill pick. 0, or -ERANGE where the difference is not finite. */
    int (*select)(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick);
    /* For a selector whose select() reads no more than it takes: set pick->rest2 by reading the
     * rest, where somebody wants to know. 0, or -ERANGE as select(). NULL: select() has set it. */
    int (*measure)(const struct codec_source *s, struct codec_pick *pick);
    /* NULL: positions are sent (positions.h). Otherwise they follow from
     * pick->seed: the at-th to (at+count)-th of k positions below n, which
     * increase. k is keep(n), or sent where sends_k() is there and says so. */
    void (*places)(const int64_t *arg, uint64_t seed, size_t n, size_t k, size_t at, size_t count,
                   uint32_t *index);
    bool (*sends_k)(const int64_t *arg);
};

/* ---- bodies ---- */

/* The shape of a unit. One tensor has its rows and cols; other units are one row. */
struct codec_shape
{
    size_t n, rows, cols;
};

/* What an encoder of bodies works with. */
struct codec_desk
{
    void *scratch; /* scratch() bytes, aligned to 64. */
    float *memory; /* memory() floats, zeros at first; NULL: none. The encoder's
                    * alone: check and apply never see it. */
};

struct codec_body
{
    bool by_tensor; /* Each tensor is a unit, whatever the scope. */
    /* Longest message of a unit of this shape, n >= 1, and a typical one. */
    size_t (*bound)(const int64_t *arg, const struct codec_shape *shape);
    size_t (*nominal)(const int64_t *arg, const struct codec_shape *shape);
    size_t (*scratch)(const int64_t *arg, const struct codec_shape *shape);
    size_t (*memory)(const int64_t *arg, const struct codec_shape *shape);
    /* Write the body, at most bound() bytes, and set *len (0: nothing is sent)
     * and stat. 0, or -ERANGE where the difference is not finite or a scale is
     * out of range; memory is then as it was. */
    int (*encode)(const int64_t *arg, const struct codec_shape *shape, const struct codec_source *s,
                  const struct codec_desk *desk, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);
    /* Length of the body that begins at src[0..len), or 0 if not proper. */
    size_t (*check)(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                    size_t len);
    /* Add C to t; returns the length. The body has been checked. */
    size_t (*apply)(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                    size_t len, struct target *t);
};

/* ---- codecs ---- */

enum codec_class {
    CODEC_CONTRACTION, /* Each message has |v - C|^2 <= (1 - delta) |v|^2. */
    CODEC_EXPECTED,    /* A contraction on average over the draws. */
    CODEC_UNBIASED,    /* E C = v; no contraction where omega >= 1. */
    CODEC_NEITHER      /* For reproduction only. */
};

struct codec
{
    const char *name;
    const char *about;                /* What it sends, in one clause. */
    enum codec_class class;           /* At the defaults. */
    const char *bound;                /* Its delta (or omega) at the defaults, as a formula. */
    const char *unbiased;             /* Options that make it unbiased, or NULL. */
    const char *source;               /* Paper, or where it is in use. */
    const struct codec_param *params; /* Ended by a NULL name; may be NULL. */
    /* Fill in and check what hangs together. May be NULL. On false, a clause
     * for the error sentence is in why[0..n). */
    bool (*settle)(int64_t *arg, char *why, size_t n);
    const struct codec_values *values; /* Exactly one of the three. */
    const struct codec_selector *selector;
    const struct codec_body *body;
};

/* Every codec, ended by NULL: codec.c. */
extern const struct codec *const codec_all[];

/* The instructions that codecs use on this CPU: "ref" (what the compiler makes), "avx2", "avx512". */
const char *codec_level(void);

/* A codec with its arguments. */
struct codec_stage
{
    const struct codec *codec;
    int64_t arg[CODEC_ARGS_MAX];
};

/* Streams of a unit's key: the selector's choices and the coder's. */
enum codec_stream { CODEC_STREAM_SELECT = 1, CODEC_STREAM_VALUES };

/* v = x - x_hat with -0 made +0; returns the bits of max |v|, which are
 * CODEC_LIMIT_BITS or more if any value is too large, infinite or NaN. Those who
 * want sums of v, too, call simd_load(). */
uint32_t codec_load(float *restrict v, const float *x, const float *x_hat, size_t n);

/* The sum of n doubles, from the first to the last: what lanes have added up. */
double codec_sum(const double *v, size_t n);

/* ceil(billionths / 1e9 * n), at least 1 where n > 0; n < 2^32. */
size_t codec_share(uint64_t billionths, size_t n);

/* The share of a round, for a selector that warms up over `warm` rounds as
 * Deep Gradient Compression does: share^((round + 1) / (warm + 1)), which is
 * `billionths` itself from round `warm` on. */
uint64_t codec_warm_share(uint64_t billionths, uint64_t warm, uint64_t round);

#endif
