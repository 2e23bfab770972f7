/* compress/codec.h -- the interface that every codec implements, and the table of all codecs.
 *
 * A peer has a model x, and its neighbours hold a replica x_hat of that model. In each round the
 * peer sends the difference v = x - x_hat in few bytes. A codec is the algorithm that does this:
 * its encoder turns v into bytes, and its decoder turns the bytes into an approximation C(v). The
 * sender and all receivers add C(v) to x_hat. All replicas therefore stay equal, and the error
 * v - C(v) is part of the next difference (CHOCO-SGD, Koloskova et al. 2019).
 *
 * Units. The model is cut into units, which are encoded independently of each other (unit.h). A
 * unit is one tensor, several tensors together, or a block of elements, as `--compress` says.
 *
 * Roles. Each codec has exactly one of three roles:
 *
 *   values     (driver: dense.c) encodes every element of a unit. The vector is cut into blocks,
 *              and the number of bytes of a block depends only on its length.
 *   selector   (driver: sparse.c) chooses k of the n elements of a unit. The driver encodes their
 *              positions, and a values codec encodes their values.
 *   body       (driver: compress.c) encodes the whole unit in a format of its own: messages of
 *              variable length, matrices, or encoders that keep memory between messages.
 *
 * Calls. The driver calls the functions of a codec in this order:
 *
 *   role       at the sender                          at every holder of the replica
 *   values     encode, encode_all or encode_stream    check, then decode or add
 *   selector   select, then measure                   places (if positions are not sent)
 *   body       encode                                 check, then apply
 *
 * The decoder adds values to the replica through target.h, which maps an element of the unit to its
 * place in the model.
 *
 * Message layout. Each unit of a message has one of these forms (numbers are bytes):
 *
 *   0                        nothing is sent for this unit: C(v) = 0
 *   1 [blocks]               values codec
 *   1 [positions] [blocks]   selector, then the values codec of the chosen elements
 *   1 [body]                 body codec
 *
 * Example: `topk:0.01+qsgd:4` for a unit of 1,000 elements sends 10 of them in about 24 bytes,
 * where plain floats take 4,000 bytes: 1 for the form, 14 for the positions, 4 for the scale of
 * qsgd, and 5 for ten codes of 4 bits.
 *
 * Rules that every codec keeps:
 *
 *   finite       |C(v)| <= CODEC_LIMIT = 2^64 for each element. Encoding fails with -ERANGE if an
 *                element of v reaches that limit, and check() rejects a scale that could decode to
 *                more. A finite replica therefore stays finite: 2^64 is too small to change a float
 *                near FLT_MAX, the largest finite float
 *   untrusted    check() may get any bytes. It reads nothing outside of them, and returns false for
 *                a second encoding of the same values (padding that is not 0, a zero with a sign)
 *   equal bits   C(v) is a function of the bytes alone, with the same bits on every machine
 *   repeatable   equal input and equal key give equal bytes, except for body codecs with memory
 *   no heap      functions of a codec allocate nothing. Scratch memory comes from the caller
 *   scale        C(2^k v) = 2^k C(v) for |k| <= 60, so that small differences late in a run are
 *                compressed as well as large ones. Exceptions: sign,scale=none; thr; and
 *                thr2,form=mxnet. They have an absolute size and reproduce published results
 *
 * To add a codec, write a file in compress/codecs/ that defines one `const struct codec`. Then add
 * its extern declaration and its entry in codec_all[] to compress/codec.c. The parser of
 * specifications, the command line and most tests iterate over codec_all[] and need no change.
 * compress/README.md lists the four tests that need an entry.
 *
 * Notation: |v|^2 is the sum of squares, |v|_1 the sum of magnitudes, and E an average over the
 * random choices of the encoder. delta is the contraction 1 - |v - C(v)|^2 / |v|^2: 1 means no
 * error, and 0 means that nothing was gained. omega is the relative variance of an unbiased codec:
 * E C(v) = v and E|v - C(v)|^2 <= omega |v|^2.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include "compress/target.h"
#include "compress/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit for magnitudes, 2^64. An encoded value is below the limit, and a decoded value is at most
 * the limit. */
