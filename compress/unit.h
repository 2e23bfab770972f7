/* compress/unit.h -- cuts a model into units, the parts that are encoded independently.
 *
 * Each segment (tensor) of a model belongs to one rule of the specification. The scope of that rule
 * says how its segments are cut into units. A unit is one contiguous piece of the model vector, or
 * several pieces if segments of other rules lie between them.
 */
#ifndef COMPRESS_UNIT_H
#define COMPRESS_UNIT_H

#include "compress/spec.h"

/* One unit: a part of the model (a tensor, several tensors or a block) that is encoded
 * independently. */
struct unit
{
    const struct spec_rule *rule; /* Rule of the specification that says how the unit is encoded. */
    /* Shape of the unit: number of elements, rows and columns. n is 0 if the unit is a segment
     * without elements. */
    struct codec_shape shape;
    /* The n_pieces contiguous pieces of the model vector that form the unit, in ascending order. */
    const struct piece *piece;
    size_t n_pieces;
    /* Index of the unit's first float in the memory that body codecs keep between messages. */
    size_t memory;
};

/* All units of a model, in the order in which they are in a message. */
struct units
{
    size_t dim; /* Number of elements of the whole model. */
    size_t n;
    struct unit *unit;
    struct piece *pieces;
};

/* Cuts a model of n_segments segments into units. The units keep pointers to the rules in `spec`,
 * which must not move. Returns 0 or -ENOMEM. */
int units_init(struct units *u, const struct spec *spec, const struct segment *segments,
               size_t n_segments);
void units_close(struct units *u);

#endif
