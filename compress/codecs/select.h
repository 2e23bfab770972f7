/* compress/codecs/select.h -- finds the k largest |x - x_hat| exactly, at memory speed.
 *
 *   sample     takes cache lines of 16 floats, one from each stratum; gives the bounds `low` and
 *              `high`, slightly below and above the k-th largest value
 *   scan       reads all elements once; those of at least `low` become candidates
 *   choose     finds the k-th largest candidate by a radix search among those below `high`. Of
 *              equal values the lowest index is chosen. Candidates are in ascending order of
 *              index, and so is the result
 *
 * Magnitudes are compared as integers: the bit patterns of floats without the sign have the
 * order of |v|. If `low` was too high (fewer than k candidates) or too low (more candidates than
 * room, because most values are equal), histograms of all elements give a better bound. They
 * need one pass, or up to three if many values are close to each other. Zeros are never chosen:
 * if fewer than k values are not zero, the result has only those.
 */
#ifndef COMPRESS_CODECS_SELECT_H
#define COMPRESS_CODECS_SELECT_H

#include "compress/codec.h"

/* Returns the bytes of scratch that select_top() needs. */
size_t select_scratch(size_t n, size_t k);

/* Writes the k largest elements of `s` to `pick`, for 1 <= k <= n. If fell_back is not NULL,
 * sets *fell_back to whether the histograms were needed. Returns 0 or -ERANGE. */
int select_top(const struct codec_source *s, size_t k, struct codec_pick *pick, bool *fell_back);

/* Does the same as select_top(), but by histograms only, which is slower. */
int select_top_histogram(const struct codec_source *s, size_t k, struct codec_pick *pick);

/* Description of the sample, for tests that construct unfavourable inputs: select_line_at()
 * returns the first element of sampled line j, and select_lines() the number of lines. A line
 * has SELECT_LINE elements. */
enum { SELECT_LINE = 16 };
size_t select_lines(size_t n);
size_t select_line_at(size_t n, size_t j);

#endif
