/* nn/data/csv_looks.c -- recognises whether a file begins like a table. */
#include "nn/data/cells.h"

#include <stdlib.h>

enum { LOOK_RECORDS = 32 /* Number of records that csv_looks() inspects. */ };

/* Cuts off the end of the bytes, which may be incomplete because they are only the beginning of a
 * file: the last line, or, if there is only one line, its last cell. */
static void cut_partial(struct cells *c)
{
    const uint8_t *end = c->end;
    while (end > c->p && end[-1] != '\n')
        end--;
    if (end == c->p)
        for (end = c->end; end > c->p && end[-1] != c->separator; end--)
            ;
    c->end = end > c->p ? end - 1 : end;
}

/* Returns true if a record looks like a row: at least two cells, and each a number or a gap
 * (missing value). The cells of one column, such as the label's, may be words. *odd is the index of
 * this column, or SIZE_MAX as long as no word was found. `first`: the record may be a header, so
 * all cells may be words. If not `first`, the record must have *n cells. Sets *n to the number of
 * cells. */
static bool looks_row(struct cells *c, bool first, size_t *n, size_t *odd)
{
    struct cells_cell cell = {.more = true};
    size_t i = 0;
    for (; cell.more; i++) {
        if (cells_next(c, &cell) < 0)
            return false;
        if (first || cell.n == 0 || cells_number(&cell) || i == *odd)
            continue;
        if (*odd != SIZE_MAX)
            return false;
        *odd = i;
    }
    bool same = first || i == *n;
    *n = i;
    return same && i >= 2;
}

/* Returns whether the bytes begin like a table: the same number of cells in each record, and
 * numbers in all columns except one. The first record may be a header of words. */
static bool looks(const uint8_t *bytes, size_t n, bool whole)
{
    char error[DATA_ERROR_MAX];
    const struct lines_file f = {.path = "", .bytes = bytes, .n = n};
    struct cells c = cells_open(&f, error);
    if (!cells_record(&c))
        return false;
    c.separator = cells_separator(&c);
    if (!whole)
        cut_partial(&c);
    struct cells begin = c;
    size_t n_cells = 0, odd = SIZE_MAX, n_records = 0;
    for (; n_records < LOOK_RECORDS && cells_record(&c); n_records++)
        if (!looks_row(&c, n_records == 0, &n_cells, &odd))
            return false;
    return n_records > 1 || (n_records == 1 && looks_row(&begin, false, &n_cells, &odd));
}

bool csv_looks(const uint8_t *bytes, size_t n, bool whole)
{
    uint8_t *copy;
    bytes = lines_look(bytes, &n, &copy);
    bool is = looks(bytes, n, whole);
    free(copy);
    return is;
}
