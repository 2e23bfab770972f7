/* nn/math/half.h -- 16-bit floats: IEEE 754 binary16, and bfloat16 (the upper half of binary32).
 *
 * A program may hold a model, or segments of it, in 16 bits while hearsay mixes the model in
 * float32. The *rounded model* is the model as the program holds it: each float is rounded to the
 * type of its segment.
 */
#ifndef NN_MATH_HALF_H
#define NN_MATH_HALF_H

#include "nn/math/vec.h"

/* Convert between float32 and 16 bits. A value is rounded up if the part that is cut off is at
 * least 0.51 of a unit in the last place (ulp). The threshold is not 0.5, because the mean of two
 * peers' values often lies exactly halfway. With 0.5, two peers whose float32 values differ in the
 * last bit would often get different 16-bit values. Subnormal float16 values are rounded to
 * nearest, ties to even. NaN stays NaN. Values that are too large become infinite. */
uint16_t half_to_float16(float v);
float half_of_float16(uint16_t h);
uint16_t half_to_bfloat16(float v);
float half_of_bfloat16(uint16_t h);

/* Returns v rounded to the number format of a segment (float32, float16 or bfloat16). */
float half_rounded(enum segment_type type, float v);

/* Rounds the model x to the types of its segments (the rounded model) and writes it to out. s has
 * the n segments. out may be x. O(floats of the model). */
void half_round_model(const struct segment *s, size_t n, const float *x, float *out);

/* Returns the squared distance between the rounded models of a and b, over the n segments at s.
 * O(floats of the model). */
double half_dist2(const struct segment *s, size_t n, const float *a, const float *b);

/* Returns true if any of the n segments has 16 bits. The rounded model may then differ from x. */
bool half_any(const struct segment *s, size_t n);

#endif
