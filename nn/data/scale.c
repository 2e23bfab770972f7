/* nn/data/scale.c -- computes means and scales of columns from a training set, and applies them to
 * the training set and the held-out set. */
#include "nn/data/scale.h"

#include "nn/data/quote.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 12 /* Largest number of columns that a note to the user lists by number. */ };

/* Parses the kind (text that describes the data) of a table or of sparse rows. Returns "csv" or
 * "libsvm", or NULL for images and text, which have no columns. */
static const char *parse_rows(const char *kind, struct kind_rows *k)
{
    return kind_rows_parse(kind, "csv", k)      ? "csv"
           : kind_rows_parse(kind, "libsvm", k) ? "libsvm"
                                                : NULL;
}

/* ---- Before the files are read ---- */

/* Returns the scale to use before the files have determined it. If the spec gives no scale=, tables
 * are standardised, unless the spec gives divide=. */
static enum columns_scale by_default(const char *format, enum columns_scale wanted, double divide)
{
    if (wanted != COLUMNS_SCALE_AUTO || strcmp(format, "csv") != 0)
        return wanted;
    return fabs(divide - 1) > 0 ? COLUMNS_SCALE_NONE : COLUMNS_SCALE_STANDARD;
}

int scale_open(struct scale *s, const char *kind, enum columns_scale wanted, double divide,
               char error[DATA_ERROR_MAX])
{
    struct kind_rows k;
    *s = (struct scale){.wanted = wanted};
    const char *format = parse_rows(kind, &k);
    if (format == NULL)
        return 0;
    enum columns_scale of_kind = k.scale != COLUMNS_SCALE_AUTO ? k.scale : COLUMNS_SCALE_NONE;
    if (k.fixed && wanted != COLUMNS_SCALE_AUTO && wanted != of_kind) {
        snprintf(error, DATA_ERROR_MAX, "found scale=%s, expected scale=%s (%s)",
                 columns_scale_name[wanted], columns_scale_name[of_kind], kind_brief(kind).text);
        return -EINVAL;
    }
    s->wanted = k.fixed ? of_kind : by_default(format, wanted, divide);
    s->strict = k.fixed ? k.scale == COLUMNS_SCALE_AUTO : fabs(divide - 1) > 0;
    s->hash = k.columns_hash;
    s->given = k.columns != NULL;
    /* The scale is set before reading, because the reader stores rows differently for each
     * scale. */
    s->columns.scale = s->wanted;
    int err = s->given ? columns_parse(&s->columns, k.columns, k.scale) : 0;
    if (err < 0)
        snprintf(error, DATA_ERROR_MAX, "no memory for the columns of %s", kind_brief(kind).text);
    return err;
}

void scale_close(struct scale *s)
{
    column_statistics_close(&s->moments);
    columns_close(&s->columns);
}

/* ---- Writing notes to the user ---- */

/* Appends a sentence to the notes. A sentence that does not fit is left out. */
__attribute__((format(printf, 2, 3))) static void add_note(char note[SCALE_NOTE_MAX],
                                                           const char *format, ...)
{
    char sentence[SCALE_NOTE_MAX];
    size_t n = strlen(note);
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    size_t more = strlen(sentence);
    if (n + more + 3 > SCALE_NOTE_MAX)
        return;
    if (n > 0) {
        memcpy(note + n, "; ", 2);
        n += 2;
    }
    memcpy(note + n, sentence, more + 1);
}

/* Writes the text that stands for column i in a note: its name in quotes or, if the columns have no
 * names, its number in the file. The first column is 1, and the label's column is counted, too. */
static void column_title(const struct schema *names, size_t label, size_t i, char text[64])
{
    if (i < names->names.n)
        snprintf(text, 64, "%s", quote_string(schema_name(&names->names, i)).text);
    else
        snprintf(text, 64, "%zu", i + 1 + (i >= label));
}

static bool has_gaps(const struct column *c)
{
    return c->n_gaps > 0;
}

