/* compress/sparse.h -- driver of the selectors: encodes chosen positions, then their values.
 *
 *   selector that sends positions:   positions (coding/positions.h) | blocks of k values (dense.h)
 *   selector with a seed:            seed (8 bytes) [ k (varint) ]  | blocks of k values
 */
#ifndef COMPRESS_SPARSE_H
#define COMPRESS_SPARSE_H

#include "compress/coding/positions.h"
#include "compress/dense.h"

/* A selector, the values codec of the chosen elements, and the coding of the positions. */
struct sparse
{
    const struct codec_stage *selector, *coder;
    enum positions_how positions;
};

/* Working buffers of an encoder of sparse messages. */
struct sparse_scratch
{
    struct dense_scratch dense; /* Buffers of the values codec that encodes the k chosen values. */
    /* Result of the selector. The caller allocates its arrays; sparse_encode() sets the other
     * fields. */
    struct codec_pick pick;
};

/* Number of bytes for a unit of n elements: sparse_bound() returns the largest possible number,
 * sparse_nominal() that of a typical message. */
size_t sparse_bound(const struct sparse *c, size_t n);
size_t sparse_nominal(const struct sparse *c, size_t n);

/* Writes the positions and values of a unit and sets *len and *stat. *len is 0 if the selector
 * chose no element. Returns 0 or -ERANGE. */
int sparse_encode(const struct sparse *c, const struct codec_source *s,
                  struct sparse_scratch *scratch, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);

/* Returns the length of the message that begins at src, or 0 if src[0..len) is not valid. */
size_t sparse_check(const struct sparse *c, const uint8_t *src, size_t len, size_t n);

/* Adds the decoded values to the target. Returns the length of the message, which sparse_check()
 * must have accepted. */
size_t sparse_apply(const struct sparse *c, const uint8_t *src, size_t len, struct target *t,
                    size_t n);

#endif
