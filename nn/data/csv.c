/* nn/data/csv.c -- reads a table: one record per line, cells between separators, quotes as in RFC
 * 4180.
 *
 *   height,width,species        header: yes, no, or detected (names, and no number)
 *   5.1,3.5,"Iris setosa"       one column is the label, the others are numbers or categories
 *
 * The reader first opens each file (nn/data/csv_sheet.h): it finds the separator, the columns and
 * the header. Each header is matched to the names of the first file, of the training set or of the
 * run (nn/data/schema.h). Then the rows of all files are read twice: once to check and count them,
 * and once to fill arrays of the right size.
 */
#include "nn/data/csv_sheet.h"
#include "nn/data/lines.h"
#include "nn/data/notation.h"
#include "nn/data/quote.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading one row ---- */

/* Appends text to the error message. */
__attribute__((format(printf, 2, 3))) static void hint(const struct cells *c, const char *format,
                                                       ...)
{
    size_t n = strlen(c->spot.error);
    va_list args;
    va_start(args, format);
    vsnprintf(c->spot.error + n, DATA_ERROR_MAX - n, format, args);
    va_end(args);
}

/* Adds a hint to the error message of a refused cell, if one of the reader's assumptions may be
 * wrong. Adds no hint if a run or the training set determines the layout of the data. The
 * assumptions are:
 *
 * 1. The last column is the label. If a cell of that column is refused, another column may be the
 *    label. If a word in the first row is refused, the column of this word may be the label.
 * 2. The first record is a row, although one of its cells is not a number. The record may be a
 *    header if one of its cells is refused, or if the label of the second row is a refused number.
 */
static int explain(const struct table *t, const struct cells *c, size_t column, bool word, int err)
{
    if (err != -EINVAL || t->kind->fixed)
        return err;
    if (t->r->label == NULL && column == t->label)
        hint(c, " (is another column the label? csv:PATH,label=NAME or label=NUMBER)");
    else if (t->r->label == NULL && t->n_rows == 0 && word)
        hint(c, " (is column %zu the label? csv:PATH,label=%zu)", column + 1, column + 1);
    if (t->doubtful && (t->n_rows == 0 || (t->n_rows == 1 && column == t->label && !word)))
        hint(c, " (is the first row a header? csv:PATH,header=yes)");
    return err;
}

/* Handles the label of a row. The first pass over the rows records the label. The second pass (t->d
 * is set) stores the label's class. */
static int read_label(struct table *t, const struct cells *c, const struct cells_cell *cell)
{
    /* Buffer for a label, one byte longer than the longest name, so that a name that is too long is
     * noticed. */
    uint8_t text[LABELS_NAME_MAX + 1];
    const uint8_t *p = cell->p;
    size_t n = cell->n;
    if (cell->escaped) {
        n = cells_text(cell, text, sizeof text);
        p = text;
    }
    if (t->d != NULL) {
        t->d->labels[t->n_rows] = labels_class(t->labels, p, n);
        return 0;
    }
    char wanted[LABELS_WHY_MAX], where[40];
    int err = labels_note(t->labels, p, n, wanted);
    if (err == -ENOMEM)
        return file_no_memory(c->spot.error, c->spot.path);
    snprintf(where, sizeof where, "column %zu (label)", t->label + 1);
    if (err == 0)
        return 0;
    err = lines_refuse(&c->spot, where, p, n, wanted);
    return explain(t, c, t->label, !cells_number(cell), err);
}

/* Writes the column for an error message: "column 3", and its name in parentheses if the header has
 * a name for this column. */
static void say_column(const struct table *t, size_t column, char where[QUOTE_SHOWN + 64])
{
    struct cells header = t->header;
    struct cells_cell cell = {.more = header.p != NULL};
    int err = 0;
    for (size_t i = 0; err == 0 && cell.more && i <= column; i++)
        err = cells_next(&header, &cell);
    bool named = t->columns != NULL && err == 0 && header.p != NULL && cell.n > 0;
    snprintf(where, QUOTE_SHOWN + 64, "column %zu%s%s%s", column + 1, named ? " (" : "",
             named ? quote_bytes(cell.p, cell.n).text : "", named ? ")" : "");
}

/* Converts a cell to a number and divides it by kind->divide. Used for a table of numbers only,
 * which has no struct columns. Returns 0, or -EINVAL with the expected text in `wanted`. */
