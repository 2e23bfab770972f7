/* compress/codecs/select.h -- finds the k largest |x - x_hat| exactly, at memory speed.
 *
 *   sample     takes cache lines of 16 floats, one from each stratum of the vector. The sample
 *              gives two bounds, `low` and `high`, slightly below and above the k-th largest value
 *   scan       reads all elements once. Elements of at least `low` become candidates
 *   choose     finds the k-th largest candidate by a radix search among the candidates below
 *              `high`. Of equal values the lowest index is chosen. Candidates are in ascending
 *              order of index, and so is the result
 *
 * Magnitudes are compared as integers, because the bit patterns of floats without the sign bit have
 * the order of |v|. `low` may be wrong: too high, which gives fewer than k candidates, or too low,
 * which gives more candidates than there is room for. Histograms of all elements then give a better
 * bound. They need one pass, or up to three if many values are close to each other. Zeros are never
 * chosen. If fewer than k values are not zero, the result consists of these values.
 */
#ifndef COMPRESS_CODECS_SELECT_H
#define COMPRESS_CODECS_SELECT_H

#include "compress/codec.h"

/* Returns the number of bytes of scratch memory that select_top() needs. */
size_t select_scratch(size_t n, size_t k);

/* Chooses the k elements of `s` with the largest magnitudes and fills in `pick`, for 1 <= k <= n.
 * If fell_back is not NULL, *fell_back becomes true if the bounds of the sample were wrong and
 * histograms were needed. Returns 0 or -ERANGE. */
int select_top(const struct codec_source *s, size_t k, struct codec_pick *pick, bool *fell_back);

/* Gives the same result as select_top(), but uses histograms only, which is slower. */
int select_top_histogram(const struct codec_source *s, size_t k, struct codec_pick *pick);

/* Positions of the sample, for tests that construct unfavourable inputs. The sample of a vector of
 * n elements consists of select_lines(n) cache lines of SELECT_LINE elements each. Line j begins at
 * element select_line_at(n, j). */
enum { SELECT_LINE = 16 };
size_t select_lines(size_t n);
size_t select_line_at(size_t n, size_t j);

#endif
