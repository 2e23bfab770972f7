/* nn/data/spec.c -- parses a data spec into KIND, PATH and keys, and explains what is wrong with
 * it.
 *
 *   "csv:/data/a,b.csv,label=class,test=/data/c.csv"
 *    KIND PATH         key   value key  value
 *
 * The copy of the spec is cut in place: a NUL replaces the comma after PATH and after each value,
 * and the fields of struct data_spec point into the copy. A path may contain commas. PATH and the
 * value of test= therefore end only at a comma that is followed by a known key and "=". Any other
 * value ends at a comma that is followed by any word and "=". A mistyped key is then refused by its
 * name and does not become a part of the value before it.
 */
#include "nn/data/spec.h"

#include "nn/data/format.h"
#include "nn/data/quote.h"
#include "nn/math/number.h"
#include "nn/math/spelling.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct
{
    const char *name, *expected;
} keys[DATA_KEYS] = {
    [DATA_KEY_TEST] = {"test", "a PATH"},
    [DATA_KEY_HOLDOUT] = {"holdout", "a share above 0 and below 1"},
    [DATA_KEY_VALIDATE] = {"validate", "a share above 0 and below 1"},
    [DATA_KEY_LABEL] = {"label", "a column's name or number"},
    [DATA_KEY_HEADER] = {"header", "yes, no or auto"},
    [DATA_KEY_DIVIDE] = {"divide", "a number above 0, at most 1e30"},
    [DATA_KEY_FEATURES] = {"features", "a whole number from 1 to 16777216"},
    [DATA_KEY_CONTEXT] = {"context", "a whole number from 1 to 4096"},
    [DATA_KEY_SCALE] = {"scale", "standard (only csv), max or none"},
};
static_assert(DATA_FEATURES_MAX == 16777216 && DATA_CONTEXT_MAX == 4096, "as said above");

/* ---- Options of a spec ---- */

/* Returns whether a character may be part of a key. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

/* If the text at p begins with "WORD=", returns the length of WORD, else 0. */
static size_t key_length(const char *p)
{
    size_t n = 0;
    while (is_letter(p[n]))
        n++;
    return p[n] == '=' ? n : 0;
}

/* Returns the key with the name p[0..n). DATA_KEYS: no key has this name. */
static enum data_key find_key(const char *p, size_t n)
{
    enum data_key k = 0;
    while (k < DATA_KEYS && (strlen(keys[k].name) != n || memcmp(keys[k].name, p, n) != 0))
        k++;
    return k;
}

/* Ends a value: puts a NUL in place of the comma before the next option. Returns the next option,
 * or NULL. `any_word`: any word before "=" begins an option. Otherwise only a known key does. */
static char *cut_value(char *p, bool any_word)
{
    for (; (p = strchr(p, ',')) != NULL; p++) {
        size_t n = key_length(p + 1);
        if (n == 0 || (!any_word && find_key(p + 1, n) == DATA_KEYS))
            continue;
        *p = '\0';
        return p + 1;
    }
    return NULL;
}

/* A mistyped key after a PATH is read as a part of the PATH, so the file is missing.
 * data_spec_stray() finds the mistyped word, and the error message asks whether a key was meant. */
bool data_spec_stray(const char *path, char key[32])
{
    const char *p = strchr(path, ',');
    while (p != NULL && key_length(p + 1) == 0)
        p = strchr(p + 1, ',');
    if (p != NULL)
        snprintf(key, 32, "%.*s", (int)(key_length(p + 1) < 31 ? key_length(p + 1) : 31), p + 1);
    return p != NULL;
}

/* Writes the list of keys for an error message such as "expected test or holdout or label with
 * csv". */
void data_spec_keys(const struct data_format *f, char list[96])
{
    size_t at = 0;
    snprintf(list, 96, "none");
    for (enum data_key k = 0; k < DATA_KEYS; k++)
        if (f == NULL || f->keys >> k & 1)
            at += (size_t)snprintf(list + at, 96 - at, "%s%s", at ? " or " : "", keys[k].name);
}

const char *data_spec_question(const struct data_format *f, const char *key,
                               char out[DATA_QUESTION_MAX])
{
    struct spelling near = {.found = key};
    for (enum data_key k = 0; k < DATA_KEYS; k++)
        if (f == NULL || f->keys >> k & 1)
            spelling_try(&near, keys[k].name);
    return spelling_question(&near, out, DATA_QUESTION_MAX);
}

