/* nn/data/csv_sheet.c -- opens the files of a table: finds the header and the meaning of each
 * column. */
#include "nn/data/csv_sheet.h"

#include "nn/data/quote.h"
#include "nn/math/number.h"
#include "nn/math/spelling.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* To recognise a header, the words of the first record are searched for in this number of later
     * records. */
    HEADER_RECORDS = 64
};

/* ---- Detection of a header. ---- */

/* Sets *below to true if a word of the record at c occurs again in the same column of a later
 * record. The record is then a row of data, because names of columns do not occur again. The
 * label's column is ignored, because labels occur again in any case. Returns 0, or -EINVAL with a
 * message. */
static int stands_below(const struct table *t, struct cells c, bool *below)
{
    struct cells first = c, row = c;
    struct cells_cell a, b = {.more = true};
    *below = false;
    /* Moves `row` past the record at c, to the next record. */
    for (int err = 0; b.more; err = 0)
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

size_t csv_sheet_place(const struct table *t, size_t column)
{
    return t->place != NULL ? t->place[column] : column - (column > t->label);
}

/* Sets *known to true if a word of the record at c is a known category of its column. Categories
 * are known from the training set or from a run. Returns 0, or -EINVAL with a message. */
static int has_known_word(const struct table *t, struct cells c, bool *known)
{
    struct cells_cell cell = {.more = true};
    const struct columns *columns = t->columns;
    *known = false;
    for (size_t i = 0; cell.more; i++) {
        int err = cells_next(&c, &cell);
        if (err < 0)
            return err;
        /* `place` is the index among the values of a row for column i of the file. The header is
         * not matched yet, so the columns of the file are assumed to be in the order of the known
         * columns. */
        size_t place = i - (i > t->label);
        if (columns->settled && i != t->label && place < columns->n
            && columns->at[place].form == COLUMN_CATEGORIES && !columns->at[place].hashed)
            *known |= columns_code(columns, place, cell.p, cell.n) > 0;
    }
    return 0;
}

/* Sets *header to true if the record at c looks like a header: no cell is a number, and a column
 * other than the label's has a name. In a table of words, rows have no numbers either. There the
 * record is a row if one of its words is a known category or occurs again in later records. The
 * first records of later files are then rows, too. */
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

/* Reads the names of t->n_columns columns from the record at c. If a cell is empty, the name of the
 * column is its number. */
static int read_cells(const struct table *t, struct cells c, struct schema_names *names)
{
    struct cells_cell cell = {.more = true};
    if (schema_names_open(names, t->n_columns) < 0)
        return file_no_memory(c.spot.error, c.spot.path);
    int err = 0;
    for (size_t i = 0; err == 0 && i < t->n_columns; i++) {
        uint8_t *text = NULL;
        err = cells_next(&c, &cell);
        if (err < 0)
            break;
        char number[32];
        if (cell.n == 0) {
            cell.n = (size_t)snprintf(number, sizeof number, "column %zu", i + 1);
            cell.p = (const uint8_t *)number;
        }
        if (cell.escaped && (text = malloc(cell.n)) == NULL)
            err = -ENOMEM;
        else
            err = schema_names_add(names, text != NULL ? text : cell.p,
                                   text != NULL ? cells_text(&cell, text, cell.n) : cell.n);
        free(text);
        if (err == -EINVAL)
            file_error(c.spot.error, c.spot.path,
                       "line %llu, column %zu: found a name with a NUL byte, expected text",
                       (unsigned long long)c.spot.line, i + 1);
    }
    if (err == -ENOMEM)
        file_no_memory(c.spot.error, c.spot.path);
    if (err < 0)
        schema_names_close(names);
    return err;
}

/* Reads the column names of a header. Refuses a header with two equal names. */
static int read_names(const struct table *t, struct cells c, struct schema_names *names)
{
    bool twice = false;
    size_t column[2] = {0};
    int err = read_cells(t, c, names);
    if (err < 0)
        return err;
    err = schema_names_twice(names, &twice, column);
    if (err == -ENOMEM)
        err = file_no_memory(c.spot.error, c.spot.path);
    if (err == 0 && twice)
        err = file_error(c.spot.error, c.spot.path,
                         "line %llu: found columns %zu and %zu both named %s, expected names that "
                         "differ",
                         (unsigned long long)c.spot.line, column[0] + 1, column[1] + 1,
                         quote_string(schema_name(names, column[1])).text);
    if (err < 0)
        schema_names_close(names);
    return err;
}

/* Writes the error message for a header that lacks the column that label= names. The message lists
 * the names and suggests the most similar one. */
static int refuse_label(const struct cells *c, const struct schema_names *names, const char *label)
{
    char list[SCHEMA_WHY_MAX] = "";
    struct spelling near = {.found = label};
    for (size_t i = 0; i < names->n; i++)
        spelling_try(&near, schema_name(names, i));
    const char *meant = spelling_meant(&near);
    schema_names_list(names, NULL, names->n, list, sizeof list);
    return file_error(c->spot.error, c->spot.path,
                      "line %llu: found columns %s, expected one named %s, the label%s%s%s",
                      (unsigned long long)c->spot.line, list, quote_string(label).text,
                      meant != NULL ? ", did you mean " : "",
                      meant != NULL ? quote_string(meant).text : "", meant != NULL ? "?" : "");
}

/* Sets t->label to the column that the option label= names. The record at the read position c is
 * the header. */
static int find_column(struct table *t, struct cells c)
{
    const struct cells begin = c;
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
    if (found > 1)
        return file_error(c.spot.error, c.spot.path,
                          "line %llu: found %zu columns named %s, expected one, the label",
                          (unsigned long long)c.spot.line, found,
                          quote_bytes(name, strlen(t->r->label)).text);
    struct schema_names names;
    int err = read_cells(t, begin, &names);
    if (err < 0)
        return err;
    err = refuse_label(&begin, &names, t->r->label);
    schema_names_close(&names);
    return err;
}

/* Returns the number of columns, without the label, that the kind of the data requires. 0: the
 * number is known only after all rows have been read. */
static size_t fixed_values(const struct table *t)
{
    bool settled = t->columns != NULL && t->columns->settled;
    if (!t->kind->fixed || (!settled && t->columns != NULL))
        return 0;
    return settled ? t->columns->n : t->kind->features;
}

/* Sets t->label to the label's column. Sets *named to true if the option label= is a name and not a
 * number; the file then must have a header. */
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
        return file_error(
            c->spot.error, c->spot.path,
            "label=%.40s is a name, but header=no says that there are no names: expected "
            "a column number",
            label);
    unsigned long long i = strtoull(label, NULL, 10);
    if (i < 1 || i > t->n_columns)
        return file_error(c->spot.error, c->spot.path,
                          "found %zu column%s, expected column %.20s to be the label", t->n_columns,
                          number_plural(t->n_columns), label);
    t->label = (size_t)i - 1;
    return 0;
}

