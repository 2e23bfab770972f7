#include "compress/spec.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    DECIMAL_PLACES = 9,
    DIGITS_MAX = 9, /* Before the point: with the places below 2^63. */
    SHOWN_MAX = 40  /* Bytes of foreign text repeated in an error. */
};

/* A piece of the text being parsed. */
struct part
{
    const char *at;
    size_t len;
};

static int shown(struct part p)
{
    return p.len < SHOWN_MAX ? (int)p.len : SHOWN_MAX;
}

__attribute__((format(printf, 2, 3))) static int refuse(char error[COMPRESS_ERROR_MAX],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, COMPRESS_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

/* Cut the text before the first of `ends` off *rest, which keeps the end. */
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

/* If *rest begins with c, step over it. */
static bool skip(struct part *rest, char c)
{
    if (rest->len == 0 || rest->at[0] != c)
        return false;
    rest->at++;
    rest->len--;
    return true;
}

static bool same(struct part p, const char *word)
{
    return p.len == strlen(word) && memcmp(p.at, word, p.len) == 0;
}

/* Digits, and where `places` > 0 at most so many more behind a point, to an
 * integer of units of 10^-places. */
static bool read_number(struct part p, int places, int64_t *value)
{
    int64_t sum = 0;
    int after = -1;    /* Digits behind the point; -1 before it. */
    size_t digits = 0; /* Before the point. */
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
    for (after = after < 0 ? 0 : after; after < places; after++)
        sum *= 10;
    *value = sum;
    return true;
}

static bool read_word(struct part p, const char *const *words, int64_t *value)
{
    for (*value = 0; words[*value] != NULL; (*value)++)
        if (same(p, words[*value]))
            return true;
    return false;
}

static bool read_value(const struct codec_param *param, struct part p, int64_t *value)
{
    switch (param->kind) {
    case CODEC_WORD:
        return read_word(p, param->words, value);
    case CODEC_DECIMAL:
        return read_number(p, DECIMAL_PLACES, value) && *value >= param->low
               && *value <= param->high;
    case CODEC_INTEGER:
        return read_number(p, 0, value) && *value >= param->low && *value <= param->high
               && *value % param->step == 0;
    }
    return false;
}

static const struct codec *codec_named(struct part name)
{
    for (size_t i = 0; codec_all[i] != NULL; i++)
        if (same(name, codec_all[i]->name))
            return codec_all[i];
    return NULL;
}

static int unknown_codec(struct part name, char error[COMPRESS_ERROR_MAX])
{
    char names[COMPRESS_ERROR_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; codec_all[i] != NULL && len < sizeof names; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? ", " : "",
                                codec_all[i]->name);
    return refuse(error, "%.*s: unknown compressor, expected one of %s", shown(name), name.at,
                  names);
}

/* Positional parameters come first in the table. */
static const struct codec_param *param_at(const struct codec *codec, size_t i)
{
    const struct codec_param *p = codec->params;
    return p != NULL && p[i].name != NULL ? &p[i] : NULL;
}

/* "topk:0.01" to a stage; options are left unset. */
static int parse_stage(struct codec_stage *stage, struct part text, char error[COMPRESS_ERROR_MAX])
{
    struct part rest = text;
    struct part name = cut(&rest, ":");
    stage->codec = codec_named(name);
    if (stage->codec == NULL)
        return unknown_codec(name, error);
    for (size_t i = 0; i < CODEC_ARGS_MAX; i++)
        stage->arg[i] = CODEC_UNSET;
    for (size_t i = 0; skip(&rest, ':'); i++) {
        struct part value = cut(&rest, ":");
        const struct codec_param *param = param_at(stage->codec, i);
        if (param == NULL || param->option)
            return refuse(error, "%.*s: %s takes %zu values at most", shown(text), text.at,
                          stage->codec->name, i);
        if (!read_value(param, value, &stage->arg[i]))
            return refuse(error, "%.*s: %s must be %s, found %.*s", shown(text), text.at,
                          param->name, param->wants, shown(value), value.at);
    }
    return 0;
}

/* The option's place in the stage, or NULL if the stage has none so named. */
static const struct codec_param *option_of(const struct codec_stage *stage, struct part name,
                                           size_t *place)
{
    if (stage->codec == NULL)
        return NULL;
    const struct codec_param *p;
    for (*place = 0; (p = param_at(stage->codec, *place)) != NULL; ++*place)
        if (p->option && same(name, p->name))
            return p;
    return NULL;
}

/* A rule being parsed. */
struct parser
{
    struct spec_rule *rule;
    struct part text; /* The rule's. */
    bool placed;      /* It says how positions are sent, */
    bool scoped;      /* and its scope. */
    char *error;
};

static int parse_scope(struct parser *p, struct part text, struct part value)
{
    static const char *const words[] = {"model", "layer", NULL};
    int64_t scope, block;
    if (p->scoped)
        return refuse(p->error, "%.*s: scope is given twice", shown(text), text.at);
    p->scoped = true;
    if (read_word(value, words, &scope)) {
        p->rule->scope = scope == 0 ? SPEC_MODEL : SPEC_LAYER;
        return 0;
    }
    struct part rest = value;
    if (same(cut(&rest, ":"), "block") && skip(&rest, ':') && read_number(rest, 0, &block)
        && block >= 1) {
        p->rule->scope = SPEC_BLOCK;
        p->rule->block = block;
        return 0;
    }
    return refuse(p->error,
                  "%.*s: scope must be model, layer or block:N, "
                  "found %.*s",
                  shown(text), text.at, shown(value), value.at);
}

/* A name that two stages have is the first one's that takes the value and does
 * not have one yet. */
static int parse_option(struct parser *p, struct part text)
{
    struct part value = text;
    struct part name = cut(&value, "=");
    if (!skip(&value, '='))
        return refuse(p->error, "%.*s: an option must be name=value", shown(text), text.at);
    if (same(name, "scope"))
        return parse_scope(p, text, value);
    struct codec_stage *stages[] = {&p->rule->selector, &p->rule->coder, &p->rule->body};
    const struct codec_param *known = NULL; /* Of that name, anywhere. */
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
        return refuse(p->error, "%.*s: there is no option %.*s here", shown(text), text.at,
                      shown(name), name.at);
    if (twice)
        return refuse(p->error, "%.*s: %s is given twice", shown(text), text.at, known->name);
    return refuse(p->error, "%.*s: %s must be %s, found %.*s", shown(text), text.at, known->name,
                  known->wants, shown(value), value.at);
}

/* "/ef" behind a selector. */
static int parse_positions(struct parser *p, const struct codec_stage *stage, struct part word)
{
    int64_t how;
    const struct codec_selector *f = stage->codec->selector;
    if (f == NULL || f->places != NULL)
        return refuse(p->error, "%.*s: %s sends no positions", shown(p->text), p->text.at,
                      stage->codec->name);
    if (!read_word(word, positions_words, &how))
        return refuse(p->error,
                      "%.*s: positions must be auto, rice, ef or "
                      "bitmap, found %.*s",
                      shown(p->text), p->text.at, shown(word), word.at);
    p->rule->positions = (enum positions_how)how;
    return 0;
}

/* Put a stage where it belongs: a selector, then values; or a body alone. */
static int place_stage(struct parser *p, const struct codec_stage *stage, struct part text)
{
    struct spec_rule *r = p->rule;
    const struct codec *last = r->coder.codec != NULL ? r->coder.codec : r->body.codec;
    if (last != NULL)
        return refuse(p->error, "%.*s: nothing may follow %s, found +%.*s", shown(p->text),
                      p->text.at, last->name, shown(text), text.at);
    if (stage->codec->values != NULL)
        r->coder = *stage;
    else if (r->selector.codec != NULL)
        return refuse(p->error, "%.*s: only values may follow %s, found %.*s", shown(p->text),
                      p->text.at, r->selector.codec->name, shown(text), text.at);
    else if (stage->codec->body != NULL)
        r->body = *stage;
    else
        r->selector = *stage;
    return 0;
}

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
    const char *coder = r->selector.codec->selector->coder;
    coder = coder != NULL ? coder : "none";
    struct part preset = {coder, strlen(coder)};
    return parse_stage(&r->coder, preset, p->error);
}

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