/* Parses a number v with low < v < high. The bounds are excluded: a share of 0 or 1 would leave the
 * training set or the held-out set empty. */
static bool number_between(const char *p, double low, double high, double *v)
{
    return number_is((const uint8_t *)p, strlen(p), v) && *v > low && *v < high;
}

/* Stores the value of one key. Returns false if the value is not valid for this key. */
static bool store_value(struct data_spec *s, enum data_key key, const char *value)
{
    const char *end = NULL;
    switch (key) {
    case DATA_KEY_TEST:
        s->test = value;
        return *value != '\0';
    case DATA_KEY_LABEL:
        s->label = value;
        return *value != '\0';
    case DATA_KEY_HEADER:
        s->header = value;
        return strcmp(value, "yes") == 0 || strcmp(value, "no") == 0 || strcmp(value, "auto") == 0;
    case DATA_KEY_HOLDOUT:
        return number_between(value, 0, 1, &s->holdout);
    case DATA_KEY_VALIDATE:
        return number_between(value, 0, 1, &s->validate);
    case DATA_KEY_DIVIDE:
        return number_between(value, 0, 1.0000001e30, &s->divide);
    case DATA_KEY_FEATURES:
        end = number_count(value, DATA_FEATURES_MAX, &s->features);
        break;
    case DATA_KEY_CONTEXT:
        end = number_count(value, DATA_CONTEXT_MAX, &s->context);
        break;
    case DATA_KEY_SCALE:
        while (++s->scale < COLUMNS_SCALES && strcmp(value, columns_scale_name[s->scale]) != 0)
            ;
        return s->scale < COLUMNS_SCALES
               && (s->scale != COLUMNS_SCALE_STANDARD || s->format == NULL
                   || s->format->family->shape.form == DATA_ROWS);
    case DATA_KEYS:
        break;
    }
    return end != NULL && *end == '\0';
}

/* Parses one "key=value". n: length of the key. */
static int parse_option(struct data_spec *s, const char *p, size_t n, char error[DATA_ERROR_MAX])
{
    char list[96], name[32], question[DATA_QUESTION_MAX];
    enum data_key key = find_key(p, n);
    snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), p);
    data_spec_keys(s->format, list);
    if (key == DATA_KEYS || (s->format != NULL && !(s->format->keys >> key & 1)))
        snprintf(error, DATA_ERROR_MAX, "found option %s, expected %s%s%s%s",
                 quote_bytes((const uint8_t *)p, n).text, list, s->format != NULL ? " with " : "",
                 s->format != NULL ? s->format->family->name : "",
                 data_spec_question(s->format, name, question));
    else if (s->given >> key & 1)
        snprintf(error, DATA_ERROR_MAX, "option %s: found twice, expected once", keys[key].name);
    else if (!store_value(s, key, p + n + 1))
        snprintf(error, DATA_ERROR_MAX, "option %s: found %s, expected %s", keys[key].name,
                 quote_string(p + n + 1).text, keys[key].expected);
    else {
        s->given |= UINT32_C(1) << key;
        return 0;
    }
    return -EINVAL;
}

/* Parses all options of a spec in order. If several options are wrong, the error message is about
 * the first. */
static int parse_options(struct data_spec *s, char *rest, char error[DATA_ERROR_MAX])
{
    while (rest != NULL) {
        size_t n = key_length(rest);
        char *next = cut_value(rest + n + 1, find_key(rest, n) != DATA_KEY_TEST);
        int err = parse_option(s, rest, n, error);
        if (err < 0)
            return err;
        rest = next;
    }
    if (s->test != NULL && s->holdout > 0) {
        snprintf(error, DATA_ERROR_MAX,
                 "options test and holdout: found both, expected one of them");
        return -EINVAL;
    }
    if (s->scale > COLUMNS_SCALE_NONE && s->given >> DATA_KEY_DIVIDE & 1) {
        snprintf(error, DATA_ERROR_MAX,
                 "options divide and scale: found both, expected one of them");
        return -EINVAL;
    }
    return 0;
}

/* ---- Parsing a whole spec ---- */

/* Returns whether a spec begins with "KIND:", and sets *n to the length of KIND, which need not be
 * a known kind. Letters and digits before a colon always count as a KIND, so such a path must begin
 * with ./. */
static bool names_kind(const char *spec, size_t *n)
{
    for (*n = 0; isalnum((unsigned char)spec[*n]) || spec[*n] == '_'; ++*n)
        ;
    return *n > 0 && spec[*n] == ':';
}

