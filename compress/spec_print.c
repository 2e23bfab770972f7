/* compress/spec_print.c -- prints a parsed spec in its one canonical form.
 *
 * The run's id is the hash of this text, so two spellings of one compressor must
 * print alike: values are filled in, options that say the default are left out,
 * and parsing what was printed gives the same spec (tests/unit/compress_spec.c).
 */
#include "compress/spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text under construction, COMPRESS_SPEC_MAX bytes at most with its NUL. */
struct printer
{
    char *at;
    size_t len;
    bool full; /* Something did not fit. */
};

/* Append to the text. What does not fit is remembered and nothing is written beyond the end. */
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

/* Billionths without an exponent and without needless zeros: 0.01, 1, 0.5. */
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

/* The reverse of read_value() in spec.c. */
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

/* The i-th parameter, or NULL behind the last. */
static const struct codec_param *param_at(const struct codec *codec, size_t i)
{
    const struct codec_param *p = codec->params;
    return p != NULL && p[i].name != NULL ? &p[i] : NULL;
}

/* Would leaving the i-th parameter out give the same stage? The parser's own spec_settle()
 * answers, so that printing and parsing cannot differ over a default. */
static bool implied(const struct codec_stage *stage, size_t i)
{
    char why[COMPRESS_ERROR_MAX];
    struct codec_stage without = *stage;
    without.arg[i] = CODEC_UNSET;
    return spec_settle(&without, why, sizeof why) && without.arg[i] == stage->arg[i];
}

/* A stage with all its positional values, "qsgd:4:512:max": those are never left out, so that a
 * later change of a default cannot change what an old text means. */
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

/* Does the stage print an option of that name? It does not where the option says the default. */
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

/* Print the options that do not say the default. One that does is printed only where the stage
 * `behind` prints its own of the same name, or that value would be taken for this stage's. */
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

/* What segments the rule is for; nothing for the default rule. */
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

/* The scope of a matrix codec goes without saying. */
static void print_scope(struct printer *p, const struct spec_rule *r)
{
    bool by_tensor = r->body.codec != NULL && r->body.codec->body->by_tensor;
    if (r->scope == SPEC_LAYER && !by_tensor)
        print(p, ",scope=layer");
    else if (r->scope == SPEC_BLOCK)
        print(p, ",scope=block:%lld", (long long)r->block);
}

/* Is a selector's coder the one that it has where none is named? Printed texts are compared, as
 * a coder may be named with values that are its defaults. */
static bool coder_is_default(const struct spec_rule *r)
{
    const char *coder = r->selector.codec->selector->coder;
    struct printer p = {.at = (char[COMPRESS_SPEC_MAX]){0}};
    print_stage(&p, &r->coder);
    print_options(&p, &r->coder, NULL);
    return strcmp(p.at, coder != NULL ? coder : "none") == 0;
}

/* The coder is left out where the selector has it anyway. */
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

/* Options of all stages come behind the chain, in the order in which the parser gives them out. */
static void print_rule(struct printer *p, const struct spec_rule *r)
{
    print_match(p, r);
    print_chain(p, r);
    print_options(p, &r->selector, &r->coder);
    print_options(p, &r->coder, NULL);
    print_options(p, &r->body, NULL);
    print_scope(p, r);
}

/* The default rule stands first, where the parser has put it. */
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

/* For the catalogue: what a user may write behind the name. */
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
