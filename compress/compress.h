/* compress/compress.h -- a model's difference <-> bytes, by a spec string.
 *
 * The only door of compress/. A `struct compress` is a parsed spec bound to a
 * table of segments. It turns v = x - x_hat into a message and adds the
 * decoded message, C(v), to a replica:
 *
 *   sender                             every holder of a replica
 *   compress_encode(x, x_hat) --bytes--> compress_validate, compress_apply
 *
 * The sender updates its own x_hat by compress_apply() on its own bytes: both
 * ends run the same instructions on the same bytes, so replicas are equal bit
 * for bit. Encoding fuses the subtraction: no difference vector is stored
 * unless a codec needs more than one pass over it.
 *
 * Contraction: E|C(v) - v|^2 <= (1 - delta) |v|^2, delta in (0, 1]
 * (Koloskova, Stich, Jaggi 2019 call it omega; ICLR 2020 and this project
 * delta). `delta = 1 - e2/x2` of each message is measured by the encoder.
 *
 * A spec is a list of rules: which compressor for which segments, and whether
 * it works on all of them at once or one by one (spec.h). What is compressed by
 * itself is a unit.
 *
 * Layout of a message: for each unit, rule by rule and in the order of the
 * vector, a byte 0 where nothing is sent for it, or a byte 1 and the codec's
 * own body. Bodies say their own length by construction or by a varint;
 * nothing follows the last.
 */
#ifndef COMPRESS_COMPRESS_H
#define COMPRESS_COMPRESS_H

#include "compress/types.h"

#include "nn/math/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compress; /* Opaque: made by compress_open(). */

/* Check a spec and write its canonical text (defaults filled in, one number
 * format), so that equal compressors have equal texts. `error` gets one
 * sentence that names the bad part. Returns 0 or -EINVAL. */
int compress_canonical(const char *spec, char canonical[COMPRESS_SPEC_MAX],
                       char error[COMPRESS_ERROR_MAX]);

/* Is there a rule that fits none of the segments? Then `rule` gets the first
 * one's canonical text, "conv9.*=fp16": its match is what stands before the '='.
 * Such a rule does nothing, and may be a misspelt name. The default rule is for
 * what the others leave. Wants a spec that compress_canonical() takes. */
bool compress_idle_rule(const char *spec, const struct segment *segments, size_t n_segments,
                        char rule[COMPRESS_SPEC_MAX]);

/* Bind a spec to a model of n_segments tiling segments (copied). Allocates
 * all scratch there will be. Returns 0, -EINVAL or -ENOMEM. */
int compress_open(struct compress **c, const char *spec, const struct segment *segments,
                  size_t n_segments);
/* The same, but what the spec compresses as one vector is compressed segment by segment. */
int compress_open_layers(struct compress **c, const char *spec, const struct segment *segments,
                         size_t n_segments);
void compress_close(struct compress *c);

/* Length of the longest message there can be, in bytes. */
size_t compress_bound(const struct compress *c);

/* Bytes of a typical message (no entropy luck): for planning, not for limits. */
size_t compress_nominal(const struct compress *c);

/* What to encode. `draw` keys the codec's random choices; `round` is the
 * run's, for a ratio that warms up. */
struct compress_input
{
    uint64_t draw, round;
    const float *x, *x_hat;
};

/* Encode x - x_hat into dst[0..compress_bound). Equal inputs give equal bytes,
 * but for codecs that remember the message before (lowrank): they are a
 * function of all inputs since compress_open(). Returns 0 with *len and *stat
 * set, or -ERANGE where the difference is not finite or its square overflows:
 * then nothing is written that counts. Uses scratch inside c: one thread.
 *
 * stat may be NULL: then a codec need not read what it does not send (randk in
 * a unit of one piece), nor see that it is not finite. The message adds the
 * same, but for a unit where all that is sent is zero it may be the byte 0. */
int compress_encode(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                    struct compress_stat *stat);

/* The same message in parts, its end first: for a caller whose x is known from its end on.
 *
 *   message   [ compress_rest() | second compress_part() | first compress_part() ]
 *
 * Between compress_begin() and compress_rest() no other message is encoded, all calls have one
 * input, and x[from..] is as it will be at the end. A part is of all units that lie at `from` or
 * behind it, up to the ones of the part before; its length may be 0. Bytes and stat are those of
 * compress_encode(). Returns 0 or -ERANGE, as that: then begin anew. */
void compress_begin(struct compress *c);
int compress_part(struct compress *c, const struct compress_input *in, size_t from, uint8_t *dst,
                  size_t *len);
int compress_rest(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);

/* Is this a message that compress_apply() may be given? True means: exact
 * length, indices in range and increasing, scales finite and in range, every
 * decoded value finite. Touches nothing, allocates nothing, and is safe
 * from any thread, also beside compress_encode(). O(len). */
bool compress_validate(const struct compress *c, const uint8_t *src, size_t len);

/* x_hat += C. The message must have been validated (asserted in places).
 * Cannot fail. Safe from any thread. */
void compress_apply(const struct compress *c, const uint8_t *src, size_t len, float *x_hat);

/* One line of the catalogue: a codec as users see it. Texts are static. */
struct compress_info
{
    const char *name;
    char form[COMPRESS_SPEC_MAX];   /* "qsgd:bits:bucket:norm,round=near|sr,..." */
    char preset[COMPRESS_SPEC_MAX]; /* Canonical spec of its defaults. */
    const char *about;              /* What it sends. */
    const char *role;               /* "values", "selector" or "body". */
    const char *class;              /* "contraction", "expected", "unbiased", "neither". */
    const char *bound;              /* Formula of its delta or omega at the defaults. */
    const char *unbiased;           /* Options that make it unbiased, or NULL. */
    const char *source;
};

/* The i-th codec, from 0. False behind the last. */
bool compress_catalogue(size_t i, struct compress_info *info);

#endif
