#include "compress/spec.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    DECIMAL_PLACES = 9,
    DIGITS_MAX = 9,  /* Before the point: with the places below 2^63. */
    SHOWN_MAX = 40   /* Bytes of foreign text repeated in an error. */
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

__attribute__((format(printf, 2, 3))) static int
refuse(char error[COMPRESS_ERROR_MAX], const char *format, ...)
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
    int after = -1; /* Digits behind the point; -1 before it. */
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

static bool read_value(const struct codec_param *param, struct part p,
                       int64_t *value)
{
    switch (param->kind) {
    case CODEC_WORD:
        return read_word(p, param->words, value);
    case CODEC_DECIMAL:
        return read_number(p, DECIMAL_PLACES, value) &&
               *value >= param->low && *value <= param->high;
    case CODEC_INTEGER:
        return read_number(p, 0, value) && *value >= param->low &&
               *value <= param->high && *value % param->step == 0;
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
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s",
                                i > 0 ? ", " : "", codec_all[i]->name);
    return refuse(error, "%.*s: unknown compressor, expected one of %s",
                  shown(name), name.at, names);
}

/* Positional parameters come first in the table. */
static const struct codec_param *param_at(const struct codec *codec, size_t i)
{
    const struct codec_param *p = codec->params;
    return p != NULL && p[i].name != NULL ? &p[i] : NULL;
}

/* "topk:0.01" to a stage; options are left unset. */
static int parse_stage(struct codec_stage *stage, struct part text,
                       char error[COMPRESS_ERROR_MAX])
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
            return refuse(error, "%.*s: %s takes %zu values at most",
                          shown(text), text.at, stage->codec->name, i);
        if (!read_value(param, value, &stage->arg[i]))
            return refuse(error, "%.*s: %s must be %s, found %.*s",
                          shown(text), text.at, param->name, param->wants,
                          shown(value), value.at);
    }
    return 0;
}

/* The option's place in the stage, or NULL if the stage has none so named. */
static const struct codec_param *option_of(const struct codec_stage *stage,
                                           struct part name, size_t *place)
{
    if (stage->codec == NULL)
        return NULL;
    const struct codec_param *p;
    for (*place = 0; (p = param_at(stage->codec, *place)) != NULL; ++*place)
        if (p->option && same(name, p->name))
            return p;
    return NULL;
}

static int parse_option(struct spec *s, struct part text,
                        char error[COMPRESS_ERROR_MAX])
{
    struct part value = text;
    struct part name = cut(&value, "=");
    if (!skip(&value, '='))
        return refuse(error, "%.*s: an option must be name=value",
                      shown(text), text.at);
    size_t place;
    struct codec_stage *stage = &s->selector;
    const struct codec_param *param = option_of(stage, name, &place);
    if (param == NULL) {
        stage = &s->coder;
        param = option_of(stage, name, &place);
    }
    if (param == NULL)
        return refuse(error, "%.*s: %s has no option %.*s", shown(text),
                      text.at, s->coder.codec->name, shown(name), name.at);
    if (stage->arg[place] != CODEC_UNSET)
        return refuse(error, "%.*s: %s is given twice", shown(text), text.at,
                      param->name);
    if (!read_value(param, value, &stage->arg[place]))
        return refuse(error, "%.*s: %s must be %s, found %.*s", shown(text),
                      text.at, param->name, param->wants, shown(value),
                      value.at);
    return 0;
}

/* Put the stages where they belong: at most one selector, first. */
static int parse_chain(struct spec *s, struct part chain,
                       char error[COMPRESS_ERROR_MAX])
{
    struct part whole = chain;
    do {
        struct codec_stage stage;
        struct part text = cut(&chain, "+");
        int err = parse_stage(&stage, text, error);
        if (err != 0)
            return err;
        if (s->coder.codec != NULL)
            return refuse(error, "%.*s: nothing may follow %s, found +%.*s",
                          shown(whole), whole.at, s->coder.codec->name,
                          shown(text), text.at);
        if (stage.codec->values != NULL)
            s->coder = stage;
        else if (s->selector.codec == NULL)
            s->selector = stage;
        else
            return refuse(error, "%.*s: only values may follow %s, found %.*s",
                          shown(whole), whole.at, s->selector.codec->name,
                          shown(text), text.at);
    } while (skip(&chain, '+'));
    if (s->coder.codec == NULL)
        s->coder = (struct codec_stage){.codec = &codec_none};
    return 0;
}

