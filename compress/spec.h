/* compress/spec.h -- the text form of a compressor (the argument of `--compress`).
 *
 *   spec   := rule { ";" rule }            example: topk:0.01;bias=fp16;<256=none
 *   rule   := [ match "=" ] chain { "," option }
 *   match  := "default"                    all segments that no other rule matches
 *           | "<" N                        segments of fewer than N elements
 *           | "bias"                       segments whose name ends in .bias
 *           | "conv"                       segments with four dimensions
 *           | glob                         segment names, for example conv1.*
 *   chain  := stage { "+" stage }          a selector, a values codec, both, or a body codec
 *   stage  := name { ":" value } [ "/" positions ]
 *   option := name "=" value               an option of one of the stages
 *           | "scope=" ( model | layer | block:N )
 *
 * A segment belongs to the first rule that matches it, or to the default rule if none matches. A
 * rule without a match is the default rule. `scope` says how the segments of a rule are cut into
 * units:
 *
 *   model     all segments of the rule are one vector
 *   layer     each segment is a unit
 *   block:N   that one vector is cut into blocks of N elements
 *
 * The parser is strict: no spaces, no empty parts, no part given twice. The canonical text has the
 * default rule first, contains every positional value, and omits options that equal their default.
 * Numbers have one format: integers in decimal digits; decimals without exponent or trailing zeros,
 * with at most nine places.
 */
#ifndef COMPRESS_SPEC_H
#define COMPRESS_SPEC_H

#include "compress/codec.h"
#include "compress/coding/positions.h"
#include "compress/types.h"

#include "nn/math/vec.h"

enum {
    SPEC_RULES_MAX = 8,
    SPEC_GLOB_MAX = 48 /* Size of a name pattern in bytes, including the final NUL. */
};

enum spec_match { SPEC_DEFAULT, SPEC_SMALLER, SPEC_BIAS, SPEC_CONV, SPEC_GLOB };

enum spec_scope { SPEC_MODEL, SPEC_LAYER, SPEC_BLOCK };

struct spec_rule
{
    enum spec_match match;
    int64_t below; /* For SPEC_SMALLER: the rule matches segments of fewer elements than this. */
    char glob[SPEC_GLOB_MAX]; /* For SPEC_GLOB: pattern of the segment names. */
    enum spec_scope scope;
    int64_t block; /* For SPEC_BLOCK: number of elements in a unit. */
    /* Selector of the rule. Without a selector, `selector.codec` is NULL. */
    struct codec_stage selector;
    /* Values codec of the rule. `coder.codec` is NULL for a rule with a body codec. */
    struct codec_stage coder;
    /* Body codec of the rule. Without a body codec, `body.codec` is NULL. */
    struct codec_stage body;
    enum positions_how positions;
};

struct spec
{
    size_t n_rules;
    /* The rules: rule[0] is the default rule, the others follow in the order in which they are
     * tried. */
    struct spec_rule rule[SPEC_RULES_MAX];
};

/* Parses a specification. Returns 0, or -EINVAL with one sentence in `error`; *s is then
 * unchanged. */
int spec_parse(struct spec *s, const char *text, char error[COMPRESS_ERROR_MAX]);

/* Writes the canonical text of a specification. Returns false if the text has COMPRESS_SPEC_MAX
 * bytes or more. spec_parse() rejects such specifications. */
bool spec_print(const struct spec *s, char canonical[COMPRESS_SPEC_MAX]);

/* Replaces all CODEC_UNSET arguments of a stage by their defaults and checks the result. Returns
 * false on an error, with the reason in why[0..n). */
bool spec_settle(struct codec_stage *stage, char *why, size_t n);

/* Writes the syntax of a codec's parameters and options, for example
 * "qsgd:bits:bucket:norm,round=near|sr". */
void spec_form(const struct codec *codec, char form[COMPRESS_SPEC_MAX]);

/* Returns true if the rule matches the segment. */
bool spec_matches(const struct spec_rule *r, const struct segment *segment);

#endif
