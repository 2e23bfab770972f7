/* nn/data/kind.c -- parses and prints canonical kinds (texts that describe data), and has the table
 * of their families.
 *
 * Each kind has exactly one spelling, because kinds are compared as texts and hashed into a run.
 * Numbers have no leading zeros. A divisor has the fewest digits that read back as the same number,
 * and a divisor of 1 is left out.
 */
#include "nn/data/kind.h"

#include "nn/math/number.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of classes of a text. A class is the value of the next byte. */
enum { TEXT_CLASSES = 256 };

/* Mean and deviation for MNIST and CIFAR are the established figures of the training sets. The
 * values for glyphs are the figures of the drawn set. Kinds of other IDX images contain their own
 * figures, or none: pixels from 0 to 255 then become -1 to 1. */
const struct kind_family kind_families[KIND_NAMES] = {
    [KIND_GLYPHS] = {"glyphs", {DATA_IMAGES, 1, 28, 28, 10}, {0.168f}, {0.216f}},
    [KIND_MNIST] = {"mnist", {DATA_IMAGES, 1, 28, 28, 10}, {0.1307f}, {0.3081f}},
    [KIND_IDX] = {"idx", {.form = DATA_IMAGES}, {0.5f}, {0.5f}},
    [KIND_CIFAR10] = {"cifar10",
                      {DATA_IMAGES, 3, 32, 32, 10},
                      {0.4914f, 0.4822f, 0.4465f},
                      {0.2470f, 0.2435f, 0.2616f}},
    [KIND_CIFAR100] = {"cifar100",
                       {DATA_IMAGES, 3, 32, 32, 100},
                       {0.5071f, 0.4865f, 0.4409f},
                       {0.2673f, 0.2564f, 0.2762f}},
    [KIND_LIBSVM] = {"libsvm", {.form = DATA_SPARSE}, {0}, {0}},
    [KIND_CSV] = {"csv", {.form = DATA_ROWS}, {0}, {0}},
    [KIND_TEXT] = {"text", {.form = DATA_TEXT}, {0}, {0}},
};

const struct kind_family *kind_family_named(const char *name, size_t n)
{
    for (size_t i = 0; i < KIND_NAMES; i++)
        if (strlen(kind_families[i].name) == n && memcmp(kind_families[i].name, name, n) == 0)
            return &kind_families[i];
    return NULL;
}

/* Returns the rest of p after `what`, or NULL if p does not begin with it. Accepts NULL for p, so
 * that the steps of a parse can be chained. */
static const char *literal(const char *p, const char *what)
{
    size_t n = strlen(what);
    return p != NULL && strncmp(p, what, n) == 0 ? p + n : NULL;
}
/* ---- Kinds of tables and sparse rows ---- */

static const char *const scheme_text[] = {
    [LABELS_PM] = "pm", [LABELS_ZERO] = "0", [LABELS_ONE] = "1"};

/* Parses a hash of sixteen lower-case hexadecimal digits. Returns the rest of p, or NULL. */
static const char *parse_hash(const char *p, uint64_t *hash)
{
    static const char hex[] = "0123456789abcdef";
    *hash = 0;
    for (int i = 0; i < 16; i++, p++) {
        const char *at = *p ? strchr(hex, *p) : NULL;
        if (at == NULL)
            return NULL;
        *hash = *hash << 4 | (uint64_t)(at - hex);
    }
    return p;
}

/* Parses the label scheme in a kind, such as "pm", "0" or "in-0-1.5". Returns the rest of p, or
 * NULL. No text of a scheme is a prefix of the text of another scheme, so the first match is the
 * only one. */
static const char *parse_scheme(const char *p, struct kind_rows *k)
{
    if (strncmp(p, "names-", 6) == 0) {
        k->scheme = LABELS_NAMES;
        return parse_hash(p + 6, &k->hash);
    }
    if (strncmp(p, "in-", 3) == 0) {
        struct label_set set;
        size_t n = strcspn(p + 3, "/");
        k->scheme = LABELS_LIST;
        if (n >= sizeof k->list || label_set_parse(&set, p + 3, n) != k->n_classes)
            return NULL;
        memcpy(k->list, p + 3, n);
        return p + 3 + n;
    }
    for (enum labels_scheme s = LABELS_PM; s <= LABELS_ONE; s++) {
        size_t n = strlen(scheme_text[s]);
        if (strncmp(p, scheme_text[s], n) == 0) {
            k->scheme = s;
            return p + n;
        }
    }
    return NULL;
}

/* Text of the divisor of all values in a kind: the shortest decimal number that is read back as the
 * same double. */
struct divide_text
{
    char text[32];
};

