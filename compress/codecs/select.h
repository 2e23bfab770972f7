/* compress/codecs/select.h -- the k largest |x - x_hat|, exactly, at memory speed.
 *
 *   sample     strata's lines of 16 floats --> low and high, just below and
 *              above the k-th largest
 *   scan       all of it once: what is >= low goes to the candidates
 *   choose     the k-th largest of the candidates, by radix among those below
 *              high; ties to the lowest index; candidates are in order, so the
 *              result is
 *
 * The order of |v| is the order of the float's bits without the sign, as
 * integers. If `low` was too high (fewer than k candidates) or too low (more
 * than there is room for, as when most values tie), histograms over the whole
 * find a better one: one pass, or up to three where values crowd, before they
 * are collected. Zeros are never taken: with fewer than k other values, those
 * are all.
 */
#ifndef COMPRESS_CODECS_SELECT_H
#define COMPRESS_CODECS_SELECT_H

#include "compress/codec.h"

/* Bytes of scratch select_top() needs. */
size_t select_scratch(size_t n, size_t k);

/* Take the k largest of s into pick; 1 <= k <= n. Returns 0 or -ERANGE. If
 * fell_back is not NULL, it says whether the histograms were needed. */
int select_top(const struct codec_source *s, size_t k, struct codec_pick *pick, bool *fell_back);

/* The slow way alone: same result. */
int select_top_histogram(const struct codec_source *s, size_t k, struct codec_pick *pick);

/* First element of sampled line j, for tests that plan against it; the number
 * of lines, each of SELECT_LINE elements. */
enum { SELECT_LINE = 16 };
size_t select_lines(size_t n);
size_t select_line_at(size_t n, size_t j);

#endif
