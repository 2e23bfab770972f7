/* compress/codec.h -- the interface that every codec implements, and the table of all codecs.
 *
 * A codec is a compressor that a user can name in `--compress`. Each codec is one .c file in
 * compress/codecs/, which defines one `const struct codec`. To add a codec, write the file, then
 * add its extern declaration and its entry in codec_all[] to compress/codec.c. The specification
 * parser, the command line and the tests iterate over codec_all[] and need no change.
 *
 * The compressor works on the difference v = x - x_hat between a model and its replica. C(v) is
 * the vector that the receiver decodes and adds to x_hat. The model is cut into units (unit.h);
 * each unit is encoded independently. A codec has exactly one of three roles:
 *
 *   role       what the codec does with a unit                             driver
 *   values     encodes n floats as blocks; the size of a block depends     dense.c
 *              only on its number of elements
 *   selector   chooses k of the n elements; a values codec encodes them    sparse.c
 *   body       encodes the whole unit in a format of its own: for          compress.c
 *              messages of variable length, matrices, or encoders that
 *              keep memory between messages
 *
 * Each unit of a message has one of these layouts (numbers are bytes):
 *
 *   0                        nothing is sent for this unit: C(v) = 0
 *   1 [blocks]               values codec
 *   1 [positions] [blocks]   selector, then the values codec of the chosen elements
 *   1 [body]                 body codec
 *
 * The decoder adds values to the replica through target.h, which maps an element of the unit to
 * its offset in the model.
 *
 * Finite values: |C(v)| <= CODEC_LIMIT holds for each element. Therefore a finite replica stays
 * finite (2^64 is below the rounding step of a float near FLT_MAX). Encoding fails with -ERANGE
 * if an element of v reaches CODEC_LIMIT. check() rejects a received scale that could decode to
 * such a value.
 *
 * Notation: |v|^2 is the sum of squares; delta is the contraction 1 - |v - C(v)|^2 / |v|^2;
 * omega is the relative variance of an unbiased codec, E|v - C(v)|^2 <= omega |v|^2.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include "compress/target.h"
#include "compress/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit for the magnitude of each encoded and decoded value: 2^64. */
#define CODEC_LIMIT 0x1p64f

enum {
    CODEC_ARGS_MAX = 8, /* Largest number of parameters of a codec. */
    /* Largest number of elements that one decode() call returns; a longer block is decoded in
     * several calls. */
    CODEC_CHUNK = 1024,
    CODEC_BLOCK_MAX = 1 << 20, /* Largest number of elements of a block that a user can set. */
    /* Bit pattern of CODEC_LIMIT as a float. Larger bits mean a larger value, infinity or NaN. */
    CODEC_LIMIT_BITS = 0x5f800000
};

/* Kind of value that a parameter of a codec takes. */
enum codec_param_kind {
    CODEC_INTEGER, /* Integer in low..high that is a multiple of `step`. */
    /* Decimal number stored in billionths, in low..high: 0.01 is stored as 10000000. */
    CODEC_DECIMAL,
    CODEC_CHOICE /* Index into the list of words `choices`. */
};

/* Marks an argument that has no value yet. As `preset` of a parameter: there is no fixed default,
 * so the user must give the argument, or settle() computes it (see codec_param.settled). */
#define CODEC_UNSET INT64_MIN

/* One parameter of a codec, such as the number of bits. In codec.params[] the positional parameters
 * come first, then the options. */
struct codec_param
{
    const char *name; /* Name in error messages, and before "=" if it is an option. */
    enum codec_param_kind kind;
    bool option; /* True: an option, written ",name=value". False: positional, written ":value". */
    /* True: if the user leaves the argument out, codec.settle() computes its value. */
    bool settled;
    /* Range of the value, both ends included. `step`: see CODEC_INTEGER. */
    int64_t low, high, step;
    int64_t preset;             /* Default value, or CODEC_UNSET if there is no fixed default. */
    const char *const *choices; /* Words of a CODEC_CHOICE parameter, ended by NULL. */
    const char *wants; /* Text for the error message "NAME must be ...", for example "in (0, 1]". */
};

/* Input of an encoder: the difference x - x_hat of one unit, `n` elements long. If x_hat is NULL,
 * the replica counts as all zeros and the difference is x. */
