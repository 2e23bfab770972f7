/* compress/codecs/error2.c -- computes the squared error of a block from its decoded values. */
#include "compress/codecs/error2.h"

#include "compress/codec.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <assert.h>

VEC_CLONES static void square_errors(float *restrict square, const float *restrict v,
                                     const float *restrict decoded, size_t n, float shift)
{
    for (size_t i = 0; i < n; i++) {
        float d = (v[i] - decoded[i]) * shift;
        square[i] = d * d;
    }
}

/* Codecs that decode by a table or a formula measure their error with this function, after they
 * have decoded the block that they have just encoded. */
double error2_decoded(const float *v, const float *decoded, size_t n, float shift)
{
    float square[CODEC_CHUNK];
    assert(n <= CODEC_CHUNK);
    square_errors(square, v, decoded, n, shift);
    return simd_sum_squares(square, n);
}