static bool is_constant(const struct column *c)
{
    return c->constant;
}

static bool has_unknown(const struct column *c)
{
    return c->n_unknown > 0;
}

static bool has_categories(const struct column *c)
{
    return c->form == COLUMN_CATEGORIES && !c->hashed;
}

static bool is_hashed(const struct column *c)
{
    return c->form == COLUMN_CATEGORIES && c->hashed;
}

/* Writes "column 3", "column "age"" or "4 columns (2, 3, 5, 9)": the columns for which which()
 * returns true. Returns the number of these columns. */
static size_t list_columns(const struct columns *c, const struct schema *names,
                           bool (*which)(const struct column *c), char text[160])
{
    size_t n = 0, n_listed = 0, at = 0;
    char list[120] = "", title[64];
    for (size_t i = 0; i < c->n; i++) {
        if (!which(&c->at[i]))
            continue;
        column_title(names, c->label, i, title);
        bool fits = n_listed < NAMED && at + strlen(title) + 3 <= sizeof list;
        if (n == n_listed && fits) {
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", n > 0 ? ", " : "", title);
            n_listed++;
        }
        n++;
    }
    assert(at < sizeof list && (n == 0 || n_listed > 0));
    if (n == 1)
        snprintf(text, 160, "column %s", list);
    else
        snprintf(text, 160, "%zu columns (%s%s)", n, list, n > n_listed ? ", ..." : "");
    return n;
}

static void note_columns(const struct columns *c, const struct schema *names,
                         char note[SCALE_NOTE_MAX])
{
    char list[160];
    if (c->label != SIZE_MAX && (columns_have_categories(c) || columns_gaps(c) > 0)) {
        if (names->has_label && names->names.n > names->n)
            add_note(note, "the label is column %s",
                     quote_string(schema_name(&names->names, names->n)).text);
        else
            add_note(note, "the label is column %zu", c->label + 1);
    }
    if (list_columns(c, names, has_categories, list) > 0)
        add_note(note, "categories in %s, with one input for each category: %zu inputs in total",
                 list, columns_inputs(c));
    if (list_columns(c, names, is_hashed, list) > 0)
        add_note(note, "more than %d categories in %s: their hash picks one of %d inputs",
                 COLUMNS_CATEGORIES_MAX, list, COLUMNS_BUCKETS);
    if (list_columns(c, names, has_gaps, list) > 0)
        add_note(
            note,
            "%zu empty cells in %s: replaced by the mean of the column, or counted as no category",
            columns_gaps(c), list);
    if (list_columns(c, names, has_unknown, list) > 0)
        add_note(note,
                 "%s: some categories are not in the training set or run, and count as no "
                 "category",
                 list);
}

/* ---- Ranges of columns ---- */

/* Computes minimum and maximum of each column. For sparse rows the range includes 0, because zeros
 * are not stored. */
static void reach(const struct dataset *d, struct column_moments *of)
{
    bool sparse = d->shape.form == DATA_SPARSE;
    size_t n = sparse ? dataset_dim(d) : d->stride;
    for (size_t i = 0; sparse && i < d->start[d->n]; i++) {
        struct column_moments *m = &of[d->column[i]];
        m->low = fmin(m->low, (double)d->entry[i]);
        m->high = fmax(m->high, (double)d->entry[i]);
    }
    for (size_t i = 0; sparse && i < n; i++)
        of[i].n = (double)d->n;
    for (size_t i = 0; !sparse && i < n; i++)
        of[i] = (struct column_moments){.low = (double)INFINITY, .high = -(double)INFINITY};
    for (size_t i = 0; !sparse && i < d->n * n; i++) {
        of[i % n].low = fmin(of[i % n].low, (double)d->rows[i]);
        of[i % n].high = fmax(of[i % n].high, (double)d->rows[i]);
    }
}

/* Adds a warning if columns are not scaled although their ranges differ widely. The gradients of
 * the column with the largest range then dominate. Returns 0 or -ENOMEM. */
