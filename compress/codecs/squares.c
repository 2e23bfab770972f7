#include "compress/codecs/squares.h"

#include "compress/codec.h"

#include "nn/math/vec.h"

#include <assert.h>

enum { LANES = 16 };

VEC_CLONES double squares_sum(const float *square, size_t n)
{
    float lane[LANES] = {0};
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) /* Shorter chains of sums. */
        for (size_t j = 0; j < LANES; j++) {
            const float *s = square + i + j;
            lane[j] += (s[0] + s[LANES]) + (s[2 * LANES] + s[3 * LANES]);
        }
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += square[i + j];
    for (size_t j = 0; i < n; i++, j++)
        lane[j] += square[i];
    double half[LANES / 2];
    for (size_t j = 0; j < LANES / 2; j++)
        half[j] = (double)lane[j] + (double)lane[j + LANES / 2];
    return ((half[0] + half[4]) + (half[2] + half[6]))
           + ((half[1] + half[5]) + (half[3] + half[7]));
}

VEC_CLONES static void square_errors(float *restrict square, const float *restrict v,
                                     const float *restrict decoded, size_t n, float shift)
{
    for (size_t i = 0; i < n; i++) {
        float d = (v[i] - decoded[i]) * shift;
        square[i] = d * d;
    }
}

double squares_of_errors(const float *v, const float *decoded, size_t n, float shift)
{
    float square[CODEC_CHUNK];
    assert(n <= CODEC_CHUNK);
    square_errors(square, v, decoded, n, shift);
    return squares_sum(square, n);
}
