/* compress/codecs/error2.h -- sums of squared errors, for encoders that round in a loop.
 *
 * A rounding loop stores the square of each error in a buffer, and simd_sum_squares() adds up the
 * squares. Two separate loops vectorise, one combined loop does not. Before they are squared,
 * errors are multiplied by 2^-e, where e is the exponent of the largest |v| in the block. The
 * squares then fit into floats: if a square underflows to 0, it is negligible compared with the
 * square of the largest value.
 */
#ifndef COMPRESS_CODECS_ERROR2_H
#define COMPRESS_CODECS_ERROR2_H

#include "compress/coding/bytes.h"

#include <stddef.h>

/* Returns the factor 2^-e for a block with the largest magnitude `max`, which is below 2^64. e is
 * the exponent of `max`. Multiplying by the factor is exact. */
static inline float error2_shift(float max)
{
    return bytes_pow2(-bytes_exponent(max));
}

/* Undoes the factor of error2_shift() in a sum of squared errors: divides the sum by the square of
 * the factor. */
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
