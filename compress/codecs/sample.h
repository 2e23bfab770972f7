/* compress/codecs/sample.h -- a sample of a difference, taken evenly from the whole vector.
 *
 * The vector of n elements is cut into m equal strata, and one element of each stratum is taken. m
 * is n for n <= 8192, otherwise n / 32 but at least 8192 and at most 65536. The positions depend
 * only on m and n. They may be the same for all messages and may be predictable, because a bad
 * sample only costs time or makes a message longer.
 */
#ifndef COMPRESS_CODECS_SAMPLE_H
#define COMPRESS_CODECS_SAMPLE_H

#include "compress/codec.h"

/* Returns m, the number of elements in a sample of a vector of n elements. */
size_t sample_size(size_t n);

/* Copies a sample of the difference `s` to v, sample_size(s->n) elements. The copied elements may
 * be NaN. */
void sample_draw(const struct codec_source *s, float *v);

#endif
