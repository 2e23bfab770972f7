/* compress/spec.c -- parser of compressor specifications, such as "topk:0.01+qsgd:4;bias=fp16".
 *
 * The function cut() splits the text from the top down: a specification into rules at ';', a rule
 * into options at ',', a chain of codecs into stages at '+', and a stage into values at ':'. No
 * text is copied. A part of the text is a pointer and a length. The grammar is in spec.h.
 *
 * The text comes from a user or from another peer. Therefore every number has a limit, and error
 * messages quote only the first SHOWN_MAX bytes of a part.
 */
#include "compress/spec.h"

#include "nn/math/spelling.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Largest number of decimal places of a number: decimal numbers are stored in billionths. */
    DECIMAL_PLACES = 9,
    /* Largest number of digits before the decimal point. With nine decimal places, such a number in
     * billionths stays below 2^63. */
    DIGITS_MAX = 9,
    /* Largest number of bytes that an error message quotes from the specification. */
    SHOWN_MAX = 40
};

/* A piece of the specification that is being parsed. It does not end with a NUL. */
struct part
{
    const char *at;
    size_t len;
};

/* Returns the number of bytes of the text to print, as the precision argument of "%.*s". */
static int shown(struct part p)
{
    return p.len < SHOWN_MAX ? (int)p.len : SHOWN_MAX;
}

/* Writes an error sentence for the user. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static int refuse_spec(char error[COMPRESS_ERROR_MAX],
                                                             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, COMPRESS_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

/* Returns the text of *rest up to the first character in `ends` (or all of it), and advances *rest
 * to that character. */
static struct part cut(struct part *rest, const char *ends)
{
    size_t n = 0;
    while (n < rest->len && strchr(ends, rest->at[n]) == NULL)
        n++;
    struct part p = {rest->at, n};
    rest->at += n;
    rest->len -= n;
    return p;
}

/* If *rest begins with c, advances *rest past it and returns true. */
static bool skip(struct part *rest, char c)
{
    if (rest->len == 0 || rest->at[0] != c)
        return false;
    rest->at++;
    rest->len--;
    return true;
}

/* Returns true if the part of the specification equals the word. */
static bool part_is(struct part p, const char *word)
{
    return p.len == strlen(word) && memcmp(p.at, word, p.len) == 0;
}

/* Reads a decimal number with at most `places` digits after the point. Stores it as an integer in
 * units of 10^-places. If `places` is 0, no point is allowed. No float is used, so a canonical text
 * means exactly the same number on every machine. */
static bool read_number(struct part p, int places, int64_t *value)
{
    int64_t sum = 0;
    /* Number of digits read after the decimal point, or -1 while the point has not been read. */
    int after = -1;
    size_t digits = 0; /* Number of digits read before the decimal point. */
    for (size_t i = 0; i < p.len; i++) {
        char c = p.at[i];
        if (c == '.' && after < 0 && places > 0 && i > 0) {
            after = 0;
            continue;
        }
        if (c < '0' || c > '9' || after == places)
            return false;
        digits += after < 0;
        if (digits > DIGITS_MAX)
            return false;
        sum = 10 * sum + (c - '0');
        after += after >= 0;
    }
    if (digits == 0 || after == 0)
        return false;
    /* Decimal places that were not written count as zeros. */
    for (after = after < 0 ? 0 : after; after < places; after++)
        sum *= 10;
    *value = sum;
    return true;
}

/* Sets *value to the index of the word `p` in a list of words. Returns false if the list does not
 * contain the word. */
static bool read_choice(struct part p, const char *const *choices, int64_t *value)
{
    for (*value = 0; choices[*value] != NULL; (*value)++)
        if (part_is(p, choices[*value]))
            return true;
    return false;
}

/* Reads the value of a parameter: a word, a decimal number or an integer, as param->kind says.
 * Returns false if the value is malformed or out of range. */
static bool read_value(const struct codec_param *param, struct part p, int64_t *value)
{
    switch (param->kind) {
    case CODEC_CHOICE:
        return read_choice(p, param->choices, value);
    case CODEC_DECIMAL:
        return read_number(p, DECIMAL_PLACES, value) && *value >= param->low
               && *value <= param->high;
    case CODEC_INTEGER:
        return read_number(p, 0, value) && *value >= param->low && *value <= param->high
               && *value % param->step == 0;
    }
    return false;
}

