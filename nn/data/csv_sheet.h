/* nn/data/csv_sheet.h -- the layout of one file of a table: separator, header, label, order of
 * columns.
 *
 * Each file is opened as a "sheet" before any row is read (nn/data/csv.c). The first header becomes
 * the schema of all files, unless the training set or the run provides a schema (nn/data/schema.h).
 * All later headers are matched to the schema.
 */
#ifndef NN_DATA_CSV_SHEET_H
#define NN_DATA_CSV_SHEET_H

#include "nn/data/cells.h"
#include "nn/data/labels.h"
#include "nn/data/quote.h"
#include "nn/data/schema.h"

/* Value of `label`, the index of the label's column, in tables without labels. */
static const size_t NO_LABEL = SIZE_MAX;

/* Layout of one file of the table. */
struct sheet
{
    struct cells rows;   /* Read position of the first row of data. */
    struct cells header; /* Read position of the header. p is NULL if the file has no header. */
    /* n_columns: number of columns. label: index of the label's column, from 0, or NO_LABEL if the
     * rows have no labels. */
    size_t n_columns, label;
    /* For each column of the file: its index among the values of a row (as in struct schema_found).
     * Owned. NULL: the columns of the file have the order of the values. */
    uint32_t *place;
    /* True: the header ends in a separator, so rows may end in a separator, too. n_columns does not
     * count the empty cell after this separator. */
    bool trailing;
};

struct table
{
    const struct reader *r;
    const struct kind_rows *kind;
    struct labels *labels;
    struct columns *columns; /* Types of the columns. NULL: all columns are numbers. */
    /* The data set to fill. NULL in the first pass, which only checks and counts. */
    struct dataset *d;
    /* Names of the columns: the schema of struct reader. If the reader has none, a schema that
     * csv_parse() has made. */
    struct schema *schema;
    bool adopted; /* True: `schema` was made from the first header of these files. */
    /* Number of columns without the label, the same in all files. 0: not known yet. */
    size_t values;
    size_t plain_label; /* Index of the label's column in files without a header. */
    /* `n_columns`, `label`, `place`, `trailing` and `header` describe the file that is being opened
     * or read. */
    size_t n_columns, label;
    const uint32_t *place;
    bool trailing;
    struct cells header;
    /* True: the first record of the file was taken for a row of data and not for a header, although
     * one of its cells is not a number. */
    bool doubtful;
    /* True: a row that has only words was found. If the first record of another file has only
     * words, that record is therefore taken for a row and not for a header. */
    bool words;
    size_t n_rows;
    /* Used only if `columns` is NULL: all numbers must then have a point as decimal mark.
     * point_seen: some cell can only be read with a decimal point. `unclear`: the first cell whose
     * point may also separate thousands. `unclear_at`: the record of that cell. If the separator
     * between cells is a comma, all points are decimal points, and none of these fields is set. */
    bool point_seen;
    struct cells_cell unclear;
    struct cells unclear_at;
    char unclear_where[QUOTE_SHOWN + 64];
};

/* Detects the layout of a file and sets sheet->rows to its first row. Returns 0, -EINVAL with a
 * message, or -ENOMEM. The caller closes the sheet, also after an error. */
__attribute__((warn_unused_result)) int csv_sheet_open(struct table *t, struct sheet *sheet);
void csv_sheet_close(struct sheet *sheet);

/* Selects `sheet` as the file of the table whose rows are read next. */
void csv_sheet_use(struct table *t, const struct sheet *sheet);

/* Returns the index of a column's value in a stored row. The column must not be the label's. */
size_t csv_sheet_place(const struct table *t, size_t column);

/* Writes the error message for a record with the wrong number of cells. Returns -EINVAL. */
int csv_sheet_refuse(const struct cells *c, size_t found, size_t expected);

#endif
