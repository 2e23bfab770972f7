/* compress/spec.h -- the text form of a compressor (the argument of `--compress`).
 *
 *   spec   := rule { ";" rule }            example: topk:0.01;bias=fp16;<256=none
 *   rule   := [ match "=" ] chain { "," option }
 *   match  := "default"                    all segments that no other rule matches
 *           | "<" N                        segments of fewer than N elements
 *           | "bias"                       segments with a name that ends in .bias
 *           | "conv"                       segments with four dimensions
 *           | glob                         segment names, for example conv1.*
 *   chain  := stage { "+" stage }          a selector, a values codec, both, or a body codec
 *   stage  := name { ":" value } [ "/" positions ]
 *   option := name "=" value               an option of one of the stages
 *           | "scope=" ( model | layer | block:N )
 *
 * A segment is one tensor of the model. It belongs to the first rule that matches it, or to the
 * default rule if no rule matches. A rule without a match part is the default rule. `scope` says
 * how the segments of a rule are cut into units, which are encoded independently:
 *
 *   model     all segments of the rule are one vector
 *   layer     each segment is a unit
 *   block:N   that one vector is cut into blocks of N elements
 *
 * The parser rejects spaces, empty parts and options that are given twice. The canonical text
 * begins with the default rule, contains every positional value, and omits options that equal their
 * default. Integers are written in decimal digits. Decimal numbers have no exponent, no trailing
 * zeros and at most nine places.
 */
#ifndef COMPRESS_SPEC_H
#define COMPRESS_SPEC_H

#include "compress/codec.h"
#include "compress/coding/positions.h"
#include "compress/types.h"

#include "nn/math/vec.h"

enum {
    SPEC_RULES_MAX = 8, /* Largest number of rules (text between two ';') in a specification. */
    SPEC_GLOB_MAX = 48  /* Size of a name pattern in bytes, including the final NUL. */
};

/* Kind of match: to which tensors a rule applies. The grammar at the top of this file lists the
 * kinds. */
enum spec_match { SPEC_DEFAULT, SPEC_SMALLER, SPEC_BIAS, SPEC_CONV, SPEC_GLOB };

/* Scope: how the segments (tensors) of a rule are cut into units. All segments are one vector, each
 * segment is a unit, or the vector is cut into blocks. */
enum spec_scope { SPEC_MODEL, SPEC_LAYER, SPEC_BLOCK };

struct spec_rule
{
    enum spec_match match;
    /* SPEC_SMALLER only: the rule matches segments of fewer than `below` elements. */
    int64_t below;
    char glob[SPEC_GLOB_MAX]; /* SPEC_GLOB only: pattern of segment names, such as "conv1.*". */
    enum spec_scope scope;
    /* SPEC_BLOCK only: number N in "scope=block:N", the elements of one unit (part of the model
     * that is encoded by itself). */
    int64_t block;
    /* Selector of the rule. `selector.codec` is NULL if there is no selector. */
    struct codec_stage selector;
    /* Values codec of the rule. `coder.codec` is NULL if the rule has a body codec. */
    struct codec_stage coder;
    /* Body codec of the rule. `body.codec` is NULL if there is no body codec. */
    struct codec_stage body;
    enum positions_how positions; /* Code in which the positions chosen by the selector are sent. */
};

struct spec
{
    size_t n_rules;
    /* rule[0] is the default rule. The other rules follow in the order in which they are tried. */
    struct spec_rule rule[SPEC_RULES_MAX];
};

/* Parses a specification. Returns 0, or -EINVAL with one sentence in `error`. On an error *s is
 * unchanged. */
int spec_parse(struct spec *s, const char *text, char error[COMPRESS_ERROR_MAX]);

/* Writes the canonical text of a specification. Returns false if the text needs more than
 * COMPRESS_SPEC_MAX bytes with its NUL. spec_parse() rejects such specifications. */
bool spec_print(const struct spec *s, char canonical[COMPRESS_SPEC_MAX]);

/* Replaces each CODEC_UNSET argument of a stage (one codec with its arguments) by its default and
 * checks the result. Returns false on an error, with the reason in why[0..n). */
bool spec_settle(struct codec_stage *stage, char *why, size_t n);

/* Writes the syntax of a codec's parameters and options, for example
 * "qsgd:bits:bucket:norm,round=near|sr". */
void spec_form(const struct codec *codec, char form[COMPRESS_SPEC_MAX]);

/* Returns true if the rule applies to this segment (tensor of the model). */
bool spec_matches(const struct spec_rule *r, const struct segment *segment);

#endif