/* Returns the codec with this name, or NULL. */
static const struct codec *codec_named(struct part name)
{
    for (size_t i = 0; codec_all[i] != NULL; i++)
        if (part_is(name, codec_all[i]->name))
            return codec_all[i];
    return NULL;
}

static const char *name_at(size_t i)
{
    return codec_all[i] != NULL ? codec_all[i]->name : NULL;
}

static bool is_valid(const char *spec)
{
    char error[COMPRESS_ERROR_MAX];
    struct spec s;
    return spec_parse(&s, spec, error) == 0;
}

/* Writes the error for an unknown codec. The message lists as many codec names as fit, and suggests
 * a specification with a similar spelling. */
static int unknown_codec(struct part name, struct part text, char error[COMPRESS_ERROR_MAX])
{
    static const struct spelling_specs specs = {name_at, is_valid};
    char names[COMPRESS_ERROR_MAX] = "", question[SPELLING_QUESTION_MAX], found[SHOWN_MAX + 1];
    size_t len = 0;
    for (size_t i = 0; codec_all[i] != NULL && len < sizeof names; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? ", " : "",
                                codec_all[i]->name);
    snprintf(found, sizeof found, "%.*s", shown(text), text.at);
    return refuse_spec(error, "%.*s: unknown compressor, expected one of %s%s", shown(name),
                       name.at, names, spelling_spec(&specs, found, question));
}

/* Returns parameter i of a codec, or NULL if i is past the last one. Positional parameters come
 * before options in every codec. */
static const struct codec_param *param_at(const struct codec *codec, size_t i)
{
    const struct codec_param *p = codec->params;
    return p != NULL && p[i].name != NULL ? &p[i] : NULL;
}

/* Parses a stage such as "topk:0.01". Arguments that are not given stay CODEC_UNSET until all
 * options are parsed, because some defaults depend on other arguments. */
static int parse_stage(struct codec_stage *stage, struct part text, char error[COMPRESS_ERROR_MAX])
{
    struct part rest = text;
    struct part name = cut(&rest, ":");
    stage->codec = codec_named(name);
    if (stage->codec == NULL)
        return unknown_codec(name, text, error);
    for (size_t i = 0; i < CODEC_ARGS_MAX; i++)
        stage->arg[i] = CODEC_UNSET;
    for (size_t i = 0; skip(&rest, ':'); i++) {
        struct part value = cut(&rest, ":");
        const struct codec_param *param = param_at(stage->codec, i);
        if (param == NULL || param->option)
            return refuse_spec(error, "%.*s: %s takes at most %zu values", shown(text), text.at,
                               stage->codec->name, i);
        if (!read_value(param, value, &stage->arg[i]))
            return refuse_spec(error, "%.*s: %s must be %s, found %.*s", shown(text), text.at,
                               param->name, param->wants, shown(value), value.at);
    }
    return 0;
}

/* Returns the option `name` of the stage and sets *place to its index in the arguments. Returns
 * NULL if the stage has no such option. */
static const struct codec_param *option_of(const struct codec_stage *stage, struct part name,
                                           size_t *place)
{
    if (stage->codec == NULL)
        return NULL;
    const struct codec_param *p;
    for (*place = 0; (p = param_at(stage->codec, *place)) != NULL; ++*place)
        if (p->option && part_is(name, p->name))
            return p;
    return NULL;
}

/* Rule that is being parsed, and state of the parser. */
struct parser
{
    struct spec_rule *rule;
    struct part text; /* The text of the whole rule. Error messages quote it. */
    bool scoped;      /* True: the rule has a "scope=" option, which has been parsed. */
    char *error;
};