/* Returns whether a spec means the built-in glyphs, which have no PATH. */
static bool is_glyphs(const char *spec)
{
    size_t n = strlen("glyphs");
    return strncmp(spec, "glyphs", n) == 0 && (spec[n] == '\0' || spec[n] == ',');
}

/* A spec counts as a PATH unless it is "KIND:...", a canonical kind (text that describes data) or
 * the name of a kind. A mistyped KIND without a colon is therefore searched for as a file, and the
 * error message names the expected forms. */
bool data_is_path(const char *spec)
{
    size_t n;
    struct data_shape s;
    return *spec != '\0' && *spec != ':' && !names_kind(spec, &n) && !is_glyphs(spec)
           && kind_family_of(spec, &s) == NULL && data_format_named(spec, strlen(spec)) == NULL;
}

static const char *name_at(size_t i)
{
    return i < KIND_NAMES ? kind_families[i].name : NULL;
}

/* Writes the error message for an invalid spec, with the expected form or the most similar name. */
static int refuse_spec(const char *spec, char error[DATA_ERROR_MAX])
{
    static const struct spelling_specs specs = {.name = name_at};
    char question[SPELLING_QUESTION_MAX];
    struct quote found = quote_string(spec);
    size_t n = strcspn(spec, ":/,");
    const struct data_format *f = data_format_named(spec, n);
    if (f != NULL && (spec[n] == '/' || f->family->shape.form == DATA_TEXT) && spec[n] != ':'
        && f->family->shape.n_classes == 0)
        snprintf(error, DATA_ERROR_MAX, "found %s, expected %s or a kind such as %s", found.text,
                 f->expected,
                 f->family->shape.form == DATA_TEXT     ? "text/128"
                 : f->family->shape.form == DATA_IMAGES ? "idx/1x28x28/10"
                 : f->family->shape.form == DATA_ROWS   ? "csv/64x10/0"
                                                        : "libsvm/123x2/pm");
    else if (f != NULL)
        snprintf(error, DATA_ERROR_MAX, "found %s, expected \"%s\"", found.text, f->expected);
    else
        snprintf(error, DATA_ERROR_MAX,
                 "found %s, expected glyphs or KIND:PATH with a KIND of mnist, idx, cifar10, "
                 "cifar100, libsvm, csv, text%s",
                 found.text, spelling_spec(&specs, spec, question));
    return -EINVAL;
}

int data_spec_parse(struct data_spec *s, const char *text, char error[DATA_ERROR_MAX])
{
    *s = (struct data_spec){.header = "auto", .divide = 1, .context = 128};
    size_t len = strlen(text), n = 0;
    if (len >= DATA_SPEC_MAX) {
        snprintf(error, DATA_ERROR_MAX, "found a data spec of %zu bytes, expected fewer than %d",
                 len, DATA_SPEC_MAX);
        return -EINVAL;
    }
    memcpy(s->text, text, len + 1);
    bool path_alone = data_is_path(text), kind = names_kind(text, &n);
    if (!path_alone)
        s->format = is_glyphs(text) ? &data_formats[KIND_GLYPHS]
                    : kind          ? data_format_named(text, n)
                                    : NULL;
    bool drawn = s->format == &data_formats[KIND_GLYPHS]; /* The spec of glyphs has no PATH. */
    if (!path_alone && (s->format == NULL || drawn == kind))
        return refuse_spec(text, error);
    char *path = s->text + (path_alone ? 0 : kind ? n + 1 : strlen("glyphs"));
    char *rest = cut_value(path, drawn);
    if (drawn ? *path != '\0' : *path == '\0')
        return refuse_spec(text, error);
    s->path = drawn ? NULL : path;
    return parse_options(s, rest, error);
}

/* If the spec is already a canonical kind, it is returned unchanged, so the output of one command
 * can be the input of another. */
int data_kind(const char *spec, char kind[DATA_KIND_MAX], char error[DATA_ERROR_MAX])
{
    struct data_shape shape;
    struct data_spec s;
    if (kind_family_of(spec, &shape) != NULL) {
        snprintf(kind, DATA_KIND_MAX, "%s", spec);
        return 0;
    }
    if (data_is_path(spec))
        return refuse_spec(spec, error);
    int err = data_spec_parse(&s, spec, error);
    if (err == 0 && s.format->family->shape.form == DATA_TEXT)
        snprintf(kind, DATA_KIND_MAX, "text/%u", s.context);
    else if (err == 0)
        snprintf(kind, DATA_KIND_MAX, "%s", s.format->family->name);
    return err;
}