static int plain_value(const struct table *t, const struct cells_cell *cell, float *x,
                       char wanted[NUMBER_WANTED_MAX])
{
    double v;
    snprintf(wanted, NUMBER_WANTED_MAX, "a number");
    if (!number_is(cell->p, cell->n, &v))
        return -EINVAL;
    number_wanted(t->kind->divide, wanted);
    return number_to_float(v, t->kind->divide, x) ? 0 : -EINVAL;
}

/* Examines the decimal point in a cell of a table that has numbers only. Sets t->point_seen if the
 * cell can only be read with a decimal point. If the point may also separate thousands, stores the
 * first such cell in t->unclear. */
static void note_point(struct table *t, const struct cells *c, const struct cells_cell *cell,
                       size_t column)
{
    struct notation_number w;
    if (t->point_seen || c->separator == ',' || memchr(cell->p, '.', cell->n) == NULL
        || notation_look(cell->p, cell->n, &w) != NOTATION_NUMBER)
        return;
    t->point_seen = (w.notations & NOTATION_COMMA) == 0;
    if (t->point_seen || t->unclear.p != NULL)
        return;
    t->unclear = *cell;
    t->unclear_at = *c;
    say_column(t, column, t->unclear_where);
}

/* Checks a cell that is not a label against the type of its column. Returns 0, -EINVAL with a
 * message, or -ENOMEM. */
static int note_value(struct table *t, const struct cells *c, const struct cells_cell *cell,
                      size_t column)
{
    char where[QUOTE_SHOWN + 64], wanted[NUMBER_WANTED_MAX];
    const char *expected = wanted;
    size_t place = csv_sheet_place(t, column);
    float x;
    int err = t->columns != NULL ? columns_note(t->columns, place, cell->p, cell->n, &expected)
                                 : plain_value(t, cell, &x, wanted);
    if (err == -ENOMEM)
        return file_no_memory(c->spot.error, c->spot.path);
    if (err == 0 && t->columns == NULL)
        note_point(t, c, cell, column);
    if (err == 0)
        return 0;
    say_column(t, column, where);
    err = lines_refuse(&c->spot, where, cell->p, cell->n, expected);
    /* Labels are never dates, so a date gives no hint that its column may be the label. */
    bool date = columns_look(cell->p, cell->n) == COLUMNS_DATE;
    return explain(t, c, column, cells_name(cell) && !date, err);
}

/* Handles a cell that is not a label. The first pass checks the cell, the second pass stores its
 * value. csv_sheet_place() gives the index of the value in the stored row. */
static int read_value(struct table *t, const struct cells *c, const struct cells_cell *cell,
                      size_t column)
{
    if (t->d == NULL)
        return note_value(t, c, cell, column);
    char wanted[NUMBER_WANTED_MAX];
    size_t place = csv_sheet_place(t, column);
    float x = 0;
    int err = 0;
    if (t->columns != NULL)
        x = columns_code(t->columns, place, cell->p, cell->n);
    else
        err = plain_value(t, cell, &x, wanted);
    t->d->rows[t->n_rows * t->values + place] = x;
    return err;
}

/* Called after an error in cell n of a record. If the record also has the wrong number of cells,
 * replaces the error message by a message about the number of cells. */
static int refuse_row(const struct table *t, const struct cells *c, bool more, size_t n, int err)
{
    char kept[DATA_ERROR_MAX];
    size_t left = 0;
    memcpy(kept, c->spot.error, sizeof kept);
    if (more && cells_count(*c, &left) < 0)
        return -EINVAL;
    if (err == -EINVAL && n + left != t->n_columns)
        return csv_sheet_refuse(c, n + left, t->n_columns);
    memcpy(c->spot.error, kept, sizeof kept);
    return err;
}

static int end_row(struct table *t)
{
    t->n_rows++;
    return 0;
}

/* Reads one record as a row of data. Cells beyond the last column are only counted, for the error
 * message. */
