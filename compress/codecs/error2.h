/* compress/codecs/error2.h -- sums of squared errors, for encoders that know each
 * error as they round.
 *
 * A rounding loop of plain C stores the square of every error in a buffer, and
 * simd_sum_squares() adds them up: two loops that vectorise where one that does
 * both does not.
 * Errors are first multiplied by 2^-e, with e the exponent of the block's
 * largest value, so that floats are enough: what underflows then is nothing
 * beside that value's own square. That factor comes from error2_shift().
 */
#ifndef COMPRESS_CODECS_ERROR2_H
#define COMPRESS_CODECS_ERROR2_H

#include "compress/coding/bytes.h"

#include <stddef.h>

/* 2^-e for the largest |v| of a block, below 2^64: exact in every product. */
static inline float error2_shift(float max)
{
    return bytes_pow2(-bytes_exponent(max));
}

/* A sum of such squares without the factor, which was in it twice. */
static inline double error2_unshift(double sum, float max)
{
    uint64_t bits = (uint64_t)(1023 + 2 * bytes_exponent(max)) << 52;
    double pow4;
    memcpy(&pow4, &bits, sizeof pow4);
    return sum * pow4;
}

/* The sum of ((v - decoded) * shift)^2 over n <= CODEC_CHUNK values. */
double error2_decoded(const float *v, const float *decoded, size_t n, float shift);

#endif
