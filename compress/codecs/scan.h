/* compress/codecs/scan.h -- passes over a difference that selectors share. */
#ifndef COMPRESS_CODECS_SCAN_H
#define COMPRESS_CODECS_SCAN_H

#include "compress/codec.h"

/* Elements of s from `at` on, at most CODEC_CHUNK, into v as codec_load()
 * does; *count is how many. Returns the bits of the largest magnitude. */
uint32_t scan_load(const struct codec_source *s, size_t at, float *v, size_t *count);

/* The bits of max |v|. 0 or -ERANGE. */
int scan_max(const struct codec_source *s, uint32_t *max_bits);

/* The bits of the smallest float that is t or more, 0 <= t < CODEC_LIMIT. */
uint32_t scan_threshold(double t);

/* Take all v whose magnitude has `threshold` as its bits or more; zeros are
 * never taken. pick has room for most + CODEC_CHUNK. 0; or 1 if there are more
 * than `most`, and pick is unfinished; or -ERANGE. */
int scan_above(const struct codec_source *s, uint32_t threshold, size_t most,
               struct codec_pick *pick);

/* Places in order of the bytes of mark[0..n) that are 1 and not 0; n is at most
 * CODEC_CHUNK, and mark has room for so many. Returns how many. */
size_t scan_marked(uint8_t *mark, size_t n, uint32_t *index);

#endif
