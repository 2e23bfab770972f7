/* compress/spec.h -- the text of a compressor.
 *
 *   spec  := rule { ";" rule }          topk:0.01;bias=fp16;<256=none
 *   rule  := [ match "=" ] chain { "," option }
 *   match := "default" | "<" N          segments of fewer than N elements
 *          | "bias" | "conv" | glob     names in .bias; four dimensions; conv1.*
 *   chain := stage { "+" stage }        a selector, a coder, both, or a body
 *   stage := name { ":" value } [ "/" positions ]
 *   option := name "=" value            of whichever stage has it, or
 *             "scope=" ( model | layer | block:N )
 *
 * A segment goes to the first rule that matches it, and to the default rule
 * (the one without a match) if none does. `scope` says what is compressed by
 * itself: all segments of the rule as one vector, each by itself, or that
 * vector in blocks of N.
 *
 * Parsing is strict: no spaces, no empty parts, nothing twice. The canonical
 * text has the default rule first, fills in every positional value, leaves out
 * options that say the default, and writes every number in one way (integers
 * plain; decimals with no exponent, no needless zero, at most nine places).
 */
#ifndef COMPRESS_SPEC_H
#define COMPRESS_SPEC_H

#include "compress/codec.h"
#include "compress/coding/positions.h"
#include "compress/types.h"

#include "nn/math/vec.h"

enum {
    SPEC_RULES_MAX = 8,
    SPEC_GLOB_MAX = 48 /* Bytes, with the NUL. */
};

enum spec_match { SPEC_DEFAULT, SPEC_SMALLER, SPEC_BIAS, SPEC_CONV, SPEC_GLOB };

enum spec_scope { SPEC_MODEL, SPEC_LAYER, SPEC_BLOCK };

struct spec_rule
{
    enum spec_match match;
    int64_t below;            /* SPEC_SMALLER. */
    char glob[SPEC_GLOB_MAX]; /* SPEC_GLOB. */
    enum spec_scope scope;
    int64_t block;               /* SPEC_BLOCK. */
    struct codec_stage selector; /* codec is NULL if there is none. */
    struct codec_stage coder;    /* Values; codec is NULL for a body. */
    struct codec_stage body;     /* codec is NULL if there is none. */
    enum positions_how positions;
};

struct spec
{
    size_t n_rules;
    struct spec_rule rule[SPEC_RULES_MAX]; /* The default rule is the first. */
};

/* 0, or -EINVAL with one sentence in error. */
int spec_parse(struct spec *s, const char *text, char error[COMPRESS_ERROR_MAX]);

/* False if the canonical text does not fit. spec_parse() accepts only specs
 * that do. */
bool spec_print(const struct spec *s, char canonical[COMPRESS_SPEC_MAX]);

/* Fill in the parameters of a stage that are CODEC_UNSET. On false, a clause
 * that says why is in why[0..n). */
bool spec_settle(struct codec_stage *stage, char *why, size_t n);

/* Positional parameters and options of a codec as a form to fill in:
 * "qsgd:bits:bucket:norm,round=near|sr". */
void spec_form(const struct codec *codec, char form[COMPRESS_SPEC_MAX]);

/* Does the rule's match hold for a segment? */
bool spec_matches(const struct spec_rule *r, const struct segment *segment);

#endif
