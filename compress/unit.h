/* compress/unit.h -- a model cut into what is compressed by itself.
 *
 * The rules of a spec share out the segments; each rule's scope cuts its share
 * into units. A unit is one piece of the vector, or several where segments of
 * other rules lie between.
 */
#ifndef COMPRESS_UNIT_H
#define COMPRESS_UNIT_H

#include "compress/spec.h"

struct unit
{
    const struct spec_rule *rule;
    struct codec_shape shape;  /* n may be 0: an empty segment. */
    const struct piece *piece; /* n_pieces of them. */
    size_t n_pieces;
    size_t memory; /* Where its floats begin in all memory. */
};

struct units
{
    size_t dim; /* Elements of the whole vector. */
    size_t n;
    struct unit *unit;
    struct piece *pieces;
};

/* Cut a model. `spec` stays in use by the units. 0 or -ENOMEM. */
int units_init(struct units *u, const struct spec *spec, const struct segment *segments,
               size_t n_segments);
void units_close(struct units *u);

#endif