struct codec_source
{
    const float *x, *x_hat;
    size_t n;
    uint64_t key; /* Key of the random number stream for this unit's random choices. */
    /* Round of the run. A selector with a warm-up uses the round to compute its ratio. */
    uint64_t round;
    /* True: the caller needs compress_stat. False: select() may skip reading elements it does not
     * choose. */
    bool measured;
};

/* Returns the address of x_hat[at], or NULL if the source has no x_hat (zeros). */
static inline const float *codec_x_hat(const struct codec_source *s, size_t at)
{
    return s->x_hat != NULL ? s->x_hat + at : NULL;
}

/* Returns element `at` of x - x_hat. Adding +0 turns -0 into +0, as simd_load() does, so that all
 * encoders see the same bits. */
static inline float codec_difference(const struct codec_source *s, size_t at)
{
    return (s->x[at] - (s->x_hat != NULL ? s->x_hat[at] : 0.0f)) + 0.0f;
}

/* ---- Values codecs ---- */

/* One block of the difference, as the driver dense.c hands it to a values codec for encoding. */
struct codec_block
{
    const float *v; /* The elements to encode. None is -0, and all have |v| < CODEC_LIMIT. */
    size_t n;
    /* Index of v[0] in the encoded vector. The random number of element v[i] depends on first +
     * i, so it does not depend on how the vector is cut into blocks. */
    size_t first;
    uint64_t key; /* Key of the random number stream for this unit's values. */
    double x2;    /* Sum of squares of the block, |v|^2. */
    double l1;    /* Sum of |v| over the block. 0 unless codec_values.wants_l1 is set. */
    float max;    /* Largest |v[i]| in the block. */
    float *work;  /* Scratch space of n floats for the codec. */
};

/* Functions of a values codec, which encodes each block independently of the others.
 *
 * In each function, `arg` holds the codec's arguments in the order of codec.params. */
struct codec_values
{
    /* Returns the number of elements in a block (a multiple of 8), or 0 if the whole vector is one
     * block. */
    size_t (*block)(const int64_t *arg);
    /* Returns the exact number of bytes of an encoded block with n elements. */
    size_t (*size)(const int64_t *arg, size_t n);
    /* True: the codec's encoder reads codec_block.l1, so the driver computes the sum of |v|. */
    bool wants_l1;
    /* Encodes one block: writes size(n) bytes to dst. Returns the squared error |v - C(v)|^2 of
     * what decode() will give, or a negative number if a scale is out of range.
     *
     * A codec sets exactly one of `encode`, `encode_all` and `encode_stream`; the other two are
     * NULL. */
    double (*encode)(const int64_t *arg, const struct codec_block *b, uint8_t *dst);
    /* Encodes `count` consecutive blocks in one call. Returns the sum of their squared errors, or a
     * negative number if the scale of a block is out of range. Used by codecs that run faster when
     * the sums of several blocks are computed at the same time. */
    double (*encode_all)(const int64_t *arg, const struct codec_block *b, size_t count,
                         uint8_t *dst);
    /* Encodes the b->n elements of `s` that begin at index b->first, reading x and x_hat directly.
     * Used by codecs that can write codes before any sum over the block is known. b->v is NULL on
     * entry; encode_stream() sets b->x2, b->l1 and b->max. Returns the same as encode(). */
    double (*encode_stream)(const int64_t *arg, const struct codec_source *s, struct codec_block *b,
                            uint8_t *dst);
    /* Returns true if the size(n) bytes at src are a valid block, which decode() may then read. */
    bool (*check)(const int64_t *arg, const uint8_t *src, size_t n);
    /* Decodes elements [at, at + count) of a block of n elements into v[0..count). `at` is a
     * multiple of CODEC_CHUNK, and `count` is at most CODEC_CHUNK. */
    void (*decode)(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                   float *v);
    /* Decodes elements [at, at + count) and adds them to y[0..count) in one pass. The result has
     * the same bits as decode() followed by an addition. May be NULL: the driver then decodes and
     * adds. */
    void (*add)(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                float *y);
};

/* Returns the squared error |v - C(v)|^2 of a block, by decoding the bytes just encoded at src. For
 * codecs that have no cheaper way to compute their error. */