/* Fill the defaults of a stage and check what hangs together. */
static int settle(struct parser *p, struct codec_stage *stage)
{
    char why[COMPRESS_ERROR_MAX];
    if (stage->codec == NULL || spec_settle(stage, why, sizeof why))
        return 0;
    return refuse(p->error, "%.*s: %.*s", shown(p->text), p->text.at,
                  COMPRESS_ERROR_MAX - SHOWN_MAX - 4, why);
}

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

static int parse_match(struct parser *p, struct part match)
{
    struct spec_rule *r = p->rule;
    struct part number = match;
    if (skip(&number, '<')) {
        r->match = SPEC_SMALLER;
        if (read_number(number, 0, &r->below) && r->below >= 1)
            return 0;
    } else if (same(match, "default")) {
        r->match = SPEC_DEFAULT;
        return 0;
    } else if (same(match, "bias")) {
        r->match = SPEC_BIAS;
        return 0;
    } else if (same(match, "conv")) {
        r->match = SPEC_CONV;
        return 0;
    } else if (is_glob(match)) {
        r->match = SPEC_GLOB;
        memcpy(r->glob, match.at, match.len);
        return 0;
    }
    return refuse(p->error,
                  "%.*s: a rule must be for default, bias, conv, "
                  "<N or a pattern of names, found %.*s",
                  shown(p->text), p->text.at, shown(match), match.at);
}