/* Parses the value of "scope=". This option belongs to the rule, not to a codec. */
static int parse_scope(struct parser *p, struct part text, struct part value)
{
    static const char *const scopes[] = {"model", "layer", NULL};
    int64_t scope, block;
    if (p->scoped)
        return refuse_spec(p->error, "%.*s: scope is given twice", shown(text), text.at);
    p->scoped = true;
    if (read_choice(value, scopes, &scope)) {
        p->rule->scope = scope == 0 ? SPEC_MODEL : SPEC_LAYER;
        return 0;
    }
    struct part rest = value;
    if (part_is(cut(&rest, ":"), "block") && skip(&rest, ':') && read_number(rest, 0, &block)
        && block >= 1) {
        p->rule->scope = SPEC_BLOCK;
        p->rule->block = block;
        return 0;
    }
    return refuse_spec(p->error,
                       "%.*s: scope must be model, layer or block:N, "
                       "found %.*s",
                       shown(text), text.at, shown(value), value.at);
}

/* Parses an option "name=value". If several stages have an option of this name, the option goes to
 * the first stage that accepts the value and does not have the option yet. Thus "topk+qsgd,..."
 * needs no syntax to name the stage. */
static int parse_option(struct parser *p, struct part text)
{
    struct part value = text;
    struct part name = cut(&value, "=");
    if (!skip(&value, '='))
        return refuse_spec(p->error, "%.*s: an option must be name=value", shown(text), text.at);
    if (part_is(name, "scope"))
        return parse_scope(p, text, value);
    /* The option is tried with each stage (codec of the rule), in the order in which the stages are
     * written. */
    struct codec_stage *stages[] = {&p->rule->selector, &p->rule->coder, &p->rule->body};
    /* If several stages (codecs) have an option `name`, the option of the last one, for the error
     * message. NULL: no stage has such an option. */
    const struct codec_param *known = NULL;
    bool twice = false;
    for (size_t i = 0; i < 3; i++) {
        size_t place;
        const struct codec_param *param = option_of(stages[i], name, &place);
        if (param == NULL)
            continue;
        known = param;
        int64_t read;
        twice = stages[i]->arg[place] != CODEC_UNSET;
        if (twice || !read_value(param, value, &read))
            continue;
        stages[i]->arg[place] = read;
        return 0;
    }
    if (known == NULL)
        return refuse_spec(p->error, "%.*s: unknown option %.*s", shown(text), text.at, shown(name),
                           name.at);
    if (twice)
        return refuse_spec(p->error, "%.*s: %s is given twice", shown(text), text.at, known->name);
    return refuse_spec(p->error, "%.*s: %s must be %s, found %.*s", shown(text), text.at,
                       known->name, known->wants, shown(value), value.at);
}

/* Parses the coding of positions after a selector, such as "ef" in "topk:0.01/ef". */
static int parse_positions(struct parser *p, const struct codec_stage *stage, struct part word)
{
    int64_t how;
    const struct codec_selector *f = stage->codec->selector;
    if (f == NULL || f->places != NULL)
        return refuse_spec(p->error, "%.*s: nothing may follow %s, found /%.*s", shown(p->text),
                           p->text.at, stage->codec->name, shown(word), word.at);
    if (!read_choice(word, positions_names, &how))
        return refuse_spec(p->error,
                           "%.*s: positions must be auto, rice, ef or "
                           "bitmap, found %.*s",
                           shown(p->text), p->text.at, shown(word), word.at);
    p->rule->positions = (enum positions_how)how;
    return 0;
}

/* Stores a parsed stage (a codec with its arguments) in the rule. A rule may have a selector, a
 * values codec, a selector followed by a values codec, or a body codec alone. */
static int place_stage(struct parser *p, const struct codec_stage *stage, struct part text)
{
    struct spec_rule *r = p->rule;
    const struct codec *last = r->coder.codec != NULL ? r->coder.codec : r->body.codec;
    if (last != NULL)
        return refuse_spec(p->error, "%.*s: nothing may follow %s, found +%.*s", shown(p->text),
                           p->text.at, last->name, shown(text), text.at);
    if (stage->codec->values != NULL)
        r->coder = *stage;
    else if (r->selector.codec != NULL)
        return refuse_spec(p->error, "%.*s: only a values codec may follow %s, found %.*s",
                           shown(p->text), p->text.at, r->selector.codec->name, shown(text),
                           text.at);
    else if (stage->codec->body != NULL)
        r->body = *stage;
    else
        r->selector = *stage;
    return 0;
}

