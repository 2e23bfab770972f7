/* nn/data/csv.c -- a table as text: a record a line, cells between separators, RFC 4180's quotes.
 *
 *   height,width,species        header: yes, no, or told by its looks: names and no number
 *   5.1,3.5,"Iris setosa"       one column is the label, all others numbers or categories
 *
 * First each file's sheet is opened: separator, columns, header. Then the rows
 * of all are read twice: once to check and to count, once to fill arrays of the right size.
 */
#include "nn/data/cells.h"
#include "nn/data/labels.h"
#include "nn/data/lines.h"
#include "nn/data/number.h"
#include "nn/data/quote.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_RECORDS = 64 /* A header's words stand in none of so many records behind it. */
};

static const size_t NO_LABEL = SIZE_MAX; /* Behind all columns. */

struct table
{
    const struct reader *r;
    const struct kind_rows *kind;
    struct labels *labels;
    struct columns *columns; /* NULL: numbers only. */
    struct dataset *d;       /* NULL in the first pass. */
    size_t n_columns, label; /* The label's column, from 0; NO_LABEL: rows have none. */
    struct cells header;     /* The first file's header; p is NULL where it has none. */
    bool doubtful;           /* A first row was taken for data, and some cell is no number. */
    bool words;              /* The first row of a file without a header is all words. */
    size_t n_rows;
};

/* ---- Opening a sheet. ---- */

/* Stands a word of the record at c further down in its own column, too? Names of columns do not. */
static int stands_below(const struct table *t, struct cells c, bool *below)
{
    struct cells first = c, row = c;
    struct cells_cell a, b = {.more = true};
    *below = false;
    for (int err = 0; b.more; err = 0) /* Past the record itself. */
        if ((err = cells_next(&row, &b)) < 0)
            return err;
    for (int k = 0; k < HEADER_RECORDS && !*below && cells_record(&row); k++) {
        first = c;
        a.more = b.more = true;
        for (size_t i = 0; a.more && b.more; i++) {
            int err = cells_next(&first, &a);
            err = err < 0 ? err : cells_next(&row, &b);
            if (err < 0)
                return err;
            *below |= i != t->label && cells_name(&a) && a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
        }
        while (b.more) {
            int err = cells_next(&row, &b);
            if (err < 0)
                return err;
        }
    }
    return 0;
}

/* Is a word of the record at c one that its column is known to have, from the training set or a run? */
static int has_known_word(const struct table *t, struct cells c, bool *known)
{
    struct cells_cell cell = {.more = true};
    const struct columns *columns = t->columns;
    *known = false;
    for (size_t i = 0; cell.more; i++) {
        int err = cells_next(&c, &cell);
        if (err < 0)
            return err;
        size_t place = i - (i > t->label);
        if (columns->settled && i != t->label && place < columns->n
            && columns->at[place].form == COLUMN_CATEGORIES && !columns->at[place].hashed)
            *known |= columns_code(columns, place, cell.p, cell.n) > 0;
    }
    return 0;
}

/* Does a sheet begin with a header? A name in a column of values says so, if no cell is a number:
 * a row with a number in it is a row, and is refused like any other where a cell is missing, so
 * that no sample is dropped without a word. A name in the label's column says nothing, as
 * labels may be names. In a table of words a row looks like that, too: it is told by a word of it that
 * comes again, or that is known; and then those of later files are rows, too. */
static int looks_header(struct table *t, struct cells c, bool *header)
{
    const struct cells begin = c;
    struct cells_cell cell = {.more = true};
    bool number = false, name = false, odd = false;
    for (size_t i = 0; cell.more; i++) {
        int err = cells_next(&c, &cell);
        if (err < 0)
            return err;
        number = number || cells_number(&cell);
        odd = odd || !cells_number(&cell);
        name = name || (i != t->label && cells_name(&cell));
    }
    *header = name && !number;
    if (*header && t->columns != NULL) {
        bool below = false, known;
        int err = has_known_word(t, begin, &known);
        if (err == 0 && !known && !t->words)
            err = stands_below(t, begin, &below);
        if (err < 0)
            return err;
        t->words = t->words || known || below;
        *header = !t->words;
    }
    t->doubtful = t->doubtful || (odd && !*header);
    return 0;
}

/* The column of that name in the record at c. */
static int find_column(struct table *t, struct cells c)
{
    const uint8_t *name = (const uint8_t *)t->r->label;
    struct cells_cell cell = {.more = true};
    size_t found = 0;
    for (size_t i = 0; cell.more; i++) {
        int err = cells_next(&c, &cell);
        if (err < 0)
            return err;
        if (!cells_is(&cell, name, strlen(t->r->label)))
            continue;
        found++;
        t->label = i;
    }
    if (found == 1)
        return 0;
    return file_error(
        c.spot.error, c.spot.path, "line %llu: found %zu columns named %s, expected one, the label",
        (unsigned long long)c.spot.line, found, quote_bytes(name, strlen(t->r->label)).text);
}

