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

/* A piece: n elements of a unit that are contiguous in the model vector. */
struct piece
{
    size_t at;     /* Index of the first element of the piece, counted within its unit. */
    size_t offset; /* Index of the first element of the piece, counted in the model vector. */
    size_t n;
};

/* The elements of a replica to which a decoder adds the values of one unit. */
struct target
{
    float *x; /* The replica: a vector with all elements of the model. */
    /* Cursor: the piece (contiguous part of the unit) that contains the last element reached. The
     * cursor only moves forward. */
    const struct piece *piece;
};

/* Returns the address in the replica of element `at` of the unit. Sets *n to the number of
 * elements, at most `count`, that are contiguous in the replica from `at` on. */
float *target_span(struct target *t, size_t at, size_t count, size_t *n);

/* Adds v[0..count) to elements [at, at + count) of the unit. `at` must not be less than the end of
 * the previous call, and all elements must be inside the unit. */
void target_add(struct target *t, size_t at, const float *v, size_t count);

/* Adds v[i] to element index[i] of the unit, for each i < count. The indices must ascend. */
void target_scatter(struct target *t, const uint32_t *index, const float *v, size_t count);

#endif
