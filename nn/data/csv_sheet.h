/* nn/data/csv_sheet.h -- layout of one file of a table: separator, header, label, order of columns.
 *
 * The sheet of each file is opened before any row is read (nn/data/csv.c). The first header becomes
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
    /* Number of columns, and the label's column from 0. `label` is NO_LABEL for rows without
     * labels. */
    size_t n_columns, label;
    /* Place of each column, as in struct schema_found. NULL: the values are in order. Owned. */
    uint32_t *place;
    /* The header ends in a separator, so rows may also end in a separator. n_columns does not
     * count the empty cell behind the separator. */
    bool trailing;
};

struct table
{
    const struct reader *r;
    const struct kind_rows *kind;
    struct labels *labels;
    struct columns *columns; /* Types of the columns. NULL: all columns are numbers. */
    struct dataset *d;       /* The set to fill. NULL in the first pass. */
    struct schema *schema;   /* Schema of the reader, or of csv_parse() if the reader has none. */
    bool adopted;            /* True: `schema` was made from the first header of these files. */
    size_t values;      /* Number of columns of values, the same in all files. 0: not known yet. */
    size_t plain_label; /* The label's column in files without a header. */
    /* The following fields describe the sheet that is being opened or read. */
    size_t n_columns, label;
    const uint32_t *place;
    bool trailing;
    struct cells header;
    bool doubtful; /* The first record was taken as a row although a cell is not a number. */
    bool words;    /* The first row of a file without a header consists of words. */
    size_t n_rows;
    /* Only if `columns` is NULL, so that all numbers have decimal points. point_seen: a cell can be
     * read with a decimal point only. `unclear` and the record at `unclear_at`: first cell of a
     * file without commas between cells that can also be read with points between thousands. */
    bool point_seen;
    struct cells_cell unclear;
    struct cells unclear_at;
    char unclear_where[QUOTE_SHOWN + 64];
};

/* Detects the layout of a file. Sets sheet->rows to the first row. Returns 0, -EINVAL with a
 * message, or -ENOMEM. The caller closes the sheet, also after an error. */
__attribute__((warn_unused_result)) int csv_sheet_open(struct table *t, struct sheet *sheet);
void csv_sheet_close(struct sheet *sheet);

/* Selects the sheet whose rows are read next. */
void csv_sheet_use(struct table *t, const struct sheet *sheet);

/* Returns the index of a column among the values of a row. Undefined for the label's column. */
size_t csv_sheet_place(const struct table *t, size_t column);

/* Writes the error message for a record with the wrong number of cells. Returns -EINVAL. */
int csv_sheet_refuse(const struct cells *c, size_t found, size_t expected);

#endif
