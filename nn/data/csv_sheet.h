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

static const size_t NO_LABEL = SIZE_MAX; /* Column of the label in a table without labels. */

/* Layout of one file of the table. */
struct sheet
{
    struct cells rows;   /* Position of the first row. */
    struct cells header; /* Position of the header. p is NULL if the file has no header. */
    /* Number of columns. Index of the label's column, from 0; NO_LABEL: the rows have no labels. */
    size_t n_columns, label;
    /* Place of each column among the values, as in struct schema_found, owned. NULL: the values are
     * in order. */
    uint32_t *place;
    /* True: the header ends in a separator, so rows may end in a separator, too. n_columns does not
     * count the empty cell after it. */
    bool trailing;
};

struct table
{
    const struct reader *r;
    const struct kind_rows *kind;
    struct labels *labels;
    struct columns *columns; /* Types of the columns. NULL: all columns are numbers. */
    struct dataset *d;       /* The set to fill. NULL in the first pass. */
    /* Schema of the reader. If the reader gives no schema, a local one of csv_parse(). */
    struct schema *schema;
    bool adopted;       /* True: `schema` was made from the first header of these files. */
    size_t values;      /* Number of columns of values, the same in all files. 0: not known yet. */
    size_t plain_label; /* Index of the label's column in files without a header. */
    /* The next five fields describe the file that is being opened or read. */
    size_t n_columns, label;
    const uint32_t *place;
    bool trailing;
    struct cells header;
    /* True: the first record was read as a row although one of its cells is not a number. */
    bool doubtful;
    /* True: a row of words was found, so a first record of words is a row and not a header. */
    bool words;
    size_t n_rows;
    /* Used only if `columns` is NULL: all numbers must then have decimal points. point_seen: some
     * cell can only be read with a decimal point. `unclear`, in the record at `unclear_at`: the
     * first cell that can also be read with points between thousands. Files with commas as
     * separators have no unclear cells. */
    bool point_seen;
    struct cells_cell unclear;
    struct cells unclear_at;
    char unclear_where[QUOTE_SHOWN + 64];
};

/* Detects the layout of a file and sets sheet->rows to its first row. Returns 0, -EINVAL with a
 * message, or -ENOMEM. The caller closes the sheet, also after an error. */
__attribute__((warn_unused_result)) int csv_sheet_open(struct table *t, struct sheet *sheet);
void csv_sheet_close(struct sheet *sheet);

/* Makes `sheet` the file that is read next. */
void csv_sheet_use(struct table *t, const struct sheet *sheet);

/* Returns the index of a column among the values of a row. Not for the label's column. */
size_t csv_sheet_place(const struct table *t, size_t column);

/* Writes the error message for a record with the wrong number of cells. Returns -EINVAL. */
int csv_sheet_refuse(const struct cells *c, size_t found, size_t expected);

#endif
