/* compress/codecs/scan.h -- loops over all elements of a difference x - x_hat, shared by several
 * selectors. */
#ifndef COMPRESS_CODECS_SCAN_H
#define COMPRESS_CODECS_SCAN_H

#include "compress/codec.h"

/* Loads elements of the difference `s` from index `at` on into v: CODEC_CHUNK elements, or fewer at
 * the end. Sets *count to their number. Returns the bit pattern of the largest magnitude, as
 * codec_load() does. */
uint32_t scan_load(const struct codec_source *s, size_t at, float *v, size_t *count);

/* Sets *max_bits to the bit pattern of the largest |v|. Returns 0, or -ERANGE if an element is not
 * finite or too large. */
int scan_max(const struct codec_source *s, uint32_t *max_bits);

/* Returns the bit pattern of the smallest float that is at least t, for 0 <= t < CODEC_LIMIT. */
uint32_t scan_threshold(double t);

/* Chooses all elements of `s`, except zeros, whose magnitude has a bit pattern of at least
 * `threshold`. `pick` must have room for most + CODEC_CHUNK elements. Returns 0, or -ERANGE if an
 * element is not finite or too large. Returns 1 if more than `most` elements reach the threshold;
 * `pick` is then incomplete. */
int scan_above(const struct codec_source *s, uint32_t threshold, size_t most,
               struct codec_pick *pick);

/* Writes the indices of all bytes of mark[0..n) that are 1 to index[], in ascending order. The
 * other bytes must be 0. n is at most CODEC_CHUNK, and `mark` must have room for CODEC_CHUNK bytes.
 * Returns the number of indices. */
size_t scan_marked(uint8_t *mark, size_t n, uint32_t *index);

#endif
