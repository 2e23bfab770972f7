/* compress/target.c -- adds decoded values where they belong in the model.
 *
 * Decoders write in increasing order, so that the cursor over the pieces of a unit
 * only moves forward, and adding costs no search.
 */
#include "compress/target.h"

#include "nn/math/vec.h"

/* Both ends of an edge add by this loop: replicas stay equal bit for bit at any vector width, as
 * no sum spans two elements. */
VEC_CLONES static void add_floats(float *restrict y, const float *restrict v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += v[i];
}

/* Move the cursor to the piece that holds a place. */
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

/* The inner loop stays within a piece: a unit is nearly always one. */
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