/* Cells of a row but its label. */
static size_t n_values(const struct table *t)
{
    return t->n_columns - (t->label != NO_LABEL);
}

/* How many cells of values a row of the kind has; 0: that is not known before all have been read. */
static size_t fixed_values(const struct table *t)
{
    bool settled = t->columns != NULL && t->columns->settled;
    if (!t->kind->fixed || (!settled && t->columns != NULL))
        return 0;
    return settled ? t->columns->n : t->kind->features;
}

/* Which column is the label? *named: a header's name says so. */
static int choose_label(struct table *t, const struct cells *c, bool *named)
{
    const char *label = t->r->label;
    t->label = t->n_columns - 1;
    if (t->r->rows == READER_BARE
        || (t->r->rows == READER_MAYBE && t->n_columns == fixed_values(t))) {
        t->label = NO_LABEL;
        return 0;
    }
    *named = label != NULL && label[strspn(label, "0123456789")] != '\0';
    if (label == NULL)
        return 0;
    if (*named && strcmp(t->r->header, "no") != 0)
        return find_column(t, *c);
    if (*named)
        return file_error(c->spot.error, c->spot.path,
                          "label=%.40s is a name, expected a number: header=no", label);
    unsigned long long i = strtoull(label, NULL, 10);
    if (i < 1 || i > t->n_columns)
        return file_error(c->spot.error, c->spot.path,
                          "found %zu columns, expected column %.20s to be the label", t->n_columns,
                          label);
    t->label = (size_t)i - 1;
    return 0;
}

/* The number of columns, which the first file fixes for all. What a hash stands for is told behind the
 * last row. */
static int check_columns(const struct table *t, const struct cells *c)
{
    size_t n = t->n_columns, values = fixed_values(t);
    bool bare = t->r->rows == READER_BARE, maybe = t->r->rows == READER_MAYBE;
    if (values > 0 && n != values + !bare && !(maybe && n == values))
        return file_error(
            c->spot.error, c->spot.path, "line %llu: found %zu cells, expected %zu (%s%s)",
            (unsigned long long)c->spot.line, n, values + !bare, kind_brief(t->r->kind).text,
            bare    ? ", and no label"
            : maybe ? " and a label, or one less without"
                    : " and a label");
    if (n < 2 && !bare && !maybe)
        return file_error(c->spot.error, c->spot.path,
                          "line %llu: found 1 cell, expected at least 2: values and a "
                          "label, with commas, semicolons or tabs between",
                          (unsigned long long)c->spot.line);
    if (n > (size_t)DATA_FEATURES_MAX + 1)
        return file_error(c->spot.error, c->spot.path,
                          "line %llu: found %zu cells, expected at most %d",
                          (unsigned long long)c->spot.line, n, DATA_FEATURES_MAX + 1);
    return 0;
}

/* One sentence for every way to have the wrong number of cells. */
static int refuse_cells(const struct cells *c, size_t found, size_t expected)
{
    return file_error(c->spot.error, c->spot.path, "line %llu: found %zu cells, expected %zu",
                      (unsigned long long)c->spot.line, found, expected);
}

/* A later file's header must say what the first one's says. */
static int check_header(const struct table *t, struct cells c)
{
    struct cells first = t->header;
    struct cells_cell a = {.more = true}, b;
    for (size_t i = 0; a.more; i++) {
        int err = cells_next(&c, &a);
        err = err < 0 ? err : cells_next(&first, &b);
        if (err < 0)
            return err;
        uint8_t text[CELLS_NAME_MAX];
        size_t n = cells_text(&b, text, sizeof text);
        char wanted[QUOTE_SHOWN + 80], where[40];
        snprintf(wanted, sizeof wanted, "%s as in the header of the first file",
                 quote_bytes(text, n).text);
        snprintf(where, sizeof where, "column %zu", i + 1);
        if (!cells_is(&a, text, n))
            return lines_refuse(&c.spot, where, a.p, a.n, wanted);
    }
    return 0;
}

/* The record at c is the header: note or check it, and go past it. */
static int take_header(struct table *t, struct cells *c)
{
    int err = 0;
    if (t->header.p != NULL)
        err = check_header(t, *c);
    else
        t->header = *c;
    struct cells_cell cell = {.more = true};
    while (err == 0 && cell.more)
        err = cells_next(c, &cell);
    return err;
}

