/* compress/codecs/sample.c -- draws a sample of a difference, to estimate a threshold.
 *
 * The sample is large enough to estimate the 1 % of largest magnitudes within a few per cent. It is
 * small enough to cost little compared with a pass over all elements.
 */
#include "compress/codecs/sample.h"

#include "nn/math/rng.h"

enum {
    /* Largest length of a vector that is sampled completely, that is, with all its elements. */
    SAMPLE_ALL = 8192,
    SAMPLE_MAX = 65536, /* Largest number of elements in a sample. */
    SAMPLE_PART = 32    /* The sample has about one of every SAMPLE_PART elements. */
};

size_t sample_size(size_t n)
{
    if (n <= SAMPLE_ALL)
        return n;
    size_t m = n / SAMPLE_PART > SAMPLE_ALL ? n / SAMPLE_PART : SAMPLE_ALL;
    return m < SAMPLE_MAX ? m : SAMPLE_MAX;
}

/* Draws one random element of each stratum (one of the equal parts of the vector), with a fixed
 * key. Equally spaced elements would not be representative, because they could all lie in the same
 * columns of a matrix. */
void sample_draw(const struct codec_source *s, float *v)
{
    uint64_t m = sample_size(s->n);
    uint64_t from = 0;
    for (uint64_t j = 0; j < m; j++) {
        uint64_t to = (j + 1) * s->n / m;
        size_t at = from + ((rng_at(0, j) >> 32) * (to - from) >> 32);
        v[j] = s->x_hat != NULL ? s->x[at] - s->x_hat[at] : s->x[at];
        from = to;
    }
}
