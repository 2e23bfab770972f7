/* compress/codecs/sample.h -- a sample of a difference, taken evenly from the whole vector.
 *
 * The vector is cut into m equal strata, and one element of each is taken. m is n for n <= 8192,
 * otherwise n / 32 but at least 8192 and at most 65536. The positions depend only on m and n.
 * They need not be secret or change between messages, because a poor sample only costs time or
 * message length.
 */
#ifndef COMPRESS_CODECS_SAMPLE_H
#define COMPRESS_CODECS_SAMPLE_H

#include "compress/codec.h"

size_t sample_size(size_t n);

/* Copies sample_size(s->n) elements to v. The copied values may be NaN. */
void sample_draw(const struct codec_source *s, float *v);

#endif
