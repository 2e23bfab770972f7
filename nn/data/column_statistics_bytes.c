/* nn/data/column_statistics_bytes.c -- encodes column statistics (moments) as bytes, and parses and
 * checks such bytes.
 *
 * The message consists of the following fields, in this order. The number before a field is its
 * size in bytes: "4 classes" is the number of classes in 4 bytes.
 *
 *   head      1 version, 1 sparse, 1 wanted, 1 scheme, 4 classes, 8 hash of the labels' names,
 *             8 rows, 4 label, 4 columns; for LABELS_LIST also 1 length and the text of the labels
 *   names     8 hash, 4 length, names of the columns and of the label, each with a NUL. The length
 *             is 0 if the names do not fit. A message of version VERSION has no names.
 *   column    1 form, 8 gaps, and then
 *     numbers      8 n, 8 mean, 8 m2, 8 low, 8 high
 *     categories   1 count, 4 for each
 *
 * All values are little-endian, doubles as their bits. The same moments always have the same bytes.
 */
#include "nn/data/column_statistics.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 2,       /* First byte of encoded statistics whose columns have no names. */
    VERSION_NAMED = 3, /* First byte of encoded statistics whose columns have names. */
    /* A number greater than the hash of every category (columns_cells.c). */
    CATEGORY_END = 1 << 18,
    HASHED = COLUMN_CATEGORIES + 1
};

/* Relative tolerance when received statistics are checked, because their sums were rounded. */
#define SLACK 1e-9

/* ---- Encoding statistics as bytes ---- */

struct out
{
    uint8_t *p;
    size_t n, cap;
};

/* Appends the number v as n_bytes bytes. If the buffer is full, the bytes are only counted. */
static void put(struct out *o, uint64_t v, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++, o->n++)
        if (o->n < o->cap)
            o->p[o->n] = (uint8_t)(v >> 8 * i);
}

static void put_double(struct out *o, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put(o, bits, sizeof bits);
}

static void put_column(struct out *o, const struct column *c, const struct column_moments *m)
{
    put(o, c->hashed ? HASHED : (uint64_t)c->form, 1);
    put(o, c->n_gaps, 8);
    if (c->form == COLUMN_NUMBERS) {
        put(o, (uint64_t)m->n, 8);
        put_double(o, m->mean);
        put_double(o, m->m2);
        put_double(o, m->low);
        put_double(o, m->high);
    } else if (c->form == COLUMN_CATEGORIES && !c->hashed) {
        put(o, c->n_categories, 1);
        for (uint32_t i = 0; i < c->n_categories; i++)
            put(o, c->category[i], 4);
    }
}

static void put_names(struct out *o, const struct schema *s, bool whole)
{
    size_t n = whole ? s->names.n_text : 0;
    put(o, s->hash, 8);
    put(o, n, 4);
    for (size_t i = 0; i < n; i++)
        put(o, (uint8_t)s->names.text[i], 1);
}

static size_t print(const struct column_statistics *m, bool names, uint8_t *out, size_t cap)
{
    struct out o = {.p = out, .cap = cap};
    put(&o, m->schema.named ? VERSION_NAMED : VERSION, 1);
    put(&o, m->sparse, 1);
    put(&o, (uint64_t)m->wanted, 1);
    put(&o, (uint64_t)m->scheme, 1);
    put(&o, m->n_classes, 4);
    put(&o, m->names, 8);
    put(&o, m->rows, 8);
    put(&o, m->columns.label, 4);
    put(&o, m->columns.n, 4);
    if (m->scheme == LABELS_LIST) {
        put(&o, strlen(m->list), 1);
        for (const char *p = m->list; *p != '\0'; p++)
            put(&o, (uint8_t)*p, 1);
    }
    if (m->schema.named)
        put_names(&o, &m->schema, names);
    for (size_t i = 0; i < m->columns.n; i++)
        put_column(&o, &m->columns.at[i], &m->of[i]);
    return o.n <= cap ? o.n : 0;
}

size_t column_statistics_print(const struct column_statistics *m, uint8_t *out, size_t cap)
{
    size_t n = print(m, true, out, cap);
    return n > 0 ? n : print(m, false, out, cap);
}

/* ---- Parsing bytes from another peer ---- */

/* Parser of a message: the bytes [p, end) that are not parsed yet. `wrong`: text of the first
 * error, or NULL. After an error every value read is 0. */
struct in
{
    const uint8_t *p, *end;
    const char *wrong;
};

static void demand(struct in *in, bool ok, const char *wrong)
{
    if (!ok && in->wrong == NULL)
        in->wrong = wrong;
}

static uint64_t get(struct in *in, size_t n_bytes)
{
    uint64_t v = 0;
    demand(in, (size_t)(in->end - in->p) >= n_bytes, "column statistics that are cut off");
    if (in->wrong != NULL)
        return 0;
    for (size_t i = 0; i < n_bytes; i++)
        v |= (uint64_t)in->p[i] << 8 * i;
    in->p += n_bytes;
    return v;
}