#define CODEC_LIMIT 0x1p64f

enum {
    CODEC_ARGS_MAX = 8, /* Largest number of parameters that a codec may have. */
    /* Largest number of elements that one call of decode() returns. The driver decodes a longer
     * block in several calls. */
    CODEC_CHUNK = 1024,
    CODEC_BLOCK_MAX = 1 << 20, /* Largest block length that a user can choose, in elements. */
    /* Bit pattern of the float CODEC_LIMIT. Larger magnitudes, infinity and NaN have larger bit
     * patterns, so one integer comparison rejects all of them. */
    CODEC_LIMIT_BITS = 0x5f800000
};

/* Kind of value that a parameter of a codec takes. Every argument is stored as an int64_t. */
enum codec_param_kind {
    CODEC_INTEGER, /* An integer in [low, high] that is a multiple of `step`. */
    /* A decimal number, stored as an integer in billionths: 0.01 is stored as 10000000. `low` and
     * `high` are in billionths too. */
    CODEC_DECIMAL,
    CODEC_CHOICE /* One of the words in `choices`, stored as its index in that list. */
};

/* Marks an argument that the user left out, until its default is stored. As codec_param.preset, the
 * value means that the parameter has no fixed default: the user must give the argument, or
 * codec.settle() computes it (codec_param.settled). */
#define CODEC_UNSET INT64_MIN

/* One parameter of a codec, such as the number of bits per value. In the array codec.params the
 * positional parameters come first, then the options. */
struct codec_param
{
    /* Name of the parameter in error messages. An option is written ",name=value". */
    const char *name;
    enum codec_param_kind kind;
    /* True: an option, written ",name=value". False: a positional parameter, written ":value". */
    bool option;
    /* True: codec.settle() computes the value if the user leaves the argument out. */
    bool settled;
    /* Smallest and largest value that is allowed. `step` is the distance between allowed values,
     * for CODEC_INTEGER only. */
    int64_t low, high, step;
    int64_t preset; /* Default value, or CODEC_UNSET if the parameter has no fixed default. */
    const char *const *choices; /* The allowed words of a CODEC_CHOICE parameter, ended by NULL. */
    /* Last words of the error message "NAME must be ...", for example "in (0, 1]". */
    const char *wants;
};

/* Input of an encoder: the difference v = x - x_hat of one unit (a part of the model). The encoder
 * subtracts while it reads, so no vector v is stored unless the codec needs one. */
struct codec_source
{
    /* Model x and replica x_hat, n elements each. x_hat is NULL for a replica of zeros: v = x. */
    const float *x, *x_hat;
    size_t n;
    uint64_t key; /* Key of the random number stream for the random choices in this unit. */
    /* Number of the round in the run. A selector with a warm-up computes from it which ratio of the
     * elements to send. */
    uint64_t round;
    /* True: the caller wants the measured error (struct compress_stat), so all elements must be
     * read. False: a selector may skip the elements that it does not choose. */
    bool measured;
};

/* Returns the address of x_hat[at], or NULL if the source has no replica. */
static inline const float *codec_x_hat(const struct codec_source *s, size_t at)
{
    return s->x_hat != NULL ? s->x_hat + at : NULL;
}

/* Returns element `at` of x - x_hat. A difference of -0 becomes +0, as in simd_load(), so that all
 * functions that compute the difference give the same bits. */
static inline float codec_difference(const struct codec_source *s, size_t at)
{
    return (s->x[at] - (s->x_hat != NULL ? s->x_hat[at] : 0.0f)) + 0.0f;
}

/* ---- Functions of a values codec, which encodes every element ---- */

/* Input of a values codec: one block of the vector to encode. The driver dense.c sets all
 * fields. */
struct codec_block
{
    const float *v; /* The n elements to encode. No element is -0, and |v[i]| < CODEC_LIMIT. */
    size_t n;
    /* Index of v[0] in the whole encoded vector. Random rounding of v[i] uses random number first +
     * i, so the result does not depend on the block length. */
    size_t first;
    uint64_t key; /* Key of the random number stream for rounding. */
    double x2;    /* Sum of squares over the block, |v|^2. */
    double l1;    /* Sum of |v[i]| over the block, or 0 unless codec_values.wants_l1 is set. */
    float max;    /* Largest |v[i]| of the block. */
    float *work;  /* Scratch space for the codec, n floats. */
};

