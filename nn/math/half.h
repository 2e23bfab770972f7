/* nn/math/half.h -- floats of 16 bits: IEEE 754 binary16, and bfloat16 (the upper half of binary32).
 *
 * A program may hold a model, or parts of it, in 16 bits while hearsay mixes it in float32. The
 * *rounded model* is what the program holds: each float rounded to the type of its segment.
 */
#ifndef NN_MATH_HALF_H
#define NN_MATH_HALF_H

#include "nn/math/vec.h"

/* Rounded up from 0.51 of the last digit on, and down below that; subnormal float16 from one half on,
 * ties to even. The threshold is not one half because the mean of two peers' values often lies exactly
 * there: peers that agree to the last bit of float32 but one would round it to different values. NaN
 * stays NaN. Too large a value becomes an infinity. */
uint16_t half_to_float16(float v);
float half_of_float16(uint16_t h);
uint16_t half_to_bfloat16(float v);
float half_of_bfloat16(uint16_t h);

/* v rounded to the type. */
float half_rounded(enum segment_type type, float v);

/* out = the rounded model of x, for the n segments at s. out may be x. O(n_floats). */
void half_round_model(const struct segment *s, size_t n, const float *x, float *out);

/* |r(a) - r(b)|^2 of the rounded models, over the n segments. O(their floats). */
double half_dist2(const struct segment *s, size_t n, const float *a, const float *b);

/* Whether a segment is held in 16 bits, so that the rounded model differs from x. */
bool half_any(const struct segment *s, size_t n);

#endif
