/* compress/compress.h -- public interface of compress/: encodes model differences as deltas.
 *
 * A `struct compress` is a parsed compressor specification bound to the segments (tensors) of one
 * model. Its encoder turns the difference v = x - x_hat between a model x and its replica x_hat
 * into a message of few bytes (a delta). Its decoder adds the decoded difference C(v) to a replica:
 *
 *   sender                               every peer that holds a replica
 *   compress_encode(x, x_hat)  --bytes-->  compress_validate, then compress_apply
 *
 * The sender calls compress_apply() with its own bytes to update its own x_hat. Both ends run the
 * same instructions on the same bytes, so their replicas are equal bit for bit. The encoder
 * subtracts while it reads: no difference vector is stored unless a codec needs several passes.
 *
 * Contraction: E|C(v) - v|^2 <= (1 - delta) |v|^2 with delta in (0, 1]. (Koloskova, Stich and Jaggi
 * 2019 call this constant omega. Their ICLR 2020 paper and this project call it delta.) The encoder
 * measures delta = 1 - e2/x2 of each message; see `struct compress_stat`.
 *
 * A specification is a list of rules (spec.h). A rule says which codec encodes which segments, and
 * whether these segments are encoded together or one by one. The result is a list of units: parts
 * of the model that are encoded independently of each other (unit.h).
 *
 * Message layout: the units follow each other rule by rule, and within a rule in the order of the
 * model. Each unit is a byte 0 if nothing is sent for it, or a byte 1 followed by the codec's data.
 * The length of that data is either fixed by the specification or given inside it. No bytes follow
 * the last unit.
 */
#ifndef COMPRESS_COMPRESS_H
#define COMPRESS_COMPRESS_H

#include "compress/types.h"

#include "nn/math/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A compressor: a specification bound to one model, with all buffers. Created by
 * compress_open(). */
struct compress;

/* Checks a specification and writes its canonical text, in which all defaults are filled in and
 * numbers have one format. Equal compressors therefore have equal texts. Returns 0, or -EINVAL with
 * one sentence in `error` that names the invalid part. */
int compress_canonical(const char *spec, char canonical[COMPRESS_SPEC_MAX],
                       char error[COMPRESS_ERROR_MAX]);

/* Returns true if a rule of the specification matches none of the segments, and writes the
 * canonical text of the first such rule to `rule`, for example "conv9.*=fp16". Such a rule has no
 * effect and often contains a misspelt segment name. The default rule is never reported. `spec`
 * must be valid for compress_canonical(). */
bool compress_idle_rule(const char *spec, const struct segment *segments, size_t n_segments,
                        char rule[COMPRESS_SPEC_MAX]);

/* Creates a compressor for a model of n_segments segments, which must cover the model without gaps.
 * The segments are copied. All buffers are allocated here, and later calls allocate nothing.
 * Returns 0, -EINVAL (invalid specification, or more than 2^32 - 1 elements) or -ENOMEM. */
int compress_open(struct compress **c, const char *spec, const struct segment *segments,
                  size_t n_segments);
/* Creates a compressor like compress_open(), but replaces scope "model" by scope "layer" in every
 * rule: segments that would be encoded together as one vector are encoded one by one. */
int compress_open_layers(struct compress **c, const char *spec, const struct segment *segments,
                         size_t n_segments);

/* Frees a compressor. NULL is allowed. */
void compress_close(struct compress *c);

/* Returns the length of the longest possible message, in bytes. */
size_t compress_bound(const struct compress *c);

/* Returns the length of a typical message in bytes. Use this number to plan bandwidth, and
 * compress_bound() to size buffers. */
size_t compress_nominal(const struct compress *c);

/* Input of the encoder: the model `x`, its replica `x_hat`, the key `draw` of all random choices,
 * and the number `round` of the current round, which selectors with a warm-up need. */
struct compress_input
{
    uint64_t draw, round;
    const float *x, *x_hat;
};

/* Encodes x - x_hat into dst, which has room for compress_bound() bytes. Returns 0 and sets *len
 * and *stat. Returns -ERANGE if an element of the difference is not finite or is too large
 * (codec.h); dst is then undefined. Only one thread at a time may encode with the same `c`, because
 * the buffers are in `c`.
 *
 * Equal inputs give equal bytes. Exception: a codec with memory (lowrank) depends on all inputs
 * since compress_open().
 *
 * stat may be NULL if the caller does not need the error. The encoder may then skip elements that
 * it does not send, as randk does for a unit of one piece. It does not notice if a skipped element
 * is not finite. The message decodes to the same values with and without stat. The bytes may differ
 * in one case: without stat, a unit in which all values sent are zero may become the single byte 0.
 */
int compress_encode(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                    struct compress_stat *stat);

/* Encodes a message in several parts, the last part first. Use this if x is computed from its end
 * to its beginning and finished layers are to be encoded meanwhile.
 *
 *   message   [ compress_rest() | second compress_part() | first compress_part() ]
 *
 * Call compress_begin(), then compress_part() any number of times, then compress_rest(). All calls
 * take the same input, and no other message may be encoded in between. compress_part() needs final
 * values in x[from..] only. It encodes the units that lie at or after `from` and come before the
 * previous part. *len may become 0. The joined bytes and the stat equal those of compress_encode().
 * Returns 0 or -ERANGE. After -ERANGE the caller must start the whole message again.
 */
void compress_begin(struct compress *c);
int compress_part(struct compress *c, const struct compress_input *in, size_t from, uint8_t *dst,
                  size_t *len);
int compress_rest(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);

/* Returns true if src[0..len) is a valid message: the length is exact, positions are in range and
 * ascending, and all scales and decoded values are finite and in range. compress_apply() may read
 * only a valid message. Allocates nothing and changes nothing. Thread-safe, even while another
 * thread encodes. O(len). */
bool compress_validate(const struct compress *c, const uint8_t *src, size_t len);

/* Decodes a message and adds the decoded difference to x_hat. The message must have passed
 * compress_validate(). Cannot fail. Thread-safe if no other thread uses the same x_hat. */
void compress_apply(const struct compress *c, const uint8_t *src, size_t len, float *x_hat);

/* Description of one codec for users. The texts are static. */
struct compress_info
{
    const char *name; /* Name of the codec in a specification, such as "topk". */
    /* Syntax of the codec in a specification, such as "qsgd:bits:bucket:norm,round=near|sr". */
    char form[COMPRESS_SPEC_MAX];
    /* Canonical specification of the codec with its default arguments. */
    char preset[COMPRESS_SPEC_MAX];
    const char *about; /* Text, one clause long, that says what a message of the codec contains. */
    const char *role;  /* Role of the codec: "values", "selector" or "body". */
    /* Error guarantee: "contraction", "expected" (contraction on average), "unbiased" or
     * "neither". */
    const char *class;
    /* Formula of delta (contraction) or omega (relative variance) for the default arguments. */
    const char *bound;
    /* Options that make the codec unbiased, as text. NULL: no options make it unbiased. "": the
     * codec is unbiased with its default arguments. */
    const char *unbiased;
    const char *source; /* Paper that introduced the codec, or software that uses it. */
};

/* Describes codec number i in *info, counted from 0. Returns false if there is no codec i. */
bool compress_catalogue(size_t i, struct compress_info *info);

#endif