/* Functions of a values codec, which encodes each block independently of the others. `arg` holds
 * the arguments of the codec in the order of codec.params.
 *
 * A codec sets exactly one of the three encoders `encode`, `encode_all` and `encode_stream`. The
 * other two are NULL.
 */
struct codec_values
{
    /* Returns the block length in elements, a multiple of 8. 0: the whole vector is one block. */
    size_t (*block)(const int64_t *arg);
    /* Returns the exact size in bytes of an encoded block of n elements. */
    size_t (*size)(const int64_t *arg, size_t n);
    /* True: the encoder reads codec_block.l1, so the driver must compute the sum of |v|. */
    bool wants_l1;
    /* Encodes one block as size(n) bytes at dst. Returns the squared error |v - C(v)|^2, or a
     * negative number if a scale is out of range. */
    double (*encode)(const int64_t *arg, const struct codec_block *b, uint8_t *dst);
    /* Encodes `count` consecutive blocks in one call. Returns the sum of their squared errors, or a
     * negative number if the scale of any block is out of range. Implemented by codecs that are
     * faster if the CPU can compute the sums of several blocks at the same time. */
    double (*encode_all)(const int64_t *arg, const struct codec_block *b, size_t count,
                         uint8_t *dst);
    /* Encodes one block like encode(), but reads the model and the replica directly: the b->n
     * elements of `s` from index b->first on. b->v is NULL. The function must set b->x2, b->l1 and
     * b->max. Implemented by codecs that can write codes before they know any sum over the
     * block. */
    double (*encode_stream)(const int64_t *arg, const struct codec_source *s, struct codec_block *b,
                            uint8_t *dst);
    /* Returns true if the size(n) bytes at src are a valid block. decode() and add() may read only
     * a valid block. */
    bool (*check)(const int64_t *arg, const uint8_t *src, size_t n);
    /* Decodes elements [at, at + count) of the block of n elements at src into v[0..count). `at` is
     * a multiple of CODEC_CHUNK, and `count` is at most CODEC_CHUNK. */
    void (*decode)(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                   float *v);
    /* Decodes like decode(), but adds the values to y[0..count) in one pass. The result has the
     * same bits as decode() followed by an addition. NULL: the driver decodes and then adds. */
    void (*add)(const int64_t *arg, const uint8_t *src, size_t n, size_t at, size_t count,
                float *y);
};

/* Returns the squared error |v - C(v)|^2 of a block of n elements, by decoding the block at src
 * that was just encoded. Used by codecs that have no cheaper way to know their error. */
double codec_error2(const struct codec_values *f, const int64_t *arg, const uint8_t *src,
                    const float *v, size_t n);

/* ---- Functions of a selector, which chooses elements ---- */

/* Result of a selector: the chosen positions and their values. The caller owns the arrays, which
 * have room for most(n) + CODEC_CHUNK elements. */
struct codec_pick
{
    uint32_t *index; /* Chosen positions in the unit, in ascending order. */
    /* Value at each chosen position, as the selector passes it to the values codec. No value is
     * -0. */
    float *value;
    float *truth; /* Original element of v at each chosen position. Set only if `scaled` is true. */
    /* True: the selector changed value[], for example to be unbiased, and `truth` holds the
     * original elements. */
    bool scaled;
    void *scratch; /* Scratch space for the selector, codec_selector.scratch(n) bytes. */
    size_t k;      /* Number of chosen elements. 0: the unit sends nothing. */
    double rest2;  /* Sum of squares over the elements of v that were not chosen. */
    /* Seed that the message contains instead of positions. Set only by a selector that derives its
     * positions from a seed (codec_selector.places). */
    uint64_t seed;
};

/* Functions of a selector, which chooses the elements of a unit that are sent. `arg` holds the
 * arguments of the codec in the order of codec.params. */
