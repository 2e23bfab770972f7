/* nn/data/cells.h -- splits a table into records and cells: separators, quotes, line ends (RFC
 * 4180).
 *
 *   5.1 , "a ""b"", c"\r\n        two cells: 5.1 and a "b", c
 *
 * Spaces and carriage returns around a cell and blank lines are skipped. A cell in quotes may
 * contain separators and line ends, and "" for a quote.
 */
#ifndef NN_DATA_CELLS_H
#define NN_DATA_CELLS_H

#include "nn/data/lines.h"

enum {
    /* Number of bytes of a column's name that are compared. The rest of a longer name is
     * ignored. */
    CELLS_NAME_MAX = 256
};

/* Read position in a table: the first byte of a record or of a cell. The caller can read ahead with
 * a copy of the struct. */
struct cells
{
    const uint8_t *p, *end;
    uint8_t separator;
    /* True: the first line of the file is, for example, "sep=;", which names the separator. */
    bool separator_said;
    struct lines_spot spot; /* File and first line of the current record, for error messages. */
    /* Number of the line that contains the byte at p, from 1. A cell in quotes may span several
     * lines. */
    uint64_t next_line;
};

/* A cell, without the spaces and quotes around its text. */
struct cells_cell
{
    const uint8_t *p;
    size_t n;
    bool escaped; /* True: in the file, the cell contains "" for a quote. */
    bool more;    /* True: another cell of the same record follows. */
};

/* Starts to read the table in `f`. Skips a UTF-8 byte order mark, and a first line "sep=;", if the
 * file has them. The line "sep=;" sets the separator. Without it, the separator is a comma until
 * the caller sets another one. */
struct cells cells_open(const struct lines_file *f, char error[DATA_ERROR_MAX]);

/* Returns the separator of the table whose first record is at c. The first rule that applies
 * decides:
 *
 *    1. the separator that a line "sep=;" names
 *    2. a semicolon or a tab, if all commas are decimal marks with this separator
 *    3. the most frequent of comma, semicolon and tab in the record at c, outside of quotes
 *    4. a comma */
uint8_t cells_separator(const struct cells *c);

/* Moves to the next record, past blank lines. Returns false at the end of the file. */
bool cells_record(struct cells *c);

/* Reads the next cell of the record, and skips the line end after the last cell. Returns 0, or
 * -EINVAL with a message if a quote is never closed or text follows a closing quote. */
__attribute__((warn_unused_result)) int cells_next(struct cells *c, struct cells_cell *cell);

/* Counts the cells of a record, from the read position c on. Returns 0 or -EINVAL. */
__attribute__((warn_unused_result)) int cells_count(struct cells c, size_t *n);

/* Searches the column `column` (counted from 0) of the following records for a cell that contains
 * `byte`. Sets *cell to the first such cell, and moves to its record. If there is no such cell,
 * returns false and an empty cell. */
bool cells_find(struct cells *c, size_t column, uint8_t byte, struct cells_cell *cell);

/* Copies the text of the cell, at most cap bytes. Returns the length. */
size_t cells_text(const struct cells_cell *cell, uint8_t *text, size_t cap);

/* cells_is() returns whether the cell has this text. Only the first CELLS_NAME_MAX bytes are
 * compared. cells_number() returns whether the cell is a number in any notation, or at least
 * consists of digits, separators and signs only. */
bool cells_is(const struct cells_cell *cell, const uint8_t *text, size_t n);
bool cells_number(const struct cells_cell *cell);

/* Returns true if the cell may be a column's name: not a number, and not a mark of a missing value
 * (empty, ?, nan, inf, NA and similar, in any case and with any sign). */
bool cells_name(const struct cells_cell *cell);

#endif
