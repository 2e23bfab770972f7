/* compress/compress.h -- public interface of compress/: encodes model differences as deltas.
 *
 * A `struct compress` is a parsed compressor specification bound to the segments (tensors) of one
 * model. Its encoder turns the difference v = x - x_hat between a model and its replica into bytes.
 * Its decoder adds the decoded difference C(v) to a replica:
 *
 *   sender                               every peer that holds a replica
 *   compress_encode(x, x_hat)  --bytes-->  compress_validate, then compress_apply
 *
 * The sender calls compress_apply() with its own bytes to update its own x_hat. Both ends run the
 * same instructions on the same bytes, so their replicas are equal bit for bit. The encoder
 * subtracts while it reads: no difference vector is stored unless a codec needs several passes.
 *
 * Contraction: E|C(v) - v|^2 <= (1 - delta) |v|^2 with delta in (0, 1]. (Koloskova, Stich and Jaggi
 * 2019 call this constant omega; their ICLR 2020 paper and this project call it delta.) The encoder
 * measures delta = 1 - e2/x2 of each message; see `struct compress_stat`.
 *
 * A specification is a list of rules (spec.h). A rule says which compressor encodes which segments,
 * and whether the segments are encoded together or one by one. A unit is a part of the model that
 * is encoded independently of the rest (unit.h).
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

/* A specification bound to a model, with all buffers. Created by compress_open(). */
struct compress;

/* Checks a specification and writes its canonical text: defaults are filled in and numbers have one
 * format, so equal compressors have equal texts. On error, `error` gets one sentence that names the
 * invalid part. Returns 0 or -EINVAL. */
int compress_canonical(const char *spec, char canonical[COMPRESS_SPEC_MAX],
                       char error[COMPRESS_ERROR_MAX]);

/* Returns true if a rule of the specification matches none of the segments, and writes the
 * canonical text of the first such rule to `rule`, for example "conv9.*=fp16". Such a rule has no
 * effect and often contains a misspelt segment name. The default rule is never reported. `spec`
 * must be valid for compress_canonical(). */
bool compress_idle_rule(const char *spec, const struct segment *segments, size_t n_segments,
                        char rule[COMPRESS_SPEC_MAX]);

/* Binds a specification to a model of n_segments segments, which must cover the model without gaps.
 * The segments are copied. Allocates all buffers; later calls allocate nothing. Returns 0, -EINVAL
 * or -ENOMEM. */
int compress_open(struct compress **c, const char *spec, const struct segment *segments,
                  size_t n_segments);
/* Opens a compressor like compress_open(), but a rule that would encode its segments as one
 * vector encodes each segment separately (scope "layer" instead of "model"). */
int compress_open_layers(struct compress **c, const char *spec, const struct segment *segments,
                         size_t n_segments);

/* Frees a compressor. NULL is allowed. */
void compress_close(struct compress *c);

/* Returns the length of the longest possible message, in bytes. */
size_t compress_bound(const struct compress *c);

/* Returns the length of a typical message in bytes, assuming no gain from entropy coding. Use the
 * result for planning bandwidth; use compress_bound() to size buffers. */
size_t compress_nominal(const struct compress *c);

/* Input of the encoder: model `x`, replica `x_hat`, the key `draw` of the random choices, and the
 * `round` of the run, which a selector with a warm-up needs. */
struct compress_input
{
    uint64_t draw, round;
    const float *x, *x_hat;
};

/* Encodes x - x_hat into dst, which has room for compress_bound() bytes. Returns 0 and sets *len
 * and *stat, or returns -ERANGE if the difference is not finite or its square overflows; the
 * contents of dst are then undefined. Uses buffers inside `c`: only one thread may encode at a
 * time.
 *
 * Equal inputs give equal bytes. Exception: a codec with memory (lowrank) depends on all inputs
 * since compress_open().
 *
 * stat may be NULL. A codec may then skip reading elements that it does not send (randk does so for
 * a unit of one piece), and does not detect that they are not finite. The message then still
 * decodes to the same values; but a unit whose sent values are all zero may become the single byte
 * 0. */
int compress_encode(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                    struct compress_stat *stat);

/* Encodes a message in several parts, last part first. For a caller that computes x from its end
 * backwards and wants to encode while computing.
 *
 *   message   [ compress_rest() | second compress_part() | first compress_part() ]
 *
 * Call compress_begin(), then compress_part() any number of times, then compress_rest(). All calls
 * take the same input, and no other message may be encoded in between. compress_part() needs the
 * final values of x[from..] only. It encodes the units that lie at or after `from` and precede the
 * previous part; *len may become 0. The joined bytes and the stat equal those of compress_encode().
 * Returns 0 or -ERANGE; after -ERANGE the whole message must be started again. */
void compress_begin(struct compress *c);
int compress_part(struct compress *c, const struct compress_input *in, size_t from, uint8_t *dst,
                  size_t *len);
int compress_rest(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);

/* Returns true if src[0..len) is a valid message, which compress_apply() may then read: the length
 * is exact, positions are in range and ascending, and all scales and decoded values are finite and
 * in range. Allocates nothing and changes nothing. Thread-safe, even while another thread encodes.
 * O(len). */
bool compress_validate(const struct compress *c, const uint8_t *src, size_t len);

/* Adds the decoded difference to x_hat. The message must have passed compress_validate(). Cannot
 * fail. Thread-safe, if no other thread uses the same x_hat. */
void compress_apply(const struct compress *c, const uint8_t *src, size_t len, float *x_hat);

/* Description of one codec for users. The texts are static. */
struct compress_info
{
    const char *name;
    /* Syntax of a specification with this codec: "qsgd:bits:bucket:norm,round=near|sr,...". */
    char form[COMPRESS_SPEC_MAX];
    /* Canonical specification of the codec with its default arguments. */
    char preset[COMPRESS_SPEC_MAX];
    const char *about; /* Description of the bytes sent, as one clause. */
    const char *role;  /* Role of the codec: "values", "selector" or "body". */
    /* Error guarantee: "contraction", "expected" (contraction on average), "unbiased" or
     * "neither". */
    const char *class;
    const char *bound;    /* Formula of the codec's delta or omega with the default arguments. */
    const char *unbiased; /* Options that make the codec unbiased, or NULL. */
    const char *source;
};

/* Fills *info with codec number i, counted from 0. Returns false if there are at most i codecs. */
bool compress_catalogue(size_t i, struct compress_info *info);

#endif
