/* compress/target.h -- where decoded values are added.
 *
 * A unit's elements lie in the flat vector as one piece or several:
 *
 *   unit:    0 ........ 89 | 90 ... 95 | 96 ...
 *   vector:  [ conv1.w ] . . . [ fc.w ] . . [ ... ]
 *
 * Decoders add values by their place in the unit, in increasing order; a
 * cursor walks the pieces along.
 */
#ifndef COMPRESS_TARGET_H
#define COMPRESS_TARGET_H

#include <stddef.h>
#include <stdint.h>

struct piece
{
    size_t at;     /* First element's place in the unit, */
    size_t offset; /* and in the vector. */
    size_t n;
};

struct target
{
    float *x;                  /* The whole vector. */
    const struct piece *piece; /* The one the cursor is in. */
};

/* Where place `at` is in the vector; *n is set to how many places from there,
 * `count` at most, lie side by side. */
float *target_span(struct target *t, size_t at, size_t count, size_t *n);

/* x[at..at+count) += v, places of the unit. `at` is not before the end of the
 * call before, and all places are within the unit. */
void target_add(struct target *t, size_t at, const float *v, size_t count);

/* x[index[i]] += v[i]: places of the unit, increasing. */
void target_scatter(struct target *t, const uint32_t *index, const float *v, size_t count);

#endif