static int read_row(struct table *t, struct cells *c)
{
    struct cells_cell cell = {.more = true};
    size_t i = 0;
    for (; cell.more; i++) {
        int err = cells_next(c, &cell);
        if (err < 0)
            return err;
        if (i == t->n_columns && t->trailing && cell.n == 0 && !cell.more)
            return end_row(t);
        if (i >= t->n_columns || (t->place != NULL && t->place[i] == SCHEMA_IGNORED))
            continue;
        err = i == t->label ? read_label(t, c, &cell) : read_value(t, c, &cell, i);
        if (err < 0)
            return refuse_row(t, c, cell.more, i + 1, err);
    }
    return i == t->n_columns ? end_row(t) : csv_sheet_refuse(c, i, t->n_columns);
}

/* Reads the rows of all files. Each file starts at the first row that csv_sheet_open() has
 * found. */
static int read_rows(struct table *t, const struct sheet *sheets, size_t *n_rows)
{
    t->n_rows = 0;
    for (size_t i = 0; i < t->r->n_paths; i++) {
        struct cells c = sheets[i].rows;
        csv_sheet_use(t, &sheets[i]);
        size_t before = t->n_rows;
        while (cells_record(&c)) {
            int err = read_row(t, &c);
            if (err < 0)
                return err;
        }
        n_rows[i] = t->n_rows - before;
    }
    return 0;
}

/* The second pass over the rows: fills the arrays. This pass cannot fail on a cell, because the
 * first pass has checked and counted all cells. */
static int fill_rows(struct table *t, struct dataset *d, const char *kind,
                     const struct sheet *sheets, size_t *n_rows)
{
    const struct lines_spot *spot = &sheets[0].rows.spot;
    size_t n = t->n_rows;
    if (dataset_init(d, kind, n, t->values) < 0)
        return file_no_memory(spot->error, spot->path);
    t->d = d;
    int err = read_rows(t, sheets, n_rows);
    assert(err == 0 && t->n_rows == n);
    if (lines_mark_files(d, n_rows, t->r->n_paths) < 0) {
        dataset_close(d);
        return file_no_memory(spot->error, spot->path);
    }
    if (t->label == NO_LABEL) {
        free(d->labels);
        d->labels = NULL;
    }
    if (t->kind->scheme == LABELS_NAMES && (t->label != NO_LABEL || t->r->names != NULL)) {
        d->names = t->labels;
        t->labels = NULL;
    }
    return 0;
}

/* Called after the first pass over the rows: sets the number of inputs and the names of the
 * columns, and writes the kind (text that describes the data). */
static int settle_features(struct table *t, struct kind_rows *kind, const struct cells *c,
                           char text[DATA_KIND_MAX])
{
    size_t n = t->columns != NULL ? columns_inputs(t->columns) : t->values;
    if (kind->fixed && n != kind->features)
        return file_error(c->spot.error, c->spot.path,
                          "the columns give %zu inputs, expected %" PRIu32 " (%s)", n,
                          kind->features, kind_brief(t->r->kind).text);
    if (!kind->fixed && t->r->schema != NULL && t->schema->named) {
        kind->named = true;
        kind->names_hash = t->schema->hash;
        kind->tags = t->schema->tags;
        kind->n_tags = strlen(t->schema->tags);
    }
    kind->features = (uint32_t)n;
    if (t->columns != NULL)
        t->columns->settled = true;
    return lines_print_kind(kind, "csv", &c->spot, text);
}

/* Returns the column of the file that holds value number `place` of a stored row. */
static size_t column_of(const struct sheet *s, size_t place)
{
    if (s->place == NULL)
        return place + (place >= s->label);
    for (size_t i = 0; i < s->n_columns; i++)
        if (s->place[i] == place)
            return i;
    return 0;
}

/* Refuses a cell that can be read both with a decimal point and with a decimal comma. The message
 * shows both values, and how to write each of them without ambiguity. */
static int refuse_ambiguous(const struct cells *c, const struct cells_cell *cell, const char *where)
{
    char wanted[4 * NUMBER_MAX + 300], plain[NUMBER_MAX + 1];
    struct notation_number w;
    enum notation_look look = notation_look(cell->p, cell->n, &w);
    assert(look == NOTATION_NUMBER);
    size_t n = 0;
    for (const char *p = w.digits; *p != '\0'; p++)
        if (*p >= '0' && *p <= '9')
            plain[n++] = *p;
    plain[n] = '\0';
    snprintf(
        wanted, sizeof wanted,
        "a number with one meaning, but the cell may mean %.15g or %.15g: leave out %s between "
        "thousands (\"%s\"), or write this cell with one more decimal (\"%s0\")",
        notation_value(&w, w.notations & (w.comma ? NOTATION_POINT : NOTATION_COMMA)),
        notation_value(&w, w.notations & (w.comma ? NOTATION_COMMA : NOTATION_POINT)),
        w.comma ? "commas" : "points", plain, w.digits);
    return lines_refuse(&c->spot, where, cell->p, cell->n, wanted);
}