static struct divide_text divide_text(double divide)
{
    struct divide_text t = {""};
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(t.text, sizeof t.text, "%.*g", digits, divide);
        if (strtod(t.text, NULL) >= divide && strtod(t.text, NULL) <= divide)
            break;
    }
    return t;
}

/* Parses the scale of the columns: "standard:TEXT" or "standard-HASH". */
static bool parse_columns(const char *p, struct kind_rows *k)
{
    for (enum columns_scale s = COLUMNS_SCALE_NONE; s < COLUMNS_SCALES; s++) {
        const char *rest = literal(p, columns_scale_name[s]);
        if (rest == NULL)
            continue;
        k->scale = s;
        if (*rest == '-') {
            rest = parse_hash(rest + 1, &k->columns_hash);
            return rest != NULL && *rest == '\0';
        }
        k->columns = rest + 1;
        return *rest == ':' && strlen(k->columns) < COLUMNS_TEXT_MAX
               && columns_check(k->columns, s, k->features);
    }
    return false;
}

/* Parses "/columns-HASH" or "/columns-HASH=TAGS". Returns the rest of p; p itself if p does not
 * begin with such a part; NULL if the part is wrong. */
static const char *parse_names(const char *p, const char *format, struct kind_rows *k)
{
    const char *rest = literal(p, "/columns-");
    if (rest == NULL)
        return p;
    k->named = true;
    rest = strcmp(format, "csv") == 0 ? parse_hash(rest, &k->names_hash) : NULL;
    if (rest == NULL || *rest != '=')
        return rest;
    k->tags = rest + 1;
    k->n_tags = strspn(k->tags, columns_base64);
    return k->n_tags > 0 && k->n_tags < COLUMNS_TEXT_MAX && k->n_tags % 3 == 0 ? k->tags + k->n_tags
                                                                               : NULL;
}

/* Checks the number of tags, which are short hashes of column names: none, or one for each column
 * and one for the label. The text with the scales of the columns (`columns`) gives the number of
 * columns. Without this text, the number of inputs is the limit. The tags and the text together
 * must fit into COLUMNS_TEXT_MAX bytes. */
static bool tags_fit(const struct kind_rows *k)
{
    size_t n = k->n_tags / 3, n_columns = k->features, text = 0;
    if (k->columns != NULL) {
        text = strlen(k->columns);
        n_columns = 1;
        for (const char *p = k->columns; *p != '\0'; p++)
            n_columns += *p == ',';
    }
    bool counted = k->columns != NULL ? n == n_columns + 1 : n > 1 && n <= n_columns + 1;
    return k->n_tags == 0 || (counted && text + 1 + k->n_tags < COLUMNS_TEXT_MAX);
}

/* Parses a divisor. Accepts only the spelling that divide_text() prints. Kinds are compared as
 * texts, so with two spellings of one divisor, peers with equal data would have different kinds. */
static bool parse_divide(const char *p, double *divide)
{
    *divide = 1;
    if (*p == '\0')
        return true;
    size_t n = strlen(p + 1);
    return *p == '/' && number_is((const uint8_t *)p + 1, n, divide) && isfinite(*divide)
           && *divide > 0 && fabs(*divide - 1) > 0 && strcmp(divide_text(*divide).text, p + 1) == 0;
}

/* Parses the kind of a table or of sparse rows, such as "csv/64x10/0". "csv" alone is a valid kind,
 * too (an open kind, without fields). The scheme PM (labels -1 and +1) has exactly two classes, so
 * another number of classes is refused. */
bool kind_rows_parse(const char *kind, const char *format, struct kind_rows *k)
{
    *k = (struct kind_rows){.divide = 1};
    size_t n = strlen(format);
    if (strncmp(kind, format, n) != 0 || strlen(kind) >= DATA_KIND_MAX)
        return false;
    if (kind[n] == '\0')
        return true;
    k->fixed = true;
    if (kind[n] != '/')
        return false;
    const char *p = number_count(kind + n + 1, DATA_FEATURES_MAX, &k->features);
    p = number_count(literal(p, "x"), DATA_CLASSES_MAX, &k->n_classes);
    p = literal(p, "/");
    p = p != NULL ? parse_scheme(p, k) : NULL;
    p = p != NULL ? parse_names(p, format, k) : NULL;
    bool scaled = p != NULL && *p == '/' && p[1] >= 'a' && p[1] <= 'z';
    return p != NULL && (scaled ? parse_columns(p + 1, k) : parse_divide(p, &k->divide))
           && (scaled || k->named || strlen(kind) < KIND_BASE_MAX + strlen(k->list))
           && k->n_classes >= 2 && tags_fit(k) && (k->scheme != LABELS_PM || k->n_classes == 2);
}