static double get_double(struct in *in)
{
    uint64_t bits = get(in, sizeof bits);
    double v;
    memcpy(&v, &bits, sizeof v);
    demand(in, isfinite(v), "column statistics with a value that is not a number");
    return in->wrong == NULL ? v : 0;
}

/* Refuses moments that no numbers can have: a mean outside of their range, or a sum of squares too
 * large for the range (Popoviciu 1935: the variance is at most a quarter of the squared range). */
static void check_numbers(struct in *in, const struct column_moments *m, uint64_t rows)
{
    double low = m->low, high = m->high, range = high - low;
    double near = SLACK * fmax(fabs(low), fabs(high));
    demand(in, m->n <= (double)rows, "column statistics with more numbers in a column than rows");
    demand(in, fabs(low) <= (double)FLT_MAX && fabs(high) <= (double)FLT_MAX,
           "column statistics beyond a float's range");
    demand(in, low <= high && (m->n > 0 || (!(low < 0) && !(high > 0))),
           "column statistics with an invalid range");
    demand(in, m->mean >= low - near && m->mean <= high + near,
           "column statistics with a mean outside of the range");
    demand(in, m->m2 >= 0, "column statistics with a negative sum of squares");
    demand(in, m->m2 <= m->n * (range / 2 + near) * (range / 2 + near),
           "column statistics with a sum of squares beyond the range");
}

static int get_categories(struct in *in, struct column *c)
{
    uint32_t n = (uint32_t)get(in, 1);
    demand(in, n > 0 && n <= COLUMNS_CATEGORIES_MAX,
           "column statistics with no categories or too many");
    if (in->wrong != NULL)
        return 0;
    c->category = malloc(n * sizeof *c->category);
    if (c->category == NULL)
        return -ENOMEM;
    for (; c->n_categories < n && in->wrong == NULL; c->n_categories++) {
        uint32_t h = (uint32_t)get(in, 4), *at = &c->category[c->n_categories];
        demand(in, h < CATEGORY_END && (c->n_categories == 0 || h > at[-1]),
               "column statistics with categories out of order");
        *at = h;
    }
    return 0;
}

static int get_column(struct in *in, struct column_statistics *m, size_t i)
{
    struct column *c = &m->columns.at[i];
    struct column_moments *of = &m->of[i];
    uint32_t form = (uint32_t)get(in, 1);
    uint64_t gaps = get(in, 8);
    demand(in, form <= HASHED && (!m->sparse || form == COLUMN_NUMBERS),
           "column statistics with a column of unknown type");
    demand(in, gaps <= COLUMN_STATISTICS_ROWS_MAX, "column statistics with too many empty cells");
    if (in->wrong != NULL)
        return 0;
    c->hashed = form == HASHED;
    c->form = c->hashed ? COLUMN_CATEGORIES : (enum column_form)form;
    c->n_gaps = (size_t)gaps;
    if (form == COLUMN_CATEGORIES)
        return get_categories(in, c);
    if (form != COLUMN_NUMBERS)
        return 0;
    of->n = (double)get(in, 8);
    of->mean = get_double(in);
    of->m2 = get_double(in);
    of->low = get_double(in);
    of->high = get_double(in);
    check_numbers(in, of, m->rows);
    return 0;
}

/* Parses the text of the labels, such as "0-1.5", which must have as many labels as the data have
 * classes. */
static void get_list(struct in *in, struct kind_rows *k)
{
    struct label_set set;
    size_t n = (size_t)get(in, 1);
    demand(in, n < sizeof k->list, "column statistics with a list of labels that is too long");
    for (size_t i = 0; i < n && in->wrong == NULL; i++)
        k->list[i] = (char)get(in, 1);
    demand(in, in->wrong != NULL || label_set_parse(&set, k->list, n) == k->n_classes,
           "column statistics with an invalid list of labels");
}

/* Parses the head of encoded statistics into m, *n_columns and *label. Returns the number of
 * classes and the description of the labels in a struct kind_rows. */