/* A file without a row is a mistake: it would silently be no part of the set. */
static int refuse_empty(const struct cells *c, const char *what)
{
    return file_error(c->spot.error, c->spot.path, "found no rows%s, expected at least 1", what);
}

/* A table too wide for columns of every sort has numbers, as it is. */
static int open_columns(struct table *t, const struct cells *c)
{
    if (t->columns != NULL && t->columns->settled)
        t->columns->label = t->label;
    if (t->columns == NULL || t->columns->settled)
        return 0;
    enum columns_scale scale = t->columns->scale;
    if (n_values(t) > COLUMNS_MAX_N)
        t->columns = NULL;
    else if (columns_open(t->columns, n_values(t)) < 0)
        return file_no_memory(c->spot.error, c->spot.path);
    else {
        t->columns->label = t->label;
        t->columns->scale = scale;
    }
    return 0;
}

/* Find out how a file is written; c is left at its first row. */
static int open_sheet(struct table *t, struct cells *c)
{
    size_t n;
    bool header = strcmp(t->r->header, "yes") == 0, named = false;
    if (!cells_record(c))
        return refuse_empty(c, "");
    c->separator = cells_separator(c);
    int err = cells_count(*c, &n);
    if (err < 0)
        return err;
    if (t->n_columns == 0) { /* The first file. */
        t->n_columns = n;
        err = check_columns(t, c);
        err = err < 0 ? err : choose_label(t, c, &named);
        err = err < 0 ? err : open_columns(t, c);
    } else if (n != t->n_columns)
        err = refuse_cells(c, n, t->n_columns);
    if (err == 0 && strcmp(t->r->header, "auto") == 0 && !named)
        err = looks_header(t, *c, &header);
    if (err == 0 && (header || named))
        err = take_header(t, c);
    struct cells rows = *c;
    if (err == 0 && !cells_record(&rows))
        return refuse_empty(c, " behind the header");
    return err;
}

/* ---- Rows. ---- */

/* More words for the sentence of a refusal. */
__attribute__((format(printf, 2, 3))) static void hint(const struct cells *c, const char *format,
                                                       ...)
{
    size_t n = strlen(c->spot.error);
    va_list args;
    va_start(args, format);
    vsnprintf(c->spot.error + n, DATA_ERROR_MAX - n, format, args);
    va_end(args);
}

/* A cell is refused because of what was taken for granted, and who reads the sentence learns how
 * to say otherwise; not where a run says what its data are, or the training set has been read.
 *
 *   nobody said which column is the label, so that the last one is
 *       a cell there           perhaps another column is the label
 *       the first row's word   perhaps that is the label's column; later ones are slips in the data
 *   a first row was taken for data, with a cell that is no number
 *       a cell of it, or the second row's label where that is a number: perhaps it is a header */
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