/* Writes the part "/columns-HASH=TAGS" of a kind. Leaves out "=TAGS", the short hashes of the
 * names, if they and the text of the columns together are too long. */
static void print_names(const struct kind_rows *k, char out[KIND_NAMES_MAX + COLUMNS_TEXT_MAX + 1])
{
    size_t text = k->scale != COLUMNS_SCALE_AUTO && k->columns != NULL ? strlen(k->columns) : 0;
    bool room = k->n_tags > 0 && text + 1 + k->n_tags < COLUMNS_TEXT_MAX;
    out[0] = '\0';
    if (k->named)
        snprintf(out, KIND_NAMES_MAX + COLUMNS_TEXT_MAX + 1, "/columns-%016" PRIx64 "%s%.*s",
                 k->names_hash, room ? "=" : "", room ? (int)k->n_tags : 0, room ? k->tags : "");
}

bool kind_rows_print(const struct kind_rows *k, const char *format, char kind[DATA_KIND_MAX])
{
    char labels[LABEL_SET_MAX + 8];
    size_t most = KIND_BASE_MAX + strlen(k->list);
    if (k->scheme == LABELS_NAMES)
        snprintf(labels, sizeof labels, "names-%016" PRIx64, k->hash);
    else if (k->scheme == LABELS_LIST)
        snprintf(labels, sizeof labels, "in-%s", k->list);
    else
        snprintf(labels, sizeof labels, "%s", scheme_text[k->scheme]);
    bool divided = fabs(k->divide - 1) > 0;
    char names[KIND_NAMES_MAX + COLUMNS_TEXT_MAX + 1], base[KIND_BASE_MAX + LABEL_SET_MAX];
    struct divide_text by = divide_text(k->divide);
    const char *divide = divided ? by.text : "";
    print_names(k, names);
    if (snprintf(base, sizeof base, "%s/%" PRIu32 "x%" PRIu32 "/%s%s%s", format, k->features,
                 k->n_classes, labels, divided ? "/" : "", divide)
        >= (int)most)
        return false;
    int n = snprintf(kind, DATA_KIND_MAX, "%s/%" PRIu32 "x%" PRIu32 "/%s%s%s%s", format,
                     k->features, k->n_classes, labels, names, divided ? "/" : "", divide);
    if (k->scale != COLUMNS_SCALE_AUTO) {
        char *at = kind + n;
        size_t room = DATA_KIND_MAX - (size_t)n;
        const char *scale = columns_scale_name[k->scale];
        if (k->columns != NULL)
            n += snprintf(at, room, "/%s:%s", scale, k->columns);
        else
            n += snprintf(at, room, "/%s-%016" PRIx64, scale, k->columns_hash);
    }
    return n > 0 && n < DATA_KIND_MAX;
}

struct kind_brief kind_brief(const char *kind)
{
    struct kind_brief b;
    const char *names = strstr(kind, "/columns-"), *rest = "";
    size_t n = names != NULL ? (size_t)(names - kind) : strcspn(kind, ":");
    if (names != NULL)
        rest = names + 1 + strcspn(names + 1, "/");
    snprintf(b.text, sizeof b.text, "%.*s%.*s", (int)(n < 100 ? n : 100), kind,
             (int)(strcspn(rest, ":") < 26 ? strcspn(rest, ":") : 26), rest);
    return b;
}

/* ---- Parsing and printing all kinds ---- */

/* Parses a number such as "0.2860": from 0 to 1, with four decimals. */
static const char *parse_decimals(const char *p, float *value)
{
    size_t n = p != NULL ? strspn(p, "0123456789.") : 0;
    char text[8];
    if (n != 6 || (p[0] != '0' && p[0] != '1') || p[1] != '.' || strcspn(p + 2, ".") < 4)
        return NULL;
    memcpy(text, p, 6);
    text[6] = '\0';
    *value = strtof(text, NULL);
    return *value <= 1 ? p + 6 : NULL;
}

/* Parses mean and deviation: "0.2860~0.3530". */
static bool parse_idx_normalisation(const char *p, float *mean, float *std)
{
    p = parse_decimals(p, mean);
    p = parse_decimals(literal(p, "~"), std);
    return p != NULL && *p == '\0' && *std > 0;
}

void kind_idx_print(const struct data_shape *shape, double mean, double deviation,
                    char kind[DATA_KIND_MAX])
{
    char text[32];
    float m, s;
    int n = snprintf(text, sizeof text, "%.4f~%.4f", mean, deviation);
    if (n < 0 || !parse_idx_normalisation(text, &m, &s))
        snprintf(text, sizeof text, "%.4f~1.0000", mean);
    snprintf(kind, DATA_KIND_MAX, "idx/1x%" PRIu32 "x%" PRIu32 "/%" PRIu32 "/%s", shape->height,
             shape->width, shape->n_classes, text);
}

