/* nn/data/cells.c -- splits a text into the records and cells of a table, with quotes as in RFC
 * 4180. A cell is a pointer into the file and a length, without its quotes. The text of a cell is
 * copied only if it contains "". */
#include "nn/data/cells.h"

#include "nn/data/notation.h"
#include "nn/data/quote.h"

#include <string.h>
#include <strings.h>

/* Number of records that cells_separator() inspects to find the separator. */
enum { SEPARATOR_RECORDS = 8 };

/* A tab counts as a space unless the separator between cells is a tab. A carriage return counts as
 * a space: a program that appends a column to the lines of a file with "\r\n" line ends leaves "\r"
 * at the end of a cell. */
static bool is_space(const struct cells *c, uint8_t byte)
{
    return byte == ' ' || byte == '\r' || (byte == '\t' && c->separator != '\t');
}

/* Skips the spaces before a cell. */
static void skip_spaces(struct cells *c)
{
    while (c->p < c->end && is_space(c, *c->p))
        c->p++;
}

/* Returns whether the line ends at the read position p: at a newline, or at the end of the file. The
 * caller has skipped the spaces, and with them the carriage return of "\r\n". */
static bool at_line_end(const struct cells *c)
{
    return c->p == c->end || *c->p == '\n';
}

/* Moves the read position behind the newline at p, if there is one. */
static void pass_line_end(struct cells *c)
{
    c->p += c->p < c->end && *c->p == '\n';
    c->next_line++;
}

bool cells_record(struct cells *c)
{
    while (c->p < c->end) {
        struct cells begin = *c;
        skip_spaces(c);
        if (!at_line_end(c)) {
            *c = begin;
            c->spot.line = c->next_line;
            return true;
        }
        pass_line_end(c);
    }
    return false;
}

/* Refuses text after the closing quote of a cell. The usual mistake is a quote inside the cell that
 * is not doubled. */
static int refuse_behind_quote(const struct cells *c)
{
    struct quote q = quote_bytes(c->p, 1);
    const char *wanted = c->separator == '\t'  ? "a tab"
                         : c->separator == ';' ? "a semicolon"
                                               : "a comma";
    return file_error(c->spot.error, c->spot.path,
                      "line %llu: found %s after a closing quote, expected %s",
                      (unsigned long long)c->next_line, q.text, wanted);
}

/* Reads a cell in quotes. The opening quote is at p. */
static int quoted_cell(struct cells *c, struct cells_cell *cell)
{
    uint64_t opened = c->next_line;
    cell->p = ++c->p;
    for (; c->p < c->end; c->p++) {
        c->next_line += *c->p == '\n';
        if (*c->p != '"')
            continue;
        if (c->p + 1 == c->end || c->p[1] != '"')
            break;
        cell->escaped = true;
        c->p++;
    }
    if (c->p == c->end)
        return file_error(c->spot.error, c->spot.path,
                          "line %llu: found a quote that is never closed",
                          (unsigned long long)opened);
    cell->n = (size_t)(c->p - cell->p);
    c->p++;
    skip_spaces(c);
    if (!at_line_end(c) && *c->p != c->separator)
        return refuse_behind_quote(c);
    return 0;
}

/* Reads a cell without quotes, up to a separator or a newline. Quotes inside the cell are ordinary
 * bytes. */
static void plain_cell(struct cells *c, struct cells_cell *cell)
{
    cell->p = c->p;
    while (c->p < c->end && *c->p != c->separator && *c->p != '\n')
        c->p++;
    const uint8_t *end = c->p;
    while (end > cell->p && is_space(c, end[-1]))
        end--;
    cell->n = (size_t)(end - cell->p);
}

/* Reads the cell at the position p. Afterwards p is at the next cell, or, after the last cell of a
 * record, behind the line end. */
int cells_next(struct cells *c, struct cells_cell *cell)
{
    *cell = (struct cells_cell){0};
    int err = 0;
    skip_spaces(c);
    if (c->p < c->end && *c->p == '"')
        err = quoted_cell(c, cell);
    else
        plain_cell(c, cell);
    if (err < 0)
        return err;
    cell->more = c->p < c->end && *c->p == c->separator;
    if (cell->more)
        c->p++;
    else
        pass_line_end(c);
    return 0;
}

size_t cells_text(const struct cells_cell *cell, uint8_t *text, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < cell->n && n < cap; i++) {
        text[n++] = cell->p[i];
        i += cell->escaped && cell->p[i] == '"';
    }
    return n;
}

/* Compares at most CELLS_NAME_MAX bytes, because a header may be as long as the file. */
bool cells_is(const struct cells_cell *cell, const uint8_t *text, size_t n)
{
    uint8_t own[CELLS_NAME_MAX];
    size_t n_own = cells_text(cell, own, sizeof own);
    return n_own == (n < sizeof own ? n : sizeof own) && memcmp(own, text, n_own) == 0;
}

