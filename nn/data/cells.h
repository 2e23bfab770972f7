/* nn/data/cells.h -- the cells of a table in a text: separators, quotes, line ends (RFC 4180).
 *
 *   5.1 , "a ""b"", c"\r\n        two cells: 5.1 and a "b", c
 *
 * Spaces around a cell, and lines of nothing else, are passed over. What stands
 * in quotes may have separators and line ends in it, and "" for a quote.
 */
#ifndef NN_DATA_CELLS_H
#define NN_DATA_CELLS_H

#include "nn/data/lines.h"

enum {
    CELLS_NAME_MAX = 256 /* Bytes of a column's name; the rest is not compared. */
};

/* Where in a file reading stands: at the first byte of a record or a cell. A
 * copy reads ahead. */
struct cells
{
    const uint8_t *p, *end;
    uint8_t separator;
    bool separator_said;    /* By a first line "sep=;". */
    struct lines_spot spot; /* Where the record begins. */
    uint64_t next_line;     /* The line that p is in: a cell in quotes may span several. */
};

/* A cell without the spaces and quotes around it. */
struct cells_cell
{
    const uint8_t *p;
    size_t n;
    bool escaped; /* It has "" for ". */
    bool more;    /* Another cell of the record follows. */
};

/* Begin with a file, behind its byte order mark and a line "sep=;" if it has them; else the separator is
 * a comma until the caller sets another. */
struct cells cells_open(const struct lines_file *f, char error[DATA_ERROR_MAX]);

/* Guess the separator: a semicolon or a tab that makes all commas decimal commas; else the one of comma,
 * semicolon and tab that the record at c has most often outside of quotes; a comma where it has none. */
uint8_t cells_separator(const struct cells *c);

/* Go to the next record, past blank lines. False at the end of the file. */
bool cells_record(struct cells *c);

/* Take the next cell of the record; with its last one, the line's end. 0 or
 * -EINVAL with a sentence: a quote that is never closed, or something behind
 * one that is. */
__attribute__((warn_unused_result)) int cells_next(struct cells *c, struct cells_cell *cell);

/* How many cells are left of a record, from c on. 0 or -EINVAL. */
__attribute__((warn_unused_result)) int cells_count(struct cells c, size_t *n);

/* Go on to the first record whose cell of that column has the byte in it. False, with an empty cell,
 * where there is none. */
bool cells_find(struct cells *c, size_t column, uint8_t byte, struct cells_cell *cell);

/* The cell's text, at most cap bytes of it; returns how many. */
size_t cells_text(const struct cells_cell *cell, uint8_t *text, size_t cap);

/* Is that its text (as far as CELLS_NAME_MAX)? Is it a number? */
bool cells_is(const struct cells_cell *cell, const uint8_t *text, size_t n);
bool cells_number(const struct cells_cell *cell);

/* Could it be a column's name? It is no number, nor what is written where one is missing: nothing,
 * ?, nan, inf, NA and the like, in any case and with any sign. */
bool cells_name(const struct cells_cell *cell);

#endif