/* Parses the stages of a rule: the codecs joined by '+', such as "topk:0.01/ef+qsgd:4". A selector
 * alone gets its default values codec. */
static int parse_chain(struct parser *p, struct part chain)
{
    do {
        struct codec_stage stage;
        struct part text = cut(&chain, "+");
        struct part word = text;
        struct part head = cut(&word, "/");
        int err = parse_stage(&stage, head, p->error);
        if (err == 0)
            err = place_stage(p, &stage, text);
        if (err == 0 && skip(&word, '/'))
            err = parse_positions(p, &stage, word);
        if (err != 0)
            return err;
    } while (skip(&chain, '+'));
    struct spec_rule *r = p->rule;
    if (r->coder.codec != NULL || r->body.codec != NULL)
        return 0;
    /* The description of the selector names its default values codec. NULL means "none" (plain
     * floats). */
    const char *coder = r->selector.codec->selector->coder;
    coder = coder != NULL ? coder : "none";
    struct part preset = {coder, strlen(coder)};
    return parse_stage(&r->coder, preset, p->error);
}

/* Fills in the defaults of a stage. The parser calls this function to complete the arguments.
 * spec_print() calls it to find out which arguments equal their defaults. */
bool spec_settle(struct codec_stage *stage, char *why, size_t n)
{
    const struct codec_param *param;
    for (size_t i = 0; (param = param_at(stage->codec, i)) != NULL; i++) {
        if (stage->arg[i] != CODEC_UNSET)
            continue;
        stage->arg[i] = param->preset;
        if (param->preset == CODEC_UNSET && !param->settled) {
            snprintf(why, n, "%s is missing, it must be %s", param->name, param->wants);
            return false;
        }
    }
    return stage->codec->settle == NULL || stage->codec->settle(stage->arg, why, n);
}

/* Fills in the defaults of a stage (a codec with its arguments). Checks that the arguments fit
 * together, such as `levels` and `bits` of qsgd. */
static int settle_stage(struct parser *p, struct codec_stage *stage)
{
    char why[COMPRESS_ERROR_MAX];
    if (stage->codec == NULL || spec_settle(stage, why, sizeof why))
        return 0;
    return refuse_spec(p->error, "%.*s: %.*s", shown(p->text), p->text.at,
                       COMPRESS_ERROR_MAX - SHOWN_MAX - 4, why);
}

/* Returns true if the part is a valid pattern of segment names: letters, digits, '_', '.', '-' and
 * the wildcards '*' and '?'. A pattern with ';' or ',' would be ambiguous. */
static bool is_glob(struct part p)
{
    static const char extra[] = "_.-*?";
    for (size_t i = 0; i < p.len; i++) {
        char c = p.at[i];
        bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                    || strchr(extra, c) != NULL;
        if (c == '\0' || !name)
            return false;
    }
    return p.len > 0 && p.len < SPEC_GLOB_MAX;
}

/* Parses the match of a rule: the text before "=" that says to which tensors the rule applies. */
static int parse_match(struct parser *p, struct part match)
{
    struct spec_rule *r = p->rule;
    struct part number = match;
    if (skip(&number, '<')) {
        r->match = SPEC_SMALLER;
        if (read_number(number, 0, &r->below) && r->below >= 1)
            return 0;
    } else if (part_is(match, "default")) {
        r->match = SPEC_DEFAULT;
        return 0;
    } else if (part_is(match, "bias")) {
        r->match = SPEC_BIAS;
        return 0;
    } else if (part_is(match, "conv")) {
        r->match = SPEC_CONV;
        return 0;
    } else if (is_glob(match)) {
        r->match = SPEC_GLOB;
        memcpy(r->glob, match.at, match.len);
        return 0;
    }
    return refuse_spec(p->error,
                       "%.*s: a rule must be for default, bias, conv, "
                       "<N or a pattern of names, found %.*s",
                       shown(p->text), p->text.at, shown(match), match.at);
}

/* A matrix codec always encodes single tensors. If the user writes another scope than "layer" for
 * it, the rule is rejected, because ignoring the scope would mislead the user. */
