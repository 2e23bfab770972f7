/* compress/spec_print.c -- writes a parsed compressor specification as canonical text.
 *
 * The run's id is a hash of this text, so two spellings of the same compressor must give the same
 * text. Positional values are always written, and options that equal their default are omitted.
 * Parsing the canonical text gives the same specification again, which tests/unit/compress_spec.c
 * checks.
 */
#include "compress/spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text being written, in a buffer of COMPRESS_SPEC_MAX bytes including the final NUL. */
struct printer
{
    char *at;
    size_t len;
    bool full; /* True: some text did not fit into the buffer. */
};

/* Appends formatted text. If the text does not fit, sets `full` and leaves the length unchanged. */
__attribute__((format(printf, 2, 3))) static void print(struct printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->at + p->len, COMPRESS_SPEC_MAX - p->len, format, args);
    va_end(args);
    if (n < 0 || p->len + (size_t)n >= COMPRESS_SPEC_MAX)
        p->full = true;
    else
        p->len += (size_t)n;
}

/* Writes a decimal number that is stored in billionths, without exponent and trailing zeros, such
 * as 0.01. */
static void print_decimal(struct printer *p, int64_t value)
{
    const int64_t one = 1000000000;
    print(p, "%lld", (long long)(value / one));
    if (value % one == 0)
        return;
    print(p, ".%09lld", (long long)(value % one));
    while (p->at[p->len - 1] == '0')
        p->at[--p->len] = '\0';
}

/* Writes a value so that read_value() in spec.c reads the same value back. */
static void print_value(struct printer *p, const struct codec_param *param, int64_t value)
{
    switch (param->kind) {
    case CODEC_CHOICE:
        print(p, "%s", param->choices[value]);
        break;
    case CODEC_DECIMAL:
        print_decimal(p, value);
        break;
    case CODEC_INTEGER:
        print(p, "%lld", (long long)value);
        break;
    }
}

/* Returns parameter i of a codec, or NULL if i is past the last one. */
static const struct codec_param *param_at(const struct codec *codec, size_t i)
{
    const struct codec_param *p = codec->params;
    return p != NULL && p[i].name != NULL ? &p[i] : NULL;
}

/* Returns true if argument i equals the value that the parser would fill in if the argument were
 * left out. The function asks spec_settle(), which the parser also uses, so printer and parser
 * agree about defaults. */
static bool implied(const struct codec_stage *stage, size_t i)
{
    char why[COMPRESS_ERROR_MAX];
    struct codec_stage without = *stage;
    without.arg[i] = CODEC_UNSET;
    return spec_settle(&without, why, sizeof why) && without.arg[i] == stage->arg[i];
}

/* Writes a stage with all its positional values, such as "qsgd:4:512:max". They are written even if
 * they equal their defaults. A later change of a default therefore cannot change the meaning of an
 * old text. */
static void print_stage(struct printer *p, const struct codec_stage *stage)
{
    const struct codec_param *param;
    print(p, "%s", stage->codec->name);
    for (size_t i = 0; (param = param_at(stage->codec, i)) != NULL; i++) {
        if (param->option)
            continue;
        print(p, ":");
        print_value(p, param, stage->arg[i]);
    }
}

/* Returns true if the stage (a codec with its arguments) has an option `name` that differs from its
 * default, so that it must be written. */
static bool prints(const struct codec_stage *stage, const char *name)
{
    const struct codec_param *param;
    if (stage == NULL || stage->codec == NULL)
        return false;
    for (size_t i = 0; (param = param_at(stage->codec, i)) != NULL; i++)
        if (param->option && strcmp(param->name, name) == 0)
            return !implied(stage, i);
    return false;
}

/* Writes the options of the stage that differ from their defaults. Exception: if the next stage of
 * the rule, `behind`, writes an option of the same name, the option of this stage is written even
 * if it equals its default. Otherwise the parser would give the value to this stage. */