static int warn_of_reach(const struct dataset *train, const struct schema *names, size_t label,
                         char note[SCALE_NOTE_MAX])
{
    size_t low, high, n = train->shape.form == DATA_SPARSE ? dataset_dim(train) : train->stride;
    struct column_moments *of = n <= COLUMNS_MAX_N ? calloc(n, sizeof *of) : NULL;
    char largest[64], smallest[64];
    if (n > COLUMNS_MAX_N)
        return 0;
    if (of == NULL)
        return -ENOMEM;
    reach(train, of);
    double ratio = column_statistics_apart(of, n, &low, &high);
    free(of);
    if (!(ratio > COLUMN_STATISTICS_WILD))
        return 0;
    const char *does = train->shape.form == DATA_SPARSE ? "max" : "standard";
    if (label == SIZE_MAX && names->names.n == 0) {
        add_note(note,
                 "warning: the values of one column are %.0f times as large as those of another, "
                 "and nothing is scaled (use scale=%s)",
                 ratio, does);
        return 0;
    }
    column_title(names, label, high, largest);
    column_title(names, label, low, smallest);
    add_note(note,
             "warning: the values of column %s are %.0f times as large as those of column %s, and "
             "nothing is scaled (use scale=%s)",
             largest, ratio, smallest, does);
    return 0;
}

/* ---- Statistics of the columns ---- */

/* Computes the moments of the training set, and from them the means and scales. The moments are
 * kept for pooling with other peers, unless the set has too many columns for a run description. */
static int fit(struct scale *s, const struct dataset *train)
{
    struct kind_rows k;
    struct column_statistics *m = &s->moments;
    char text[COLUMNS_TEXT_MAX];
    (void)parse_rows(train->kind, &k);
    if (column_statistics_open(m, &k, &s->columns) < 0)
        return -ENOMEM;
    m->sparse = train->shape.form == DATA_SPARSE;
    m->wanted = s->wanted;
    m->rows = train->n;
    if (m->sparse)
        reach(train, m->of);
    else
        columns_moments(&m->columns, train->rows, train->n, m->of);
    column_statistics_settle(m);
    columns_close(&s->columns);
    int err = columns_copy(&s->columns, &m->columns);
    s->wanted = s->columns.scale;
    if (m->columns.n > COLUMN_STATISTICS_COLUMNS_MAX
        || columns_print(&m->columns, text, sizeof text) >= sizeof text)
        column_statistics_close(m);
    return err;
}

/* Computes the scales of a sparse training set's columns. Sets s->wanted to COLUMNS_SCALE_NONE if
 * no column is scaled. */
