/* compress/codecs/error2.h -- sums of squared errors, for encoders that round in a loop.
 *
 * A rounding loop stores the square of each error in a buffer, and simd_sum_squares() adds them
 * up. Two separate loops vectorise, one combined loop does not. Errors are multiplied by 2^-e
 * first, where e is the exponent of the block's largest value. Floats are then precise enough:
 * an underflow is negligible compared with the square of that largest value.
 */
#ifndef COMPRESS_CODECS_ERROR2_H
#define COMPRESS_CODECS_ERROR2_H

#include "compress/coding/bytes.h"

#include <stddef.h>

/* Returns the factor 2^-e, where e is the exponent of the largest |v| of a block (below 2^64).
 * Multiplying by it is exact. */
static inline float error2_shift(float max)
{
    return bytes_pow2(-bytes_exponent(max));
}

/* Removes the factor of error2_shift() from a sum of squares, which contains the factor twice. */
static inline double error2_unshift(double sum, float max)
{
    uint64_t bits = (uint64_t)(1023 + 2 * bytes_exponent(max)) << 52;
    double pow4;
    memcpy(&pow4, &bits, sizeof pow4);
    return sum * pow4;
}

/* Returns the sum of ((v - decoded) * shift)^2 over n <= CODEC_CHUNK values. */
double error2_decoded(const float *v, const float *decoded, size_t n, float shift);

#endif