static int check_scope(struct parser *p)
{
    const struct spec_rule *r = p->rule;
    if (r->body.codec == NULL || !r->body.codec->body->by_tensor)
        return 0;
    /* "scope=layer" is allowed for a matrix codec, because it has no other effect than the
     * default. */
    bool other = p->scoped && r->scope != SPEC_LAYER;
    p->rule->scope = SPEC_LAYER;
    if (!other)
        return 0;
    return refuse_spec(p->error,
                       "%.*s: scope must be layer, because %s encodes each tensor by itself",
                       shown(p->text), p->text.at, r->body.codec->name);
}

/* Parses a rule such as "bias=fp16,scope=layer". An "=" before the first "," ends the match of the
 * rule. Any later "=" belongs to an option. */
static int parse_rule(struct spec_rule *rule, struct part text, char *error)
{
    struct parser p = {.rule = rule, .text = text, .error = error};
    struct part rest = text;
    struct part behind = text;
    struct part match = cut(&behind, "=,");
    int err = 0;
    if (text.len == 0)
        return refuse_spec(error, "a rule is empty");
    if (skip(&behind, '=')) {
        err = parse_match(&p, match);
        rest = behind;
    }
    if (err == 0)
        err = parse_chain(&p, cut(&rest, ","));
    while (err == 0 && skip(&rest, ','))
        err = parse_option(&p, cut(&rest, ","));
    if (err == 0)
        err = check_scope(&p);
    if (err == 0)
        err = settle_stage(&p, &rule->selector);
    if (err == 0)
        err = settle_stage(&p, &rule->coder);
    return err == 0 ? settle_stage(&p, &rule->body) : err;
}

/* Moves the default rule to the front. Exactly one default rule is required. The other rules keep
 * their order, which is the order in which they are tried. */
static int order_rules(struct spec *s, const char *text, char *error)
{
    size_t at = s->n_rules;
    for (size_t i = 0; i < s->n_rules; i++) {
        if (s->rule[i].match != SPEC_DEFAULT)
            continue;
        if (at != s->n_rules)
            return refuse_spec(error, "there are two default rules");
        at = i;
    }
    if (at == s->n_rules)
        return refuse_spec(
            error, "found no default rule, expected one at the start, such as none;%.80s", text);
    struct spec_rule first = s->rule[at];
    memmove(&s->rule[1], &s->rule[0], at * sizeof first);
    s->rule[0] = first;
    return 0;
}

/* The output *s is written only if the whole text is valid. */
int spec_parse(struct spec *s, const char *text, char error[COMPRESS_ERROR_MAX])
{
    struct part rest = {text, strlen(text)};
    struct spec out = {0};
    char canonical[COMPRESS_SPEC_MAX];
    if (rest.len == 0)
        return refuse_spec(error, "the compressor is empty");
    do {
        if (out.n_rules == SPEC_RULES_MAX)
            return refuse_spec(error, "there are more than %d rules", SPEC_RULES_MAX);
        struct part rule = cut(&rest, ";");
        int err = parse_rule(&out.rule[out.n_rules++], rule, error);
        if (err != 0)
            return err;
    } while (skip(&rest, ';'));
    int err = order_rules(&out, text, error);
    if (err == 0 && !spec_print(&out, canonical))
        err = refuse_spec(error, "with all its defaults, the compressor has more than %d bytes",
                          COMPRESS_SPEC_MAX - 1);
    if (err == 0)
        *s = out;
    return err;
}

/* ---- Deciding which segments a rule matches ---- */

/* Returns true if the name matches the pattern: '*' stands for any number of characters, '?' for
 * one character. After a mismatch, only the last '*' has to take one more character. Therefore no
 * recursion is needed, and the cost is O(length^2). */
static bool glob(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool spec_matches(const struct spec_rule *r, const struct segment *segment)
{
    switch (r->match) {
    case SPEC_DEFAULT:
        return true;
    case SPEC_SMALLER:
        return segment->n < (size_t)r->below;
    case SPEC_BIAS:
        return glob("*.bias", segment->name);
    case SPEC_CONV:
        return segment->n_dims == 4;
    case SPEC_GLOB:
        return glob(r->glob, segment->name);
    }
    return false;
}
