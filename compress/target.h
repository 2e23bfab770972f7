/* compress/target.h -- adds decoded values to the right elements of a replica.
 *
 * The elements of a unit lie in the model vector as one contiguous piece or as several pieces:
 *
 *   unit:    0 ........ 89 | 90 ... 95 | 96 ...
 *   vector:  [ conv1.w ] . . . [ fc.w ] . . [ ... ]
 *
 * A decoder passes values by their index in the unit, in ascending order. Therefore a cursor that
 * only moves forward finds the piece of each value without a search.
 */
#ifndef COMPRESS_TARGET_H
#define COMPRESS_TARGET_H

#include <stddef.h>
#include <stdint.h>

struct piece
{
    size_t at;     /* Position of the piece's first element in the unit. */
    size_t offset; /* Position of the piece's first element in the model vector. */
    size_t n;
};

struct target
{
    float *x;                  /* The whole model vector (a replica). */
    const struct piece *piece; /* Piece of the unit that the cursor has reached. */
};

/* Returns the address of the unit's element `at` in the model vector. Sets *n to the number of
 * elements from `at` on that are contiguous there, at most `count`. */
float *target_span(struct target *t, size_t at, size_t count, size_t *n);

/* Adds v[0..count) to elements [at, at + count) of the unit. `at` must not be less than the end of
 * the previous call, and all elements must be inside the unit. */
void target_add(struct target *t, size_t at, const float *v, size_t count);

/* Adds v[i] to the unit's element index[i], for each i < count. The indices ascend. */
void target_scatter(struct target *t, const uint32_t *index, const float *v, size_t count);

#endif
