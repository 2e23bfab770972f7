/* compress/dense.h -- driver of the values codecs: encodes a vector block by block. */
#ifndef COMPRESS_DENSE_H
#define COMPRESS_DENSE_H

#include "compress/codec.h"

/* Working buffers of the encoder, dense_scratch() floats each: `v` for the difference, `work` for
 * the codec. */
struct dense_scratch
{
    float *v, *work;
};
/* Returns the number of floats that each working buffer needs for a vector of n elements. */
size_t dense_scratch(const struct codec_stage *c, size_t n);

/* Returns the exact number of bytes of an encoded vector of n elements. */
size_t dense_size(const struct codec_stage *c, size_t n);

/* Encodes the difference `s` as dense_size() bytes at dst and sets *stat to the measured error.
 * Returns 0, or -ERANGE if an element or a scale is out of range. */
int dense_encode(const struct codec_stage *c, const struct codec_source *s,
                 const struct dense_scratch *scratch, uint8_t *dst, struct compress_stat *stat);

/* Returns true if the dense_size(n) bytes at src are valid blocks. */
bool dense_check(const struct codec_stage *c, const uint8_t *src, size_t n);

/* Decodes elements of an encoded vector of n elements, from index `at` on, into v, which has room
 * for CODEC_CHUNK floats. Returns the number of decoded elements. A call stops at the end of a
 * block or after CODEC_CHUNK elements. `at` must be 0 or the end of the previous call. */
size_t dense_decode(const struct codec_stage *c, const uint8_t *src, size_t n, size_t at, float *v);

/* Decodes all n values and adds them to the replica behind `t`. Returns dense_size(), the number of
 * bytes read. */
size_t dense_apply(const struct codec_stage *c, const uint8_t *src, struct target *t, size_t n);

#endif
