/* compress/codecs/scan.h -- passes over a difference, shared by several selectors. */
#ifndef COMPRESS_CODECS_SCAN_H
#define COMPRESS_CODECS_SCAN_H

#include "compress/codec.h"

/* Loads at most CODEC_CHUNK elements of `s` from `at` on into v, as codec_load() does. Sets
 * *count to their number. Returns the bit pattern of the largest magnitude. */
uint32_t scan_load(const struct codec_source *s, size_t at, float *v, size_t *count);

/* Finds the bit pattern of the largest |v|. Returns 0 or -ERANGE. */
int scan_max(const struct codec_source *s, uint32_t *max_bits);

/* Returns the bit pattern of the smallest float that is at least t, for 0 <= t < CODEC_LIMIT. */
uint32_t scan_threshold(double t);

/* Chooses all elements whose magnitude has a bit pattern of at least `threshold`. Zeros are
 * never chosen. `pick` must have room for most + CODEC_CHUNK elements. Returns 0; 1 if there are
 * more than `most` elements, with `pick` incomplete; or -ERANGE. */
int scan_above(const struct codec_source *s, uint32_t threshold, size_t most,
               struct codec_pick *pick);

/* Writes the indices of the bytes of mark[0..n) that are 1 to index[], in ascending order. n is
 * at most CODEC_CHUNK, and `mark` must have room for CODEC_CHUNK bytes. Returns the number of
 * indices. */
size_t scan_marked(uint8_t *mark, size_t n, uint32_t *index);

#endif