/* Returns true for a number. Also returns true for a cell of digits and separators that is no
 * number in any notation, because such a cell is not a word. */
bool cells_number(const struct cells_cell *cell)
{
    double v;
    struct notation_number w;
    return number_is(cell->p, cell->n, &v) || notation_look(cell->p, cell->n, &w) != NOTATION_NONE;
}

bool cells_name(const struct cells_cell *cell)
{
    static const char *const missing[] = {"", "?", "nan", "inf", "infinity", "na", "n/a", "null"};
    size_t sign = cell->n > 0 && (cell->p[0] == '+' || cell->p[0] == '-');
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (cell->n - sign == strlen(missing[i])
            && strncasecmp((const char *)cell->p + sign, missing[i], cell->n - sign) == 0)
            return false;
    return !cells_number(cell);
}

/* `c` is a copy, so counting does not move the read position of the caller. */
int cells_count(struct cells c, size_t *n)
{
    struct cells_cell cell = {.more = true};
    for (*n = 0; cell.more; ++*n) {
        int err = cells_next(&c, &cell);
        if (err < 0)
            return err;
    }
    return 0;
}

bool cells_find(struct cells *c, size_t column, uint8_t byte, struct cells_cell *cell)
{
    while (cells_record(c)) {
        *cell = (struct cells_cell){.more = true};
        for (size_t i = 0; cell->more; i++) {
            if (cells_next(c, cell) < 0)
                break;
            if (i == column && memchr(cell->p, byte, cell->n) != NULL)
                return true;
        }
    }
    *cell = (struct cells_cell){0};
    return false;
}

/* Returns true if all commas are decimal marks when `separator` stands between cells: in the next
 * records, each comma is inside a cell that is a number. Commas in the first record are ignored:
 * the record may be a header, and a column's name may contain a comma. */
static bool commas_in_numbers(struct cells c, uint8_t separator)
{
    size_t n_records = 0, n_numbers = 0;
    c.separator = separator;
    for (; n_records < SEPARATOR_RECORDS && cells_record(&c); n_records++) {
        struct cells_cell cell = {.more = true};
        size_t n = 0;
        for (; cell.more; n++) {
            struct notation_number w;
            if (cells_next(&c, &cell) < 0)
                return false;
            if (cell.n == 0 || memchr(cell.p, ',', cell.n) == NULL)
                continue;
            bool number = notation_look(cell.p, cell.n, &w) == NOTATION_NUMBER;
            if (!number && n_records > 0)
                return false;
            n_numbers += number;
        }
        if (n < 2)
            return false;
    }
    return n_numbers > 0 || n_records > 1;
}

uint8_t cells_separator(const struct cells *c)
{
    static const uint8_t all[] = {',', ';', '\t'};
    size_t n[3] = {0}, best = 0;
    bool quoted = false;
    if (c->separator_said)
        return c->separator;
    for (const uint8_t *p = c->p; p < c->end && (quoted || *p != '\n'); p++) {
        quoted ^= *p == '"';
        for (size_t i = 0; i < 3; i++)
            n[i] += !quoted && *p == all[i];
    }
    for (size_t i = 1; i < 3; i++)
        best = n[i] > n[best] || (n[i] > 0 && commas_in_numbers(*c, all[i])) ? i : best;
    return all[best];
}

/* Handles a first line "sep=;", by which spreadsheets name the separator: takes the separator from
 * the line and skips the line. */
static void take_separator_line(struct cells *c)
{
    const uint8_t *p = c->p;
    size_t n = (size_t)(c->end - p), quoted = n > 0 && *p == '"';
    if (n < 5 + 2 * quoted || strncasecmp((const char *)p + quoted, "sep=", 4) != 0)
        return;
    uint8_t separator = p[4 + quoted];
    const uint8_t *behind = p + 5 + quoted;
    if (quoted && *behind++ != '"')
        return;
    behind += behind < c->end && *behind == '\r';
    if (separator == '\r' || separator == '\n' || separator == '"'
        || (behind < c->end && *behind != '\n'))
        return;
    c->p = behind + (behind < c->end);
    c->next_line = 2;
    c->separator = separator;
    c->separator_said = true;
}

/* Skips the byte order mark that spreadsheets write in front of UTF-8. Otherwise the mark would
 * be part of the first column's name. */
struct cells cells_open(const struct lines_file *f, char error[DATA_ERROR_MAX])
{
    bool mark = f->n >= 3 && memcmp(f->bytes, "\xef\xbb\xbf", 3) == 0;
    struct cells c = {.p = f->bytes + (mark ? 3 : 0),
                      .end = f->bytes + f->n,
                      .separator = ',',
                      .next_line = 1,
                      .spot = {.path = f->path, .line = 1, .error = error}};
    take_separator_line(&c);
    return c;
}
