/* compress/unit.h -- cuts a model into units, the parts that are encoded independently.
 *
 * The rules of a specification divide the segments of a model among them. The scope of each rule
 * cuts its segments into units. A unit is one contiguous piece of the model vector, or several
 * pieces if segments of other rules lie between them.
 */
#ifndef COMPRESS_UNIT_H
#define COMPRESS_UNIT_H

#include "compress/spec.h"

struct unit
{
    const struct spec_rule *rule;
    /* Number of elements, rows and columns. n is 0 for an empty segment. */
    struct codec_shape shape;
    const struct piece *piece; /* The n_pieces contiguous pieces of the unit, in ascending order. */
    size_t n_pieces;
    /* Index of the unit's first float in the memory that body encoders keep between messages. */
    size_t memory;
};

struct units
{
    size_t dim; /* Number of elements of the whole model. */
    size_t n;
    struct unit *unit;
    struct piece *pieces;
};

/* Cuts a model into units. The units keep a pointer to `spec`. Returns 0 or -ENOMEM. */
int units_init(struct units *u, const struct spec *spec, const struct segment *segments,
               size_t n_segments);
void units_close(struct units *u);

#endif