double codec_error2(const struct codec_values *f, const int64_t *arg, const uint8_t *src,
                    const float *v, size_t n);

/* ---- Selectors ---- */

/* Result of a selector: the chosen positions in ascending order, and their values. The arrays have
 * room for most(n) + CODEC_CHUNK elements and belong to the caller. */
struct codec_pick
{
    uint32_t *index; /* Chosen positions in the unit, in ascending order. */
    float *value;    /* Values that the values codec encodes, one for each position. None is -0. */
    float *truth;    /* Original values v at the chosen positions. Set only if `scaled` is true. */
    bool scaled;     /* True: value[] differs from the original values, which are in truth[]. */
    void *scratch;   /* Scratch space of codec_selector.scratch(n) bytes. */
    size_t k;        /* Number of chosen elements, k. 0: nothing is sent for the unit. */
    double rest2;    /* Sum of squares of the elements that were not chosen. */
    /* Seed from which places() derives the positions. Used only by selectors that do not send
     * positions. */
    uint64_t seed;
};

/* Functions of a selector, which chooses the elements of a unit that are sent. `arg` holds the
 * arguments of the codec. */
struct codec_selector
{
    /* Name of the values codec used if the specification names none. NULL: "none", which sends
     * floats. */
    const char *coder;
    /* Returns the largest number of elements that may be chosen from n >= 1. Sizes the buffers, and
     * limits the k that a received message may claim. Must not decrease as n grows. */
    size_t (*most)(const int64_t *arg, size_t n);
    /* Returns the number of elements in a typical message. NULL: most(n). */
    size_t (*typical)(const int64_t *arg, size_t n);
    /* Returns the bytes of scratch for a unit of n elements. NULL: no scratch. */
    size_t (*scratch)(const int64_t *arg, size_t n);
    /* Chooses the elements of `s` and fills `pick`. Returns 0, or -ERANGE if the difference is not
     * finite. */
    int (*select)(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick);
    /* Reads the elements that select() did not choose and sets pick->rest2. The driver calls
     * measure() only if codec_source.measured is true. Returns 0, or -ERANGE if the difference is
     * not finite. NULL: select() itself sets rest2. */
    int (*measure)(const struct codec_source *s, struct codec_pick *pick);
    /* Computes positions from pick->seed instead of sending them: writes the positions with ranks
     * [at, at + count) out of k, ascending and below n, to index[]. k is most(n), unless sends_k()
     * returns true; then the message contains k. NULL: positions are sent in the message
     * (coding/positions.h). */
    void (*places)(const int64_t *arg, uint64_t seed, size_t n, size_t k, size_t at, size_t count,
                   uint32_t *index);
    /* Returns true if the message contains k. NULL: the message never contains k. */
    bool (*sends_k)(const int64_t *arg);
};

/* ---- Body codecs ---- */

/* Shape of a unit. A unit that is one tensor has the tensor's rows and columns. Any other unit has
 * one row and n columns. */
struct codec_shape
{
    size_t n, rows, cols;
};

/* Working space of a body encoder, provided by the caller. */
struct codec_desk
{
    /* Scratch of codec_body.scratch() bytes, aligned to 64 bytes. Undefined on entry. */
    void *scratch;
    /* Memory of codec_body.memory() floats that persist between messages. Zeros before the first
     * message. Only the encoder has this memory; check() and apply() cannot see it. */
    float *memory;
};

/* Functions of a body codec, which encodes a unit in a format of its own. `arg` holds the arguments
 * of the codec. */