/* Called after the first pass over the rows: decides the notation of each column's numbers. If a
 * column remains ambiguous, the error message shows its first cell with a comma, or else its first
 * cell with a point. */
static int settle_numbers(struct table *t, const struct sheet *sheets)
{
    if (t->columns == NULL)
        return t->point_seen || t->unclear.p == NULL
                   ? 0
                   : refuse_ambiguous(&t->unclear_at, &t->unclear, t->unclear_where);
    uint8_t separator = sheets[0].rows.separator;
    for (size_t i = 1; i < t->r->n_paths; i++)
        if (sheets[i].rows.separator != separator)
            /* The separator 0 means that the files have different separators. columns_read_as()
             * then does not use the separator to decide whether commas are decimal marks. */
            separator = 0;
    size_t open = columns_read_as(t->columns, separator);
    if (open == t->columns->n)
        return 0;
    char where[QUOTE_SHOWN + 64];
    struct cells_cell cell;
    struct cells c = sheets[0].rows;
    uint8_t mark = t->columns->at[open].comma_seen ? ',' : '.';
    size_t i = 0;
    while (!cells_find(&c, column_of(&sheets[i], open), mark, &cell) && i + 1 < t->r->n_paths)
        c = sheets[++i].rows;
    csv_sheet_use(t, &sheets[i]);
    say_column(t, column_of(&sheets[i], open), where);
    return refuse_ambiguous(&c, &cell, where);
}

/* Opens all files before any row is read. A wrong header in the last file is then reported at once,
 * and not only after all rows of the other files have been read. */
int csv_parse(struct dataset *d, const struct reader *r, const struct lines_file *files,
              char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct kind_rows kind;
    int err = lines_kind(r, "csv", files->path, &kind, error);
    if (err < 0)
        return err;
    char text[DATA_KIND_MAX];
    size_t *n_rows = calloc(r->n_paths, sizeof *n_rows);
    struct sheet *sheets = calloc(r->n_paths, sizeof *sheets);
    struct schema own = {0};
    struct table t = {.r = r,
                      .kind = &kind,
                      .columns = r->columns,
                      .plain_label = SIZE_MAX,
                      .schema = r->schema != NULL ? r->schema : &own,
                      .labels = labels_open(&kind, r->names, true)};
    if (n_rows == NULL || sheets == NULL || t.labels == NULL)
        err = file_no_memory(error, files->path);
    else if (r->more_labels)
        labels_more(t.labels);
    for (size_t i = 0; i < r->n_paths && err == 0; i++) {
        sheets[i].rows = cells_open(&files[i], error);
        err = csv_sheet_open(&t, &sheets[i]);
    }
    if (err == 0)
        err = read_rows(&t, sheets, n_rows);
    if (err == 0)
        err = settle_numbers(&t, sheets);
    if (err == 0)
        err = lines_settle(t.label != NO_LABEL ? t.labels : NULL, &kind, t.n_rows,
                           &sheets[r->n_paths - 1].rows.spot);
    if (err == 0)
        err = settle_features(&t, &kind, &sheets[0].rows, text);
    if (err == 0)
        err = fill_rows(&t, d, text, sheets, n_rows);
    labels_close(t.labels);
    schema_close(&own);
    for (size_t i = 0; sheets != NULL && i < r->n_paths; i++)
        csv_sheet_close(&sheets[i]);
    free(sheets);
    free(n_rows);
    return err;
}

/* The files stay in memory until the data set is filled, because both passes over the rows read the
 * files. */
int csv_read(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct lines_file *files;
    int err = lines_load(r, &files, error);
    if (err < 0)
        return err;
    const char *encoding;
    err = lines_normalise(files, r->n_paths, false, &encoding, error);
    if (err == 0)
        err = csv_parse(d, r, files, error);
    if (err == 0)
        d->encoding = encoding;
    lines_free(files, r->n_paths);
    return err;
}
