/* compress/sparse.h -- driver of the selectors: encodes chosen positions, then their values.
 *
 * Layout of a message with k chosen elements:
 *
 *   selector that sends positions:   positions (coding/positions.h) | blocks of k values (dense.h)
 *   selector with a seed:            seed (8 bytes) [ k (varint) ]  | blocks of k values
 */
#ifndef COMPRESS_SPARSE_H
#define COMPRESS_SPARSE_H

#include "compress/coding/positions.h"
#include "compress/dense.h"

/* The codecs of a sparse message: the selector, the values codec `coder` that encodes the chosen
 * elements, and the coding of their positions. */
struct sparse
{
    const struct codec_stage *selector, *coder;
    enum positions_how positions;
};

/* Working buffers for encoding a sparse message. */
struct sparse_scratch
{
    struct dense_scratch dense; /* Buffers of the values codec. */
    /* Result of the selector. The caller allocates its arrays. sparse_encode() sets all other
     * fields. */
    struct codec_pick pick;
};

/* Size in bytes of the message for a unit of n elements: sparse_bound() returns the largest
 * possible size, and sparse_nominal() the size of a typical message. */
size_t sparse_bound(const struct sparse *c, size_t n);
size_t sparse_nominal(const struct sparse *c, size_t n);

/* Encodes a unit: writes its positions and values to dst and sets *len and *stat. *len is 0 if the
 * selector chose no element. Returns 0, or -ERANGE if an element or a scale is out of range. */
int sparse_encode(const struct sparse *c, const struct codec_source *s,
                  struct sparse_scratch *scratch, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);

/* Returns the length of the message of a unit of n elements at the start of src[0..len), or 0 if no
 * valid message begins there. */
size_t sparse_check(const struct sparse *c, const uint8_t *src, size_t len, size_t n);

/* Decodes the message of a unit of n elements and adds its values to the replica behind `t`.
 * Returns the length of the message, which sparse_check() must have accepted. */
size_t sparse_apply(const struct sparse *c, const uint8_t *src, size_t len, struct target *t,
                    size_t n);

#endif