static struct kind_rows get_head(struct in *in, struct column_statistics *m, uint32_t *n_columns,
                                 uint32_t *label)
{
    struct kind_rows k = {.divide = 1};
    uint64_t version = get(in, 1);
    demand(in, version == VERSION || version == VERSION_NAMED,
           "column statistics of another version");
    m->schema.named = version == VERSION_NAMED;
    uint64_t sparse = get(in, 1), wanted = get(in, 1), scheme = get(in, 1);
    demand(in,
           sparse <= 1 && wanted < COLUMNS_SCALES && (sparse == 1 || wanted != COLUMNS_SCALE_AUTO)
               && (sparse == 0 || wanted == COLUMNS_SCALE_AUTO || wanted == COLUMNS_SCALE_MAX),
           "column statistics with an unknown scale");
    demand(in, sparse == 0 || !m->schema.named,
           "column statistics of libsvm data with column names");
    demand(in, scheme >= LABELS_PM && scheme <= LABELS_LIST,
           "column statistics with an unknown label scheme");
    k.n_classes = (uint32_t)get(in, 4);
    demand(in,
           k.n_classes >= 2 && k.n_classes <= DATA_CLASSES_MAX
               && (scheme != LABELS_PM || k.n_classes == 2),
           "column statistics with an invalid number of classes");
    k.hash = get(in, 8);
    demand(in, scheme == LABELS_NAMES || k.hash == 0,
           "column statistics with a hash of label names, although labels are numbers");
    m->rows = get(in, 8);
    demand(in, m->rows >= 1 && m->rows <= COLUMN_STATISTICS_ROWS_MAX,
           "column statistics with an invalid number of rows");
    *label = (uint32_t)get(in, 4);
    *n_columns = (uint32_t)get(in, 4);
    demand(in,
           *n_columns >= 1 && *n_columns <= COLUMN_STATISTICS_COLUMNS_MAX && *label <= *n_columns,
           "column statistics with no columns or too many");
    if (scheme == LABELS_LIST && in->wrong == NULL)
        get_list(in, &k);
    k.scheme = in->wrong == NULL ? (enum labels_scheme)scheme : LABELS_OPEN;
    m->sparse = sparse == 1;
    m->wanted = in->wrong == NULL ? (enum columns_scale)wanted : COLUMNS_SCALE_NONE;
    return k;
}

/* Returns true if name i of the list l is exactly the bytes p[0..n). Otherwise schema_names_add()
 * has changed the name, for example by removing spaces, so the sender did not encode it in the only
 * valid form. */
static bool is_spelled(const struct schema_names *l, size_t i, const uint8_t *p, size_t n)
{
    const char *name = schema_name(l, i);
    return strlen(name) == n && memcmp(name, p, n) == 0;
}

/* Parses the names of n_columns columns and of the label, and checks their hash. */
static int get_names(struct in *in, struct schema *s, uint32_t n_columns)
{
    uint64_t hash = get(in, 8), n = get(in, 4);
    size_t column[2];
    bool twice = false;
    demand(in, n <= (uint64_t)(in->end - in->p), "column statistics that are cut off");
    *s = (struct schema){.named = true, .hash = hash};
    if (in->wrong != NULL || n == 0)
        return 0;
    struct schema_names l;
    const uint8_t *p = in->p, *end = in->p + n;
    int err = schema_names_open(&l, (size_t)n_columns + 1);
    in->p = end;
    for (uint32_t i = 0; i <= n_columns && err == 0 && in->wrong == NULL; i++) {
        const uint8_t *nul = p < end ? memchr(p, '\0', (size_t)(end - p)) : NULL;
        demand(in, nul != NULL, "column statistics with too few names");
        if (in->wrong != NULL)
            break;
        err = schema_names_add(&l, p, (size_t)(nul - p));
        demand(in, err < 0 || is_spelled(&l, i, p, (size_t)(nul - p)),
               "column statistics with a name that is not UTF-8");
        p = nul + 1;
    }
    demand(in, err < 0 || p == end, "column statistics with too many names");
    if (err == 0)
        err = schema_names_twice(&l, &twice, column);
    demand(in, !twice, "column statistics with a name twice");
    if (err == 0 && in->wrong == NULL)
        err = schema_adopt(s, &l, n_columns);
    demand(in, err < 0 || in->wrong != NULL || s->hash == hash,
           "column statistics with a wrong hash of names");
    schema_names_close(&l);
    return err;
}

int column_statistics_parse(struct column_statistics *m, const uint8_t *p, size_t n,
                            const char **wrong)
{
    struct in in = {.p = p, .end = p + n};
    struct column_statistics head = {0};
    uint32_t n_columns, label;
    struct kind_rows k = get_head(&in, &head, &n_columns, &label);
    *m = (struct column_statistics){0};
    *wrong = in.wrong;
    if (in.wrong != NULL)
        return -EINVAL;
    struct columns columns;
    int err = columns_open(&columns, n_columns);
    if (err == 0) {
        columns.label = label;
        err = column_statistics_open(m, &k, &columns);
        columns_close(&columns);
    }
    if (err < 0)
        return err;
    m->sparse = head.sparse;
    m->wanted = head.wanted;
    m->rows = head.rows;
    if (head.schema.named)
        err = get_names(&in, &m->schema, n_columns);
    for (size_t i = 0; i < n_columns && err == 0 && in.wrong == NULL; i++)
        err = get_column(&in, m, i);
    demand(&in, in.p == in.end, "column statistics with extra bytes at the end");
    if (err == 0 && in.wrong != NULL)
        err = -EINVAL;
    *wrong = in.wrong;
    if (err < 0)
        column_statistics_close(m);
    return err;
}
