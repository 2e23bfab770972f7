/* compress/codecs/error2.c -- squared errors summed in lanes of floats, then in double.
 *
 * Sixteen lanes, as one register of AVX-512 or two of AVX2 have; the order of
 * additions is that of this file at every width.
 */
#include "compress/codecs/error2.h"

#include "compress/codec.h"

#include "nn/math/vec.h"

#include <assert.h>

enum { LANES = 16 };

/* Four squares are added up first, so that a lane waits for a quarter of the additions. The
 * lanes are folded as compress/simd does. */
VEC_CLONES double error2_sum(const float *square, size_t n)
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

/* For codecs whose decoder is a table or a formula of its own: it is run, and compared. */
double error2_decoded(const float *v, const float *decoded, size_t n, float shift)
{
    float square[CODEC_CHUNK];
    assert(n <= CODEC_CHUNK);
    square_errors(square, v, decoded, n, shift);
    return error2_sum(square, n);
}
