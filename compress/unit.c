/* compress/unit.c -- cuts a model into units by the rules and scopes of a specification.
 *
 * Units are ordered rule by rule, and within a rule in the order of the model vector. Both ends
 * compute the units from the same specification and segments, so a message contains no names. A
 * unit has several pieces if segments of other rules lie between its own segments.
 */
#include "compress/unit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Returns the index of the rule that a segment belongs to. The rules 1, 2, ... are tried in order.
 * Rule 0 is the default rule, which takes the segments that no other rule matches. */
static size_t rule_of(const struct spec *spec, const struct segment *segment)
{
    for (size_t i = 1; i < spec->n_rules; i++)
        if (spec_matches(&spec->rule[i], segment))
            return i;
    return 0;
}

/* Returns true if each segment (tensor) of the rule is a unit by itself. This holds for the scope
 * "layer", and for any rule with a matrix codec. */
static bool by_segment(const struct spec_rule *r)
{
    return r->scope == SPEC_LAYER || (r->body.codec != NULL && r->body.codec->body->by_tensor);
}

/* Units under construction. One array holds the pieces (contiguous parts) of all units, unit after
 * unit. */
struct builder
{
    struct units *u;
    size_t n_pieces;
};

/* Starts a new unit (part of the model), which has no elements yet. Its shape is one row, unless
 * build_rule() sets it to the shape of a tensor. */
static struct unit *begin_unit(struct builder *b, const struct spec_rule *r)
{
    struct unit *unit = &b->u->unit[b->u->n++];
    *unit = (struct unit){.rule = r, .shape = {.rows = 1}, .piece = &b->u->pieces[b->n_pieces]};
    return unit;
}

/* Appends n elements at `offset` of the model vector to the unit. If they directly follow the last
 * piece of the unit, that piece becomes longer. */
static void extend_unit(struct builder *b, struct unit *unit, size_t offset, size_t n)
{
    struct piece *last = unit->n_pieces > 0 ? &b->u->pieces[b->n_pieces - 1] : NULL;
    if (last != NULL && last->offset + last->n == offset) {
        last->n += n;
    } else {
        b->u->pieces[b->n_pieces++] = (struct piece){.at = unit->shape.n, .offset = offset, .n = n};
        unit->n_pieces++;
    }
    unit->shape.n += n;
    unit->shape.cols = unit->shape.n;
}

/* Cuts a segment (tensor) into units of `block` elements. `open` is the unfinished unit of the
 * previous segment, or NULL. That unit is filled up first. Returns the last unit, which may be
 * unfinished too. */
static struct unit *split_segment(struct builder *b, const struct spec_rule *r, struct unit *open,
                                  const struct segment *s)
{
    size_t block = r->scope == SPEC_BLOCK ? (size_t)r->block : SIZE_MAX;
    for (size_t at = 0; at < s->n;) {
        if (open == NULL || open->shape.n == block)
            open = begin_unit(b, r);
        size_t room = block - open->shape.n;
        size_t n = s->n - at < room ? s->n - at : room;
        extend_unit(b, open, s->offset + at, n);
        at += n;
    }
    return open;
}

/* Cuts the segments that belong to one rule into units, and appends the units. */
static void build_rule(struct builder *b, const struct spec *spec, size_t rule,
                       const struct segment *segments, size_t n_segments)
{
    const struct spec_rule *r = &spec->rule[rule];
    struct unit *open = NULL;
    for (size_t i = 0; i < n_segments; i++) {
        const struct segment *s = &segments[i];
        if (rule_of(spec, s) != rule)
            continue;
        if (!by_segment(r)) {
            open = split_segment(b, r, open, s);
            continue;
        }
        struct unit *unit = begin_unit(b, r);
        extend_unit(b, unit, s->offset, s->n);
        if (s->rows * s->cols == s->n && s->n > 0) {
            unit->shape.rows = s->rows;
            unit->shape.cols = s->cols;
        }
    }
}

/* Returns an upper limit for the number of units and also for the number of pieces: each segment,
 * each rule and each block ends at most one unit or piece. Both arrays get this size. */
static size_t most_units(const struct spec *spec, size_t dim, size_t n_segments)
{
    size_t most = n_segments + spec->n_rules;
    for (size_t i = 0; i < spec->n_rules; i++)
        if (spec->rule[i].scope == SPEC_BLOCK)
            most += dim / (size_t)spec->rule[i].block + 1;
    return most;
}

int units_init(struct units *u, const struct spec *spec, const struct segment *segments,
               size_t n_segments)
{
    *u = (struct units){0};
    for (size_t i = 0; i < n_segments; i++) {
        /* The segments must cover the model vector without gaps. */
        assert(segments[i].offset == u->dim);
        u->dim += segments[i].n;
    }
    size_t most = most_units(spec, u->dim, n_segments);
    u->unit = calloc(most, sizeof *u->unit);
    u->pieces = calloc(most, sizeof *u->pieces);
    if (u->unit == NULL || u->pieces == NULL) {
        units_close(u);
        return -ENOMEM;
    }
    struct builder b = {.u = u};
    for (size_t i = 0; i < spec->n_rules; i++)
        build_rule(&b, spec, i, segments, n_segments);
    assert(u->n <= most && b.n_pieces <= most);
    return 0;
}

void units_close(struct units *u)
{
    free(u->unit);
    free(u->pieces);
    *u = (struct units){0};
}