/* The first pass notes the label, the second (t->d is there) stores its class. */
static int read_label(struct table *t, const struct cells *c, const struct cells_cell *cell)
{
    uint8_t text[LABELS_NAME_MAX + 1]; /* What is longer is no name. */
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

/* "column 3", and what the header calls it. */
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

/* A number of a table without columns: as it is, or divided. 0, or -EINVAL with what was expected. */
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

/* A cell of a column of values against what the column holds. */
static int note_value(struct table *t, const struct cells *c, const struct cells_cell *cell,
                      size_t column)
{
    char where[QUOTE_SHOWN + 64], wanted[NUMBER_WANTED_MAX];
    const char *expected = wanted;
    size_t place = column - (column > t->label);
    float x;
    int err = t->columns != NULL ? columns_note(t->columns, place, cell->p, cell->n, &expected)
                                 : plain_value(t, cell, &x, wanted);
    if (err == -ENOMEM)
        return file_no_memory(c->spot.error, c->spot.path);
    if (err == 0)
        return 0;
    say_column(t, column, where);
    err = lines_refuse(&c->spot, where, cell->p, cell->n, expected);
    return explain(t, c, column, cells_name(cell), err);
}

/* The first pass checks what it is, the second stores it; the columns behind that of the label move
 * up by one. */
static int read_value(struct table *t, const struct cells *c, const struct cells_cell *cell,
                      size_t column)
{
    if (t->d == NULL)
        return note_value(t, c, cell, column);
    char wanted[NUMBER_WANTED_MAX];
    size_t place = column - (column > t->label);
    float x = 0;
    int err = 0;
    if (t->columns != NULL)
        x = columns_code(t->columns, place, cell->p, cell->n);
    else
        err = plain_value(t, cell, &x, wanted);
    t->d->rows[t->n_rows * n_values(t) + place] = x;
    return err;
}

/* A cell is wrong. Where the record has too few or too many, that is why. */
static int refuse_row(const struct table *t, const struct cells *c, bool more, size_t n, int err)
{
    char kept[DATA_ERROR_MAX];
    size_t left = 0;
    memcpy(kept, c->spot.error, sizeof kept);
    if (more && cells_count(*c, &left) < 0)
        return -EINVAL;
    if (err == -EINVAL && n + left != t->n_columns)
        return refuse_cells(c, n + left, t->n_columns);
    memcpy(c->spot.error, kept, sizeof kept);
    return err;
}

/* Cells beyond the last column are only counted, so that the sentence says how many there are. */
static int read_row(struct table *t, struct cells *c)
{
    struct cells_cell cell = {.more = true};
    size_t i = 0;
    for (; cell.more; i++) {
        int err = cells_next(c, &cell);
        if (err < 0)
            return err;
        if (i >= t->n_columns)
            continue;
        err = i == t->label ? read_label(t, c, &cell) : read_value(t, c, &cell, i);
        if (err < 0)
            return refuse_row(t, c, cell.more, i + 1, err);
    }
    if (i != t->n_columns)
        return refuse_cells(c, i, t->n_columns);
    t->n_rows++;
    return 0;
}

/* The rows of all files, from where their sheets were opened. */
static int read_rows(struct table *t, const struct cells *sheets, size_t *n_rows)
{
    t->n_rows = 0;
    for (size_t i = 0; i < t->r->n_paths; i++) {
        struct cells c = sheets[i];
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

/* The second pass: all has been checked and counted, so it cannot fail on a cell. */
static int fill_rows(struct table *t, struct dataset *d, const char *kind,
                     const struct cells *sheets, size_t *n_rows)
{
    const struct lines_spot *spot = &sheets[0].spot;
    size_t n = t->n_rows;
    if (dataset_init(d, kind, n, n_values(t)) < 0)
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

/* The first pass is over: how many inputs do the columns come to? */
static int settle_features(struct table *t, struct kind_rows *kind, const struct cells *c,
                           char text[DATA_KIND_MAX])
{
    size_t n = t->columns != NULL ? columns_inputs(t->columns) : n_values(t);
    if (kind->fixed && n != kind->features)
        return file_error(c->spot.error, c->spot.path,
                          "found columns of %zu inputs, expected %" PRIu32 " (%s)", n,
                          kind->features, kind_brief(t->r->kind).text);
    kind->features = (uint32_t)n;
    if (t->columns != NULL)
        t->columns->settled = true;
    return lines_print_kind(kind, "csv", &c->spot, text);
}

/* The first pass is over: how are numbers written? Where a column can be read in two ways, its first
 * cell with a comma is shown. */
static int settle_numbers(const struct table *t, const struct cells *sheets)
{
    size_t open = t->columns != NULL ? columns_read_as(t->columns, sheets[0].separator) : 0;
    if (t->columns == NULL || open == t->columns->n)
        return 0;
    char where[QUOTE_SHOWN + 64];
    struct cells_cell cell;
    struct cells c = sheets[0];
    size_t column = open + (open >= t->label);
    say_column(t, column, where);
    for (size_t i = 1; !cells_find(&c, column, ',', &cell) && i < t->r->n_paths; i++)
        c = sheets[i];
    return lines_refuse(&c.spot, where, cell.p, cell.n,
                        "a number that can be read in one way: is the comma a decimal mark (then "
                        "write a point) or between thousands (then leave it out)?");
}

/* All sheets are opened before a row is read, so that a wrong header in the last file is said
 * before a minute is spent on the first. */
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
    struct cells *sheets = calloc(r->n_paths, sizeof *sheets);
    struct table t = {
        .r = r, .kind = &kind, .columns = r->columns, .labels = labels_open(&kind, r->names, true)};
    if (n_rows == NULL || sheets == NULL || t.labels == NULL)
        err = file_no_memory(error, files->path);
    else if (r->more_labels)
        labels_more(t.labels);
    for (size_t i = 0; i < r->n_paths && err == 0; i++) {
        sheets[i] = cells_open(&files[i], error);
        err = open_sheet(&t, &sheets[i]);
    }
    if (err == 0)
        err = read_rows(&t, sheets, n_rows);
    if (err == 0)
        err = settle_numbers(&t, sheets);
    if (err == 0)
        err = lines_settle(t.label != NO_LABEL ? t.labels : NULL, &kind, t.n_rows,
                           &sheets[r->n_paths - 1].spot);
    if (err == 0)
        err = settle_features(&t, &kind, &sheets[0], text);
    if (err == 0)
        err = fill_rows(&t, d, text, sheets, n_rows);
    labels_close(t.labels);
    free(sheets);
    free(n_rows);
    return err;
}

/* The files stay in memory until the set is filled: both passes read them there. */
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
