/* compress/target.c -- adds decoded values to the right elements of a replica.
 *
 * Decoders add values in ascending order. The cursor over the pieces of a unit therefore only moves
 * forward, and no search is needed.
 */
#include "compress/target.h"

#include "nn/math/vec.h"

/* Adds v to y. Both ends of an edge use this loop, and their results are equal bit for bit: each
 * addition belongs to one element only, so the vector width does not matter. */
VEC_CLONES static void add_floats(float *restrict y, const float *restrict v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += v[i];
}

/* Moves the cursor to the piece (contiguous part of the unit) that contains element `place` of the
 * unit. */
static inline const struct piece *piece_of(struct target *t, size_t place)
{
    while (place - t->piece->at >= t->piece->n)
        t->piece++;
    return t->piece;
}

float *target_span(struct target *t, size_t at, size_t count, size_t *n)
{
    const struct piece *p = piece_of(t, at);
    size_t in = at - p->at;
    *n = p->n - in < count ? p->n - in : count;
    return t->x + p->offset + in;
}

void target_add(struct target *t, size_t at, const float *v, size_t count)
{
    while (count > 0) {
        size_t n;
        float *y = target_span(t, at, count, &n);
        add_floats(y, v, n);
        at += n;
        v += n;
        count -= n;
    }
}

/* The inner loop handles all values that fall into one piece (contiguous part of the unit). Nearly
 * every unit has only one piece. */
void target_scatter(struct target *t, const uint32_t *index, const float *v, size_t count)
{
    size_t i = 0;
    while (i < count) {
        const struct piece *p = piece_of(t, index[i]);
        float *x = t->x + p->offset;
        uint32_t at = (uint32_t)p->at;
        for (; i < count && index[i] - at < p->n; i++)
            x[index[i] - at] += v[i];
    }
}
