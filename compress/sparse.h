/* compress/sparse.h -- a selector, then a values codec over what it took.
 *
 *   positions (positions.h)               | blocks of the k values (dense.h)
 *   seed u64 [ k varint ] (seeded)        |
 */
#ifndef COMPRESS_SPARSE_H
#define COMPRESS_SPARSE_H

#include "compress/coding/positions.h"
#include "compress/dense.h"

struct sparse
{
    const struct codec_stage *selector, *coder;
    enum positions_how positions;
};

struct sparse_scratch
{
    struct dense_scratch dense; /* For the k values. */
    struct codec_pick pick;     /* Its arrays are set, its results not. */
};

size_t sparse_bound(const struct sparse *c, size_t n);
size_t sparse_nominal(const struct sparse *c, size_t n);

/* Write the message and set len and stat. 0 or -ERANGE; *len is 0 where the
 * selector took nothing. */
int sparse_encode(const struct sparse *c, const struct codec_source *s,
                  struct sparse_scratch *scratch, uint8_t *dst, size_t *len,
                  struct compress_stat *stat);

/* Length of the message that begins at src[0..len), or 0 if it is not proper. */
size_t sparse_check(const struct sparse *c, const uint8_t *src, size_t len, size_t n);

/* Add C to the target; returns the length. The message has been checked. */
size_t sparse_apply(const struct sparse *c, const uint8_t *src, size_t len, struct target *t,
                    size_t n);

#endif