struct codec_body
{
    /* True: each tensor is a unit of its own, whatever scope the specification gives. */
    bool by_tensor;
    /* bound() returns the largest number of bytes of a message for a unit of this shape (n >= 1),
     * and nominal() the number of bytes of a typical message. */
    size_t (*bound)(const int64_t *arg, const struct codec_shape *shape);
    size_t (*nominal)(const int64_t *arg, const struct codec_shape *shape);
    /* Returns the bytes of scratch that encode() needs. NULL: none. */
    size_t (*scratch)(const int64_t *arg, const struct codec_shape *shape);
    /* Returns the floats that encode() keeps between messages. NULL: none. */
    size_t (*memory)(const int64_t *arg, const struct codec_shape *shape);
    /* Writes the body of the unit, at most bound() bytes. Sets *len to its length (0: nothing is
     * sent) and *stat to the measured error. Returns 0, or -ERANGE if the difference is not finite
     * or a scale is out of range. On -ERANGE the encoder's memory is unchanged. */
    int (*encode)(const int64_t *arg, const struct codec_shape *shape, const struct codec_source *s,
                  const struct codec_desk *desk, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);
    /* Returns the length of the body that begins at src, or 0 if the bytes at src[0..len) are not
     * valid. */
    size_t (*check)(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                    size_t len);
    /* Adds the decoded values C(v) to the replica through `t`. Returns the length of the body. The
     * caller has validated the body with check(). */
    size_t (*apply)(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                    size_t len, struct target *t);
};

/* ---- Codec descriptions ---- */

/* Error guarantee of a codec, with its default arguments. */
enum codec_class {
    CODEC_CONTRACTION, /* Contraction for every message: |v - C(v)|^2 <= (1 - delta) |v|^2. */
    CODEC_EXPECTED,    /* Contraction on average over the random choices. */
    CODEC_UNBIASED,    /* Unbiased: E C(v) = v. Not a contraction if omega >= 1. */
    CODEC_NEITHER /* Neither a contraction nor unbiased. Present to reproduce published results. */
};

/* Description of one codec. Defined in the codec's own file as a constant. */
struct codec
{
    const char *name;       /* Name in a specification, for example "topk". */
    const char *about;      /* Content of a message, as one clause for the catalogue. */
    enum codec_class class; /* Error guarantee with the default arguments. */
    const char *bound;      /* Formula of delta (or of omega) with the default arguments. */
    const char *unbiased;   /* Options that make the codec unbiased, or NULL. */
    const char *source;     /* Paper that introduced the codec, or the software that uses it. */
    /* Parameters, ended by an entry with name NULL. NULL: no parameters. */
    const struct codec_param *params;
    /* Computes the arguments that were left out (codec_param.settled) and checks that the arguments
     * fit together. Returns false on an error, with a clause for the error message in why[0..n).
     * May be NULL. */
    bool (*settle)(int64_t *arg, char *why, size_t n);
    /* Functions of a values codec. Exactly one of `values`, `selector` and `body` is not NULL. */
    const struct codec_values *values;
    const struct codec_selector *selector;
    const struct codec_body *body;
};

/* All codecs in the order of the catalogue, ended by NULL. Defined in codec.c. */
extern const struct codec *const codec_all[];

/* Returns the name of the vector instruction set that codecs use on this CPU: "avx512", "avx2", or
 * "ref" for portable C. */
const char *codec_level(void);

/* A codec with its parsed arguments: one stage of a specification such as "topk:0.01+qsgd:4". */
struct codec_stage
{
    const struct codec *codec;
    int64_t arg[CODEC_ARGS_MAX];
};

/* Numbers of the random streams derived from a unit's key: one for the selector's choices, one for
 * the values codec's rounding. */
enum codec_stream { CODEC_STREAM_SELECT = 1, CODEC_STREAM_VALUES };

/* Computes v[0..n) = x - x_hat with -0 turned into +0. Returns the bit pattern of the largest |v|.
 * A result of CODEC_LIMIT_BITS or more means that a value is too large, infinite or NaN. To get the
 * sums of v in the same pass, call simd_load() instead. */
uint32_t codec_load(float *restrict v, const float *x, const float *x_hat, size_t n);

/* Returns the sum of v[0..n), added in ascending order. Used to combine the partial sums of vector
 * lanes. */
double codec_sum(const double *v, size_t n);

/* Returns ceil(billionths / 1e9 * n), which is at least 1 if n > 0 and billionths > 0. Needs n <
 * 2^32. */
size_t codec_share(uint64_t billionths, size_t n);

/* Returns the selector's ratio in a round, in billionths, during a warm-up of `warm` rounds as in
 * Deep Gradient Compression (Lin et al. 2018): ratio^((round + 1) / (warm + 1)). From round `warm`
 * on, the result is `billionths` itself. */
uint64_t codec_warm_share(uint64_t billionths, uint64_t warm, uint64_t round);

#endif