struct codec_selector
{
    /* Specification of the values codec that is used if the user names none, such as "sign:0".
     * NULL: "none", which sends plain floats. */
    const char *coder;
    /* Returns the largest number of elements that select() may choose out of n >= 1. Buffers have
     * this size, and a received message with a larger k is rejected. The result must not decrease
     * as n grows. */
    size_t (*most)(const int64_t *arg, size_t n);
    /* Returns the number of elements that select() typically chooses out of n. Used for planning
     * bandwidth. NULL: the same as most(n). */
    size_t (*typical)(const int64_t *arg, size_t n);
    /* Returns the number of bytes of scratch memory that select() needs for n elements. NULL:
     * none. */
    size_t (*scratch)(const int64_t *arg, size_t n);
    /* Chooses elements of the difference `s` and fills in `pick`. Returns 0, or -ERANGE if an
     * element is not finite or reaches CODEC_LIMIT. */
    int (*select)(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick);
    /* Computes pick->rest2, the sum of squares of the elements that were not chosen, for a selector
     * that does not read all elements in select(). The driver calls measure() only if
     * codec_source.measured is true. Returns 0, or -ERANGE if an element is not finite or reaches
     * CODEC_LIMIT. NULL: select() itself sets rest2. */
    int (*measure)(const struct codec_source *s, struct codec_pick *pick);
    /* Computes the chosen positions number `at` to `at` + count - 1, in ascending order, from
     * the seed in a message. Writes them to index[0..count). k, the number of all chosen
     * positions, is most(n), or the number in the message if sends_k() returns true. NULL:
     * messages of the codec contain the positions (coding/positions.h) and not a seed. */
    void (*places)(const int64_t *arg, uint64_t seed, size_t n, size_t k, size_t at, size_t count,
                   uint32_t *index);
    /* Returns true if a message with a seed also contains k, the number of chosen elements. NULL:
     * no message of the codec contains k. */
    bool (*sends_k)(const int64_t *arg);
};

/* ---- Functions of a body codec, which encodes whole units in its own format ---- */

/* Shape of a unit of n elements. A unit that is one tensor has the rows and columns of the tensor.
 * Any other unit has one row and n columns. */
struct codec_shape
{
    size_t n, rows, cols;
};

/* Memory that the encoder of a body codec uses. The caller owns it. */
struct codec_desk
{
    /* Scratch space, codec_body.scratch() bytes, aligned to 64 bytes. Undefined on entry. */
    void *scratch;
    /* Memory of codec_body.memory() floats, which keep their values from one message to the next.
     * Zeros before the first message. check() and apply() cannot use them, because a receiver has
     * no such memory. */
    float *memory;
};

/* Functions of a body codec, which encodes a whole unit in a format of its own. `arg` holds the
 * arguments of the codec in the order of codec.params. */
struct codec_body
{
    /* True: the codec encodes matrices, so each tensor is always a unit by itself. */
    bool by_tensor;
    /* Size in bytes of a message for a unit of this shape with n >= 1 elements: bound() returns the
     * largest possible size, and nominal() the typical size. */
    size_t (*bound)(const int64_t *arg, const struct codec_shape *shape);
    size_t (*nominal)(const int64_t *arg, const struct codec_shape *shape);
    /* Returns the number of bytes of scratch memory that encode() needs. NULL: none. */
    size_t (*scratch)(const int64_t *arg, const struct codec_shape *shape);
    /* Returns the number of floats that encode() keeps between messages. NULL: none. */
    size_t (*memory)(const int64_t *arg, const struct codec_shape *shape);
    /* Writes the body of the unit, at most bound() bytes, to dst. Sets *len to its length (0: the
     * unit sends nothing) and *stat to the measured error. Returns 0, or -ERANGE if an element is
     * not finite or a scale is out of range. After -ERANGE the memory of the encoder is
     * unchanged. */
    int (*encode)(const int64_t *arg, const struct codec_shape *shape, const struct codec_source *s,
                  const struct codec_desk *desk, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);
    /* Returns the length of the body at the start of src[0..len), or 0 if no valid body begins
     * there. */
    size_t (*check)(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                    size_t len);
    /* Decodes the body at src and adds C(v) to the replica through `t`. Returns the length of the
     * body. The caller must have validated the body with check(). */
    size_t (*apply)(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                    size_t len, struct target *t);
};