/* Checks the number of columns of the first file. All files must have this number. If the kind of
 * the data has only a hash of the columns, the number of inputs is checked later, after the last
 * row. */
static int check_columns(const struct table *t, const struct cells *c)
{
    size_t n = t->n_columns, values = fixed_values(t);
    bool bare = t->r->rows == READER_BARE, maybe = t->r->rows == READER_MAYBE;
    if (values > 0 && n != values + !bare && !(maybe && n == values))
        return file_error(
            c->spot.error, c->spot.path, "line %llu: found %zu cells, expected %zu (%s%s)",
            (unsigned long long)c->spot.line, n, values + !bare, kind_brief(t->r->kind).text,
            bare    ? ", and no label"
            : maybe ? " and a label, or one cell fewer without a label"
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

int csv_sheet_refuse(const struct cells *c, size_t found, size_t expected)
{
    return file_error(c->spot.error, c->spot.path, "line %llu: found %zu cells, expected %zu",
                      (unsigned long long)c->spot.line, found, expected);
}

/* Moves the read position c to the next record. */
static int pass_record(struct cells *c)
{
    struct cells_cell cell = {.more = true};
    int err = 0;
    while (err == 0 && cell.more)
        err = cells_next(c, &cell);
    return err;
}

__attribute__((format(printf, 3, 4))) static void note(const struct table *t, const char *path,
                                                       const char *format, ...)
{
    char sentence[READER_NOTE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    size_t n = t->r->note != NULL ? strlen(t->r->note) : READER_NOTE_MAX;
    if (n + strlen(path) + strlen(sentence) + 5 < READER_NOTE_MAX)
        snprintf(t->r->note + n, READER_NOTE_MAX - n, "%s%s: %s", n > 0 ? "; " : "", path,
                 sentence);
}

/* Creates the schema from the first header, which is the record at c. The headers of later files
 * are matched to this schema. */
static int adopt_header(struct table *t, const struct cells *c)
{
    struct schema_names names;
    int err = read_names(t, *c, &names);
    if (err < 0)
        return err;
    if (schema_adopt(t->schema, &names, t->label) < 0)
        err = file_no_memory(c->spot.error, c->spot.path);
    schema_names_close(&names);
    t->adopted = true;
    return err;
}

/* Refuses a file without rows. Otherwise the data set would silently lack this file. */
static int refuse_empty(const struct cells *c, const char *what)
{
    return file_error(c->spot.error, c->spot.path, "found no rows%s, expected at least 1", what);
}

/* Allocates t->columns when the first file is opened. A table of more than COLUMNS_MAX_N columns
 * gets no t->columns: its columns must be numbers, and they are not scaled. */
static int open_columns(struct table *t, const struct cells *c)
{
    if (t->columns != NULL && t->columns->settled)
        t->columns->label = t->label;
    if (t->columns == NULL || t->columns->settled)
        return 0;
    enum columns_scale scale = t->columns->scale;
    if (t->values > COLUMNS_MAX_N)
        t->columns = NULL;
    else if (columns_open(t->columns, t->values) < 0)
        return file_no_memory(c->spot.error, c->spot.path);
    else {
        t->columns->label = t->label;
        t->columns->scale = scale;
    }
    return 0;
}

/* Counts the cells of the record at c into *n. If the record ends in a separator with nothing after
 * it, sets *empty to true and does not count the empty last cell. */
static int ends_empty(struct cells c, size_t *n, bool *empty)
{
    struct cells_cell cell = {.more = true};
    for (*n = 0; cell.more; ++*n) {
        int err = cells_next(&c, &cell);
        if (err < 0)
            return err;
    }
    *empty = cell.n == 0 && *n > 1;
    *n -= *empty;
    return 0;
}

/* Counts the columns. A separator at the end of the first record makes an empty last column. That
 * column always counts if the first record cannot be a header. If the first record may be a header,
 * the column counts only if the second record has a value in it. */
static int count_columns(struct table *t, const struct cells *c)
{
    struct cells next = *c;
    struct cells_cell cell = {.more = true};
    size_t n;
    bool empty = false, next_empty = false, named = strcmp(t->r->header, "yes") == 0;
    bool number = false;
    for (; cell.more;) {
        int err = cells_next(&next, &cell);
        if (err < 0)
            return err;
        number = number || cells_number(&cell);
    }
    int err = ends_empty(*c, &t->n_columns, &empty);
    t->trailing = empty && (named || (!number && strcmp(t->r->header, "no") != 0));
    if (err == 0 && t->trailing && cells_record(&next)) {
        err = ends_empty(next, &n, &next_empty);
        t->trailing = n == t->n_columns;
    }
    t->n_columns += empty && !t->trailing;
    return err;
}

/* Opens the first file if no schema is known: finds the label's column, and detects whether the
 * first record is a header. */
static int open_first(struct table *t, struct cells *c, bool *header)
{
    bool named = false;
    int err = check_columns(t, c);
    err = err < 0 ? err : choose_label(t, c, &named);
    t->values = t->n_columns - (t->label != NO_LABEL);
    t->plain_label = t->label;
    err = err < 0 ? err : open_columns(t, c);
    if (err == 0 && strcmp(t->r->header, "auto") == 0 && !named)
        err = looks_header(t, *c, header);
    *header = *header || named;
    return err;
}

/* Finds the label's column for a header that is matched to known names. Sets *label to the column
 * that label= requests, or to SIZE_MAX if label= requests no column. A number in label= is ignored
 * if the label's name is known from the training files or from the first file. */
static int asked_label(const struct table *t, struct cells *c, const struct schema_names *names,
                       size_t *label)
{
    const char *text = t->r->label;
    *label = SIZE_MAX;
    if (text == NULL || t->r->rows == READER_BARE)
        return 0;
    bool number = text[strspn(text, "0123456789")] == '\0';
    if (number && (t->adopted || t->r->label_known))
        return 0;
    for (size_t i = 0; !number && i < names->n; i++)
        if (strcmp(schema_name(names, i), text) == 0)
            *label = i;
    if (number) {
        unsigned long long i = strtoull(text, NULL, 10);
        *label = i >= 1 && i <= names->n ? (size_t)i - 1 : SIZE_MAX;
    }
    if (*label != SIZE_MAX)
        return 0;
    if (!number)
        return refuse_label(c, names, text);
    return file_error(c->spot.error, c->spot.path,
                      "line %llu: found %" PRIu32
                      " column%s, expected column %.20s to be the label",
                      (unsigned long long)c->spot.line, names->n, number_plural(names->n), text);
}

/* Matches the header, the record at the read position c, to the schema, and sets the sheet's order
 * of columns. */
static int match_header(struct table *t, struct cells *c, struct sheet *sheet)
{
    struct schema_names names;
    struct schema_found found = {0};
    char why[SCHEMA_WHY_MAX];
    bool first = t->values == 0;
    struct schema_ask ask = {.labelled = t->r->rows == READER_LABELLED || !first,
                             .bare = t->r->rows == READER_BARE};
    /* If the first file has no label, no label is read from later files. */
    if (!first && t->label == NO_LABEL)
        ask = (struct schema_ask){.bare = true};
    int err = read_names(t, *c, &names);
    if (err < 0)
        return err;
    err = asked_label(t, c, &names, &ask.label);
    if (err == 0) {
        err = schema_match(t->schema, &names, &ask, &found, why);
        if (err == -ENOMEM)
            file_no_memory(c->spot.error, c->spot.path);
        else if (err < 0)
            file_error(c->spot.error, c->spot.path, "line %llu: %s",
                       (unsigned long long)c->spot.line, why);
    }
    schema_names_close(&names);
    if (err < 0)
        return err;
    sheet->place = found.place;
    t->label = found.label;
    if (found.note[0] != '\0')
        note(t, c->spot.path, "%s", found.note);
    if (!first)
        return 0;
    t->values = t->schema->n;
    if (fixed_values(t) > 0 && t->values != fixed_values(t))
        return file_error(c->spot.error, c->spot.path,
                          "line %llu: found %zu column%s of values, expected %zu (%s)",
                          (unsigned long long)c->spot.line, t->values, number_plural(t->values),
                          fixed_values(t), kind_brief(t->r->kind).text);
    return open_columns(t, c);
}

/* For a table with known column names: sets *header to true if the first record of a file is a
 * header. The record is a header if it has all known names, if it has the name in label=, or if it
 * looks like a header (looks_header()). */
static int known_header(struct table *t, const struct cells *c, bool *header)
{
    struct schema_names names;
    const char *text = t->r->label;
    size_t label = t->label;
    if (strcmp(t->r->header, "auto") != 0)
        return 0;
    char error[DATA_ERROR_MAX];
    struct cells copy = *c;
    /* Two equal cells are valid in a row of data, but read_names() refuses them as duplicate names.
     * That refusal is no error here, so the message goes to a buffer that is not used. */
    copy.spot.error = error;
    if (read_names(t, copy, &names) == 0) {
        *header = schema_is_in(t->schema, &names);
        bool named = text != NULL && text[strspn(text, "0123456789")] != '\0';
        for (size_t i = 0; named && i < names.n; i++)
            *header |= strcmp(schema_name(&names, i), text) == 0;
        schema_names_close(&names);
    }
    if (*header)
        return 0;
    if (t->values == 0)
        t->label = t->n_columns - 1;
    int err = looks_header(t, *c, header);
    t->label = label;
    return err;
}

/* Opens a file without a header, if the names of the columns are known. The columns are assumed to
 * be in the known order. */
static int open_unnamed(struct table *t, struct cells *c)
{
    char list[SCHEMA_WHY_MAX];
    bool header = false;
    schema_list(t->schema, list);
    if (t->values > 0 && t->n_columns != t->values + (t->label != NO_LABEL))
        return csv_sheet_refuse(c, t->n_columns, t->values + (t->label != NO_LABEL));
    if (t->values > 0 && t->label != NO_LABEL)
        t->label = t->plain_label < t->n_columns ? t->plain_label : t->n_columns - 1;
    int err = t->values == 0 ? open_first(t, c, &header) : 0;
    if (err == 0 && t->schema->n > 0 && t->values != t->schema->n)
        err = csv_sheet_refuse(c, t->n_columns, t->schema->n + (t->label != NO_LABEL));
    if (err == 0)
        note(t, c->spot.path,
             "found no header, so the columns of this file are assumed to be in the order "
             "of %s",
             list);
    return err;
}

int csv_sheet_open(struct table *t, struct sheet *sheet)
{
    struct cells *c = &sheet->rows;
    bool header = strcmp(t->r->header, "yes") == 0, first = t->values == 0;
    if (!cells_record(c))
        return refuse_empty(c, "");
    c->separator = cells_separator(c);
    size_t n_before = t->n_columns, label = t->label;
    int err = count_columns(t, c);
    if (err < 0)
        return err;
    sheet->label = label;
    if (t->schema->named) {
        err = known_header(t, c, &header);
        if (err == 0)
            err = header ? match_header(t, c, sheet) : open_unnamed(t, c);
    } else {
        if (!first && t->n_columns != n_before)
            err = csv_sheet_refuse(c, t->n_columns, n_before);
        else if (first)
            err = open_first(t, c, &header);
        else if (strcmp(t->r->header, "auto") == 0)
            err = looks_header(t, *c, &header);
        if (err == 0 && header)
            err = adopt_header(t, c);
    }
    if (err == 0 && header) {
        sheet->header = *c;
        err = pass_record(c);
    }
    sheet->n_columns = t->n_columns;
    sheet->label = t->label;
    sheet->trailing = t->trailing;
    struct cells rows = *c;
    if (err == 0 && !cells_record(&rows))
        return refuse_empty(c, " after the header");
    return err;
}

void csv_sheet_use(struct table *t, const struct sheet *sheet)
{
    t->n_columns = sheet->n_columns;
    t->label = sheet->label;
    t->place = sheet->place;
    t->trailing = sheet->trailing;
    t->header = sheet->header;
}

void csv_sheet_close(struct sheet *sheet)
{
    free(sheet->place);
    sheet->place = NULL;
}
