/* compress/codecs/sample.h -- a few elements of a difference, from all over it.
 *
 * One element of each of m equal strata: all of n up to 8192, then n / 32, at
 * most 65536. Places are fixed by m and n: they need be neither secret nor
 * fresh where a poor sample costs time or length and no more.
 */
#ifndef COMPRESS_CODECS_SAMPLE_H
#define COMPRESS_CODECS_SAMPLE_H

#include "compress/codec.h"

size_t sample_size(size_t n);

/* sample_size(s->n) elements into v; they may be NaN. */
void sample_draw(const struct codec_source *s, float *v);

#endif