struct kind_normalisation kind_normalisation(const char *kind)
{
    struct data_shape shape;
    struct kind_normalisation k;
    const struct kind_family *f = kind_family_of(kind, &shape);
    assert(f != NULL);
    memcpy(k.mean, f->mean, sizeof k.mean);
    memcpy(k.std, f->std, sizeof k.std);
    const char *last = strrchr(kind, '/');
    if (f == &kind_families[KIND_IDX] && last != NULL)
        (void)parse_idx_normalisation(last + 1, &k.mean[0], &k.std[0]);
    return k;
}

/* Parses the fields of a kind of images: "1x28x28/10" or "1x28x28/10/0.2860~0.3530". */
static bool idx_kind(const char *p, struct data_shape *s)
{
    float mean, std;
    s->channels = 1;
    p = number_count(literal(p, "1x"), DATA_SIDE_MAX, &s->height);
    p = number_count(literal(p, "x"), DATA_SIDE_MAX, &s->width);
    p = number_count(literal(p, "/"), DATA_CLASSES_MAX, &s->n_classes);
    return p != NULL && s->n_classes >= 2
           && (*p == '\0' || (*p == '/' && parse_idx_normalisation(p + 1, &mean, &std)));
}

/* Derives the shape of the data from a kind such as "csv/64x10/0", of the family "libsvm" or "csv".
 * The shape of a row is its number of features. */
static bool rows_kind(const char *kind, const struct kind_family *f, struct data_shape *s)
{
    struct kind_rows k;
    if (!kind_rows_parse(kind, f->name, &k) || !k.fixed)
        return false;
    *s = (struct data_shape){f->shape.form, k.features, 1, 1, k.n_classes};
    return true;
}

/* Parses the number in a kind such as "text/128": the context, which is the length of a sample in
 * bytes. */
static bool text_kind(const char *p, struct data_shape *s)
{
    s->channels = s->width = 1;
    s->n_classes = TEXT_CLASSES;
    p = number_count(p, DATA_CONTEXT_MAX, &s->height);
    return p != NULL && *p == '\0';
}

const struct kind_family *kind_family_of(const char *kind, struct data_shape *shape)
{
    size_t n = strcspn(kind, "/");
    const struct kind_family *f = kind_family_named(kind, n);
    if (f == NULL || strlen(kind) >= DATA_KIND_MAX)
        return NULL;
    *shape = f->shape;
    bool ok = false;
    /* The name of the family alone is a valid kind, except for text: a kind of text always has a
     * context. */
    if (f->shape.n_classes > 0 || kind[n] == '\0')
        ok = kind[n] == '\0' && f->shape.form != DATA_TEXT;
    else if (f->shape.form == DATA_TEXT)
        ok = text_kind(kind + n + 1, shape);
    else if (f->shape.form == DATA_IMAGES)
        ok = idx_kind(kind + n + 1, shape);
    else
        ok = rows_kind(kind, f, shape);
    return ok ? f : NULL;
}

int data_shape(const char *kind, struct data_shape *shape)
{
    struct data_shape s;
    if (kind_family_of(kind, &s) == NULL || s.n_classes == 0)
        return -EINVAL;
    *shape = s;
    return 0;
}

bool data_kind_fixed(const char *kind)
{
    struct data_shape s;
    return data_shape(kind, &s) == 0;
}

/* Returns the family of kinds with which a kind of family f is compared. If the other kind is open,
 * such as "idx" (`open_beside`), mnist counts as idx, because the files of MNIST are IDX files. In
 * all other cases, returns f. */
static const struct kind_family *format_of(const struct kind_family *f, bool open_beside)
{
    return f == &kind_families[KIND_MNIST] && open_beside ? &kind_families[KIND_IDX] : f;
}

/* An open kind, such as "csv", agrees with all kinds of its format: the files, which determine the
 * other fields, have not been read yet. */
bool data_kind_agrees(const char *a, const char *b)
{
    struct data_shape x, y;
    const struct kind_family *f = kind_family_of(a, &x), *g = kind_family_of(b, &y);
    bool open_f = f != NULL && x.n_classes == 0, open_g = g != NULL && y.n_classes == 0;
    f = format_of(f, open_g);
    g = format_of(g, open_f);
    return f != NULL && f == g && (x.n_classes == 0 || y.n_classes == 0 || strcmp(a, b) == 0);
}