static void print_options(struct printer *p, const struct codec_stage *stage,
                          const struct codec_stage *behind)
{
    const struct codec_param *param;
    if (stage->codec == NULL)
        return;
    for (size_t i = 0; (param = param_at(stage->codec, i)) != NULL; i++) {
        if (!param->option || (implied(stage, i) && !prints(behind, param->name)))
            continue;
        print(p, ",%s=", param->name);
        print_value(p, param, stage->arg[i]);
    }
}

/* Writes the match of a rule, which says to which tensors the rule applies. The default rule has no
 * such text. */
static void print_match(struct printer *p, const struct spec_rule *r)
{
    switch (r->match) {
    case SPEC_DEFAULT:
        break;
    case SPEC_SMALLER:
        print(p, "<%lld=", (long long)r->below);
        break;
    case SPEC_BIAS:
        print(p, "bias=");
        break;
    case SPEC_CONV:
        print(p, "conv=");
        break;
    case SPEC_GLOB:
        print(p, "%s=", r->glob);
        break;
    }
}

/* Writes "scope=" with its value, unless it is the default, "model". For a matrix codec nothing is
 * written, because its scope is always "layer". */
static void print_scope(struct printer *p, const struct spec_rule *r)
{
    bool by_tensor = r->body.codec != NULL && r->body.codec->body->by_tensor;
    if (r->scope == SPEC_LAYER && !by_tensor)
        print(p, ",scope=layer");
    else if (r->scope == SPEC_BLOCK)
        print(p, ",scope=block:%lld", (long long)r->block);
}

/* Returns true if the values codec of the rule is the default of its selector. Compares the
 * canonical texts of the two codecs, because the user may have written the default values
 * explicitly. */
static bool coder_is_default(const struct spec_rule *r)
{
    const char *coder = r->selector.codec->selector->coder;
    struct printer p = {.at = (char[COMPRESS_SPEC_MAX]){0}};
    print_stage(&p, &r->coder);
    print_options(&p, &r->coder, NULL);
    return strcmp(p.at, coder != NULL ? coder : "none") == 0;
}

/* Writes the codecs of a rule. A values codec that the selector would get by default is omitted. */
static void print_chain(struct printer *p, const struct spec_rule *r)
{
    if (r->body.codec != NULL) {
        print_stage(p, &r->body);
        return;
    }
    if (r->selector.codec == NULL) {
        print_stage(p, &r->coder);
        return;
    }
    print_stage(p, &r->selector);
    if (r->positions != POSITIONS_AUTO)
        print(p, "/%s", positions_names[r->positions]);
    if (coder_is_default(r))
        return;
    print(p, "+");
    print_stage(p, &r->coder);
}

/* The options of all codecs of a rule come last, codec by codec. The parser assigns options to
 * codecs in this order. */
static void print_rule(struct printer *p, const struct spec_rule *r)
{
    print_match(p, r);
    print_chain(p, r);
    print_options(p, &r->selector, &r->coder);
    print_options(p, &r->coder, NULL);
    print_options(p, &r->body, NULL);
    print_scope(p, r);
}

/* The default rule is written first, because the parser has moved it to the front. */
bool spec_print(const struct spec *s, char canonical[COMPRESS_SPEC_MAX])
{
    struct printer p = {.at = canonical};
    for (size_t i = 0; i < s->n_rules; i++) {
        if (i > 0)
            print(&p, ";");
        print_rule(&p, &s->rule[i]);
    }
    return !p.full;
}

static void print_choices(struct printer *p, const struct codec_param *param)
{
    for (size_t i = 0; param->choices[i] != NULL; i++)
        print(p, "%s%s", i > 0 ? "|" : "", param->choices[i]);
}

/* Writes the syntax of a codec: its name, its positional parameters and its options. */
void spec_form(const struct codec *codec, char form[COMPRESS_SPEC_MAX])
{
    struct printer p = {.at = form};
    const struct codec_param *param;
    print(&p, "%s", codec->name);
    for (size_t i = 0; (param = param_at(codec, i)) != NULL; i++) {
        print(&p, param->option ? ",%s=" : ":%s", param->name);
        if (!param->option)
            continue;
        if (param->kind == CODEC_CHOICE)
            print_choices(&p, param);
        else
            print(&p, "N");
    }
}