/* ---- Descriptions of codecs, and functions that several codecs use ---- */

/* Error guarantee of a codec with its default arguments. */
enum codec_class {
    CODEC_CONTRACTION, /* A contraction in every message: |v - C(v)|^2 <= (1 - delta) |v|^2. */
    CODEC_EXPECTED,    /* A contraction on average over the random choices of the encoder. */
    /* Unbiased: the average of C(v) over the random choices of the encoder is v. Not a contraction
     * if the relative variance omega is 1 or more. */
    CODEC_UNBIASED,
    CODEC_NEITHER /* Neither a contraction nor unbiased. Exists to reproduce published results. */
};

/* Description of one codec. Each file in compress/codecs/ that is a codec defines one constant of
 * this type. */
struct codec
{
    const char *name; /* Name of the codec in a specification, for example "topk". */
    /* Text, one clause long, that says what a message of the codec contains. Users see it in the
     * list of codecs. */
    const char *about;
    enum codec_class class; /* Error guarantee that the codec gives with its default arguments. */
    /* Formula of delta (contraction) or omega (relative variance) for the default arguments, as
     * text. */
    const char *bound;
    /* Options that make the codec unbiased, as text. "": the codec is unbiased with its default
     * arguments. NULL: no options make it unbiased. */
    const char *unbiased;
    const char *source; /* Paper that introduced the codec, or software that uses it. */
    /* Parameters of the codec, ended by an entry with name NULL. NULL: no parameters. */
    const struct codec_param *params;
    /* Computes the arguments that the user left out (codec_param.settled), and checks that all
     * arguments fit together. Returns false on an error, with a clause for the error message in
     * why[0..n). NULL: nothing to compute or check. */
    bool (*settle)(int64_t *arg, char *why, size_t n);
    /* The functions of the codec for its role. Exactly one of the three pointers is not NULL. */
    const struct codec_values *values;
    const struct codec_selector *selector;
    const struct codec_body *body;
};

/* All codecs in the order in which users see them, ended by NULL. Defined in codec.c. */
extern const struct codec *const codec_all[];

/* Returns the name of the vector instruction set that the codecs use on this CPU: "avx512", "avx2",
 * or "ref" for portable C. */
const char *codec_level(void);

/* A codec with its arguments: one stage of a specification such as "topk:0.01+qsgd:4", which has
 * two stages. */
struct codec_stage
{
    const struct codec *codec;
    /* Arguments in the order of codec->params. Fractions are in billionths (CODEC_DECIMAL). */
    int64_t arg[CODEC_ARGS_MAX];
};

/* Numbers from which the random streams of one unit (part of the model) are derived. Its selector
 * and its values codec draw from different streams: the key of each stream is computed from the key
 * of the unit and one of these numbers. */
enum codec_stream { CODEC_STREAM_SELECT = 1, CODEC_STREAM_VALUES };

/* Writes v[0..n) = x - x_hat, with -0 turned into +0. Returns the bit pattern of the largest
 * |v[i]|. A result of CODEC_LIMIT_BITS or more means that an element is too large, infinite or NaN.
 * To get sums of v in the same pass, call simd_load() instead. */
uint32_t codec_load(float *restrict v, const float *x, const float *x_hat, size_t n);

/* Returns the sum of v[0..n), added in ascending order. Used to add up the partial sums of a
 * vectorised loop. */
double codec_sum(const double *v, size_t n);

/* Converts a share of n elements, given in billionths, to a number of elements: ceil(billionths /
 * 1e9 * n). The result is at least 1 if n > 0 and billionths > 0. Requires n < 2^32. */
size_t codec_share(uint64_t billionths, size_t n);

/* Returns the ratio of a selector in a round, in billionths, with a warm-up of `warm` rounds as in
 * Deep Gradient Compression (Lin et al. 2018): ratio^((round + 1) / (warm + 1)). From round `warm`
 * on, the result is `billionths`, the ratio that the user chose. */
uint64_t codec_warm_share(uint64_t billionths, uint64_t warm, uint64_t round);

#endif