/* Fill the defaults of a stage and check what hangs together. */
static int settle(struct codec_stage *stage, struct part text,
                  char error[COMPRESS_ERROR_MAX])
{
    const struct codec_param *param;
    if (stage->codec == NULL)
        return 0;
    for (size_t i = 0; (param = param_at(stage->codec, i)) != NULL; i++) {
        if (stage->arg[i] != CODEC_UNSET)
            continue;
        stage->arg[i] = param->preset;
        if (param->preset == CODEC_UNSET && !param->settled)
            return refuse(error, "%.*s: %s is missing, it must be %s",
                          shown(text), text.at, param->name, param->wants);
    }
    char why[COMPRESS_ERROR_MAX];
    if (stage->codec->settle != NULL &&
        !stage->codec->settle(stage->arg, why, sizeof why))
        return refuse(error, "%.*s: %.*s", shown(text), text.at,
                      COMPRESS_ERROR_MAX - SHOWN_MAX - 4, why);
    return 0;
}

int spec_parse(struct spec *s, const char *text,
               char error[COMPRESS_ERROR_MAX])
{
    struct part rest = {text, strlen(text)};
    struct part whole = rest;
    struct spec out = {0};
    if (rest.len == 0)
        return refuse(error, "the compressor is empty");
    int err = parse_chain(&out, cut(&rest, ","), error);
    while (err == 0 && skip(&rest, ','))
        err = parse_option(&out, cut(&rest, ","), error);
    if (err == 0)
        err = settle(&out.selector, whole, error);
    if (err == 0)
        err = settle(&out.coder, whole, error);
    if (err == 0)
        *s = out;
    return err;
}

/* A text under construction. */
struct printer
{
    char *at;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void
print(struct printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->at + p->len, COMPRESS_SPEC_MAX - p->len, format, args);
    va_end(args);
    assert(n >= 0 && p->len + (size_t)n < COMPRESS_SPEC_MAX);
    p->len += (size_t)n;
}

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

static void print_value(struct printer *p, const struct codec_param *param,
                        int64_t value)
{
    switch (param->kind) {
    case CODEC_WORD:
        print(p, "%s", param->words[value]);
        break;
    case CODEC_DECIMAL:
        print_decimal(p, value);
        break;
    case CODEC_INTEGER:
        print(p, "%lld", (long long)value);
        break;
    }
}

/* The stage's positional parameters, or its options. */
static void print_params(struct printer *p, const struct codec_stage *stage,
                         bool options)
{
    const struct codec_param *param;
    if (stage->codec == NULL)
        return;
    for (size_t i = 0; (param = param_at(stage->codec, i)) != NULL; i++) {
        if (param->option != options)
            continue;
        if (options)
            print(p, ",%s=", param->name);
        else
            print(p, ":");
        print_value(p, param, stage->arg[i]);
    }
}

void spec_print(const struct spec *s, char canonical[COMPRESS_SPEC_MAX])
{
    struct printer p = {canonical, 0};
    if (s->selector.codec != NULL) {
        print(&p, "%s", s->selector.codec->name);
        print_params(&p, &s->selector, false);
    }
    if (s->selector.codec == NULL || s->coder.codec != &codec_none) {
        print(&p, "%s%s", p.len > 0 ? "+" : "", s->coder.codec->name);
        print_params(&p, &s->coder, false);
    }
    print_params(&p, &s->selector, true);
    print_params(&p, &s->coder, true);
}