static int check_scope(struct parser *p)
{
    const struct spec_rule *r = p->rule;
    if (r->body.codec == NULL || !r->body.codec->body->by_tensor)
        return 0;
    bool other = p->scoped && r->scope != SPEC_LAYER;
    p->rule->scope = SPEC_LAYER;
    if (!other)
        return 0;
    return refuse(p->error, "%.*s: %s works on each tensor by itself", shown(p->text), p->text.at,
                  r->body.codec->name);
}

/* "bias=fp16,scope=layer" */
static int parse_rule(struct spec_rule *rule, struct part text, char *error)
{
    struct parser p = {.rule = rule, .text = text, .error = error};
    struct part rest = text;
    struct part behind = text;
    struct part match = cut(&behind, "=,");
    int err = 0;
    if (text.len == 0)
        return refuse(error, "a rule is empty");
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
        err = settle(&p, &rule->selector);
    if (err == 0)
        err = settle(&p, &rule->coder);
    return err == 0 ? settle(&p, &rule->body) : err;
}

/* The default rule comes first; there has to be one, and only one. */
static int order_rules(struct spec *s, char *error)
{
    size_t at = s->n_rules;
    for (size_t i = 0; i < s->n_rules; i++) {
        if (s->rule[i].match != SPEC_DEFAULT)
            continue;
        if (at != s->n_rules)
            return refuse(error, "there are two default rules");
        at = i;
    }
    if (at == s->n_rules)
        return refuse(error, "there is no default rule");
    struct spec_rule first = s->rule[at];
    memmove(&s->rule[1], &s->rule[0], at * sizeof first);
    s->rule[0] = first;
    return 0;
}

int spec_parse(struct spec *s, const char *text, char error[COMPRESS_ERROR_MAX])
{
    struct part rest = {text, strlen(text)};
    struct spec out = {0};
    char canonical[COMPRESS_SPEC_MAX];
    if (rest.len == 0)
        return refuse(error, "the compressor is empty");
    do {
        if (out.n_rules == SPEC_RULES_MAX)
            return refuse(error, "there are more than %d rules", SPEC_RULES_MAX);
        struct part rule = cut(&rest, ";");
        int err = parse_rule(&out.rule[out.n_rules++], rule, error);
        if (err != 0)
            return err;
    } while (skip(&rest, ';'));
    int err = order_rules(&out, error);
    if (err == 0 && !spec_print(&out, canonical))
        err = refuse(error, "the canonical text has more than %d bytes", COMPRESS_SPEC_MAX - 1);
    if (err == 0)
        *s = out;
    return err;
}

/* ---- matching ---- */

/* '*' any run of characters, '?' any one. */
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
