/* nn/data/csv_sheet.h -- how one file of a table is written: separator, header, label, order of columns.
 *
 * Each file's sheet is opened before a row is read (nn/data/csv.c). The header of the first one is adopted as
 * the schema of all, unless a schema is known from the training set or the run (nn/data/schema.h); each later
 * header is matched to it.
 */
#ifndef NN_DATA_CSV_SHEET_H
#define NN_DATA_CSV_SHEET_H

#include "nn/data/cells.h"
#include "nn/data/labels.h"
#include "nn/data/schema.h"

static const size_t NO_LABEL = SIZE_MAX; /* Behind all columns. */

/* One file of the table. */
struct sheet
{
    struct cells rows;       /* At its first row. */
    struct cells header;     /* p is NULL where it has none. */
    size_t n_columns, label; /* The label's column, from 0; NO_LABEL: rows have none. */
    uint32_t *place;         /* As in struct schema_found; NULL: values are in order. Owned. */
    bool
        trailing; /* The header ends in a separator: so may rows. n_columns is without that cell. */
};

struct table
{
    const struct reader *r;
    const struct kind_rows *kind;
    struct labels *labels;
    struct columns *columns; /* NULL: numbers only. */
    struct dataset *d;       /* NULL in the first pass. */
    struct schema *schema;   /* The reader's, or our own. */
    bool adopted;            /* It is that of our first header. */
    size_t values;           /* Columns of values, which all files have. */
    size_t plain_label;      /* The label's column in files without a header. */
    /* State of the sheet that is being opened or read. */
    size_t n_columns, label;
    const uint32_t *place;
    bool trailing;
    struct cells header;
    bool doubtful; /* A first row was taken for data, and some cell is no number. */
    bool words;    /* The first row of a file without a header is all words. */
    size_t n_rows;
};

/* Find out how a file is written; sheet->rows is left at its first row. 0; -EINVAL with a sentence; or
 * -ENOMEM. The sheet is closed in any case. */
__attribute__((warn_unused_result)) int csv_sheet_open(struct table *t, struct sheet *sheet);
void csv_sheet_close(struct sheet *sheet);

/* From now on rows are those of this sheet. */
void csv_sheet_use(struct table *t, const struct sheet *sheet);

/* The place of a column's cell among those of values; of the label's no place. */
size_t csv_sheet_place(const struct table *t, size_t column);

/* Refuse a record with the wrong number of cells. Returns -EINVAL. */
int csv_sheet_refuse(const struct cells *c, size_t found, size_t expected);

#endif
