/* compress/dense.h -- a values codec over the blocks of one vector. */
#ifndef COMPRESS_DENSE_H
#define COMPRESS_DENSE_H

#include "compress/codec.h"

/* Scratch of an encoder: each holds dense_scratch() floats. */
struct dense_scratch
{
    float *v, *work;
};
size_t dense_scratch(const struct codec_stage *c, size_t n);

/* Bytes of a vector of n: exact, as every block's size is known. */
size_t dense_size(const struct codec_stage *c, size_t n);

/* Write dense_size() bytes and set stat. 0 or -ERANGE. */
int dense_encode(const struct codec_stage *c, const struct codec_source *s,
                 const struct dense_scratch *scratch, uint8_t *dst, struct compress_stat *stat);

/* Is src[0..dense_size(n)) proper? */
bool dense_check(const struct codec_stage *c, const uint8_t *src, size_t n);

/* Decode from element at on, which is 0 or where the last call ended, into
 * v[0..CODEC_CHUNK); returns how many: up to the end of a block or a chunk. */
size_t dense_decode(const struct codec_stage *c, const uint8_t *src, size_t n, size_t at, float *v);

/* Add all n values to the target; returns dense_size(). */
size_t dense_apply(const struct codec_stage *c, const uint8_t *src, struct target *t, size_t n);

#endif