static int fit_sparse(struct scale *s, const struct dataset *train, const char *path,
                      char error[DATA_ERROR_MAX])
{
    size_t n = dataset_dim(train);
    bool asked = s->wanted == COLUMNS_SCALE_MAX;
    if (n > COLUMNS_MAX_N || s->wanted == COLUMNS_SCALE_NONE) {
        s->wanted = COLUMNS_SCALE_NONE;
        return !asked
                   ? 0
                   : file_error(error, path, "found %zu columns, expected at most %d for scale=max",
                                n, COLUMNS_MAX_N);
    }
    if (columns_open(&s->columns, n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        s->columns.at[i].form = COLUMN_NUMBERS;
    return fit(s, train);
}

static void apply_sparse(const struct columns *c, struct dataset *d)
{
    for (size_t i = 0; d->n > 0 && i < d->start[d->n]; i++) {
        double x = (double)d->entry[i] / c->at[d->column[i]].scale;
        d->entry[i] = (float)fmin(fmax(x, -COLUMNS_FAR), COLUMNS_FAR);
    }
}

/* ---- Training set and held-out set ---- */

/* Writes the text of the columns (their types, means and scales) into the kinds (texts that
 * describe the data) of the training set and of the held-out set. If the text is too long, writes
 * the hash of the columns instead. */
static int name_kind(const struct scale *s, struct dataset *train, struct dataset *test,
                     const char *path, char error[DATA_ERROR_MAX])
{
    struct kind_rows k;
    char kind[DATA_KIND_MAX], text[COLUMNS_TEXT_MAX];
    const char *format = parse_rows(train->kind, &k);
    if (s->given)
        return 0;
    k.scale = s->columns.scale;
    k.columns = columns_print(&s->columns, text, sizeof text) < sizeof text ? text : NULL;
    k.columns_hash = columns_hash(&s->columns);
    if (s->hash != 0 && s->hash != k.columns_hash)
        return file_error(
            error, path,
            "found a training set with other means, scales or categories than the run: the run "
            "description has no room for %zu columns, so all peers need the same training set "
            "(or scale=none)",
            (size_t)s->columns.n);
    bool fits = kind_rows_print(&k, format, kind);
    assert(fits && !(fabs(k.divide - 1) > 0));
    dataset_kind(train, kind);
    dataset_kind(test, kind);
    return 0;
}

/* If the columns have categories, gives the data set its own copy of the columns, because
 * dataset_sample() needs them. */
static int give_columns(const struct columns *c, struct dataset *d)
{
    if (!columns_have_categories(c))
        return 0;
    d->columns = calloc(1, sizeof *d->columns);
    return d->columns != NULL ? columns_copy(d->columns, c) : -ENOMEM;
}

static int scale_rows(struct scale *s, struct dataset *train, struct dataset *test,
                      const struct schema *names, char note[SCALE_NOTE_MAX])
{
    struct columns *c = &s->columns;
    char list[160];
    int err = 0;
    if (!s->given)
        err = fit(s, train);
    if (err == 0 && list_columns(c, names, is_constant, list) > 0)
        add_note(note, "all rows have the same number in %s, so no model can learn from it", list);
    if (err == 0)
        err = give_columns(c, train);
    if (err == 0)
        err = give_columns(c, test);
    if (err < 0)
        return err;
    columns_apply(c, train->rows, train->n);
    columns_apply(c, test->rows, test->n);
    return 0;
}

/* Returns whether there is nothing to scale: all columns are numbers without gaps, and no column
 * has a scale. */
static bool is_plain(const struct scale *s)
{
    return !s->given && s->hash == 0 && s->wanted == COLUMNS_SCALE_NONE
           && !columns_have_categories(&s->columns) && columns_gaps(&s->columns) == 0;
}

int scale_sets(struct scale *s, struct dataset *train, struct dataset *test,
               const struct schema *names, const char *path, char note[SCALE_NOTE_MAX],
               char error[DATA_ERROR_MAX])
{
    bool sparse = train->shape.form == DATA_SPARSE;
    int err = 0;
    note[0] = error[0] = '\0';
    if (!sparse && train->shape.form != DATA_ROWS)
        return 0;
    const char *encoding = train->encoding != NULL ? train->encoding : test->encoding;
    if (encoding != NULL)
        add_note(note, "the files are not in UTF-8, and are read as %s", encoding);
    if (sparse && !s->given && !s->strict)
        err = fit_sparse(s, train, path, error);
    if (err == 0 && !sparse && s->columns.n > 0)
        note_columns(&s->columns, names, note);
    size_t label = sparse             ? dataset_dim(train)
                   : s->columns.n > 0 ? s->columns.label
                                      /* Without struct columns, the label's column of a
                                       * table is unknown. */
                                      : SIZE_MAX;
    if (err == 0 && s->wanted == COLUMNS_SCALE_NONE)
        err = warn_of_reach(train, names, label, note);
    if (err == 0 && s->columns.n > 0 && !is_plain(s)) {
        if (sparse) {
            apply_sparse(&s->columns, train);
            apply_sparse(&s->columns, test);
        } else {
            err = scale_rows(s, train, test, names, note);
        }
        if (err == 0)
            err = name_kind(s, train, test, path, error);
    }
    if (err == -ENOMEM)
        file_no_memory(error, path);
    return err;
}
