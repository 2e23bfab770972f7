/* nn/data/columns_cells.c -- recognises the type of each cell of a table, checks the cells of a
 * column against each other, and converts them to floats. */
#include "nn/data/columns.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_gap(const uint8_t *p, size_t n)
{
    static const char *const words[] = {"", "?", "nan", "na", "n/a", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == strlen(words[i]) && strncasecmp((const char *)p, words[i], n) == 0)
            return true;
    return false;
}

/* Returns the number of letters, or of digits, that the text at p begins with. */
static size_t run_of(const uint8_t *p, const uint8_t *end, bool letters)
{
    const uint8_t *at = p;
    while (at < end
           && (letters ? (*at | 32) >= 'a' && (*at | 32) <= 'z' : *at >= '0' && *at <= '9'))
        at++;
    return (size_t)(at - p);
}

/* Returns true for a text that begins with a time such as 12:30 or 12:30:59. */
static bool is_time(const uint8_t *p, const uint8_t *end)
{
    size_t n = run_of(p, end, false);
    return n >= 1 && n <= 2 && end - p >= (ptrdiff_t)n + 3 && p[n] == ':'
           && run_of(p + n + 1, end, false) == 2;
}

static bool is_month(const uint8_t *p, size_t n)
{
    static const char months[] = "jan feb mar apr may jun jul aug sep oct nov dec ";
    bool is = false;
    for (const char *m = months; n >= 3 && *m != '\0'; m += 4)
        is |= strncasecmp((const char *)p, m, 3) == 0;
    return is;
}

/* Returns true for a date: 2019-03-04, 4.3.2019, 03/04/19 or 4-Mar-2019. The date may be followed
 * by a space, a T or a comma and more text. A version such as 1.2.3 and an IP address are not
 * dates. */
static bool is_day(const uint8_t *p, const uint8_t *end)
{
    size_t n = run_of(p, end, false);
    if (n < 1 || n > 4 || p + n == end || strchr("-/. ", p[n]) == NULL || p[n] == '\0')
        return false;
    uint8_t between = p[n];
    p += n + 1;
    size_t m = run_of(p, end, false), letters = run_of(p, end, true);
    if (m > 2 || (m == 0 && !is_month(p, letters)) || (m > 0 && between == ' '))
        return false;
    p += m > 0 ? m : letters;
    if (p == end || *p != between)
        return false;
    p++;
    size_t k = run_of(p, end, false);
    p += k;
    return (k == 2 || k == 4 || (k == 1 && n == 4)) && (n <= 2 || (n == 4 && m > 0))
           && (p == end || *p == ' ' || *p == 'T' || *p == ',');
}

/* Finds out the type of a cell's text, for columns_look(). Sets *v for a plain number, or *w for a
 * number in another notation. */
static enum columns_cell look(const uint8_t *p, size_t n, double *v, struct notation_number *w)
{
    if (number_is(p, n, v))
        return COLUMNS_NUMBER;
    if (is_gap(p, n))
        return COLUMNS_GAP;
    if (is_day(p, p + n) || is_time(p, p + n))
        return COLUMNS_DATE;
    switch (notation_look(p, n, w)) {
    case NOTATION_NONE:
        return COLUMNS_WORD;
    case NOTATION_BROKEN:
        return COLUMNS_BROKEN;
    case NOTATION_NUMBER:
        break;
    }
    return COLUMNS_WRITTEN;
}

enum columns_cell columns_look(const uint8_t *p, size_t n)
{
    double v;
    struct notation_number w;
    return look(p, n, &v, &w);
}

/* Returns true for an infinity. Every column refuses an infinity, because a finite float cannot
 * represent it. */
static bool is_infinite(const uint8_t *p, size_t n)
{
    size_t sign = n > 0 && (*p == '+' || *p == '-');
    return (n - sign == 3 && strncasecmp((const char *)p + sign, "inf", 3) == 0)
           || (n - sign == 8 && strncasecmp((const char *)p + sign, "infinity", 8) == 0);
}

static uint32_t category_of(const uint8_t *p, size_t n)
{
    return (uint32_t)(rng_hash(p, n) >> (64 - COLUMNS_CATEGORY_BITS));
}

/* Returns the index of the first category whose hash is not less than h, or c->n_categories if
 * there is none. */
static uint32_t find_category(const struct column *c, uint32_t h)
{
    uint32_t at = 0;
    while (at < c->n_categories && c->category[at] < h)
        at++;
    return at;
}

static bool is_known(const struct column *c, uint32_t h)
{
    uint32_t at = find_category(c, h);
    return c->hashed || (at < c->n_categories && c->category[at] == h);
}

/* Adds a category to the sorted list if it is new. If the list is full, the list is dropped, and
 * from then on a hash selects the input of each category. */
static int note_category(struct column *c, uint32_t h)
{
    if (is_known(c, h))
        return 0;
    uint32_t at = find_category(c, h);
    if (c->n_categories == COLUMNS_CATEGORIES_MAX) {
        free(c->category);
        c->category = NULL;
        c->n_categories = 0;
        c->hashed = true;
        return 0;
    }
    uint32_t *grown = realloc(c->category, (c->n_categories + 1) * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    c->category = grown;
    memmove(grown + at + 1, grown + at, (c->n_categories - at) * sizeof *grown);
    grown[at] = h;
    c->n_categories++;
    return 0;
}

/* Returns the notations in which all numbers of the column so far can be read, as a bit mask. */
static uint32_t readings_of(const struct column *c)
{
    return NOTATION_ALL & ~c->ruled_out;
}

static bool in_range(double v)
{
    return fabs(v) <= (double)FLT_MAX;
}

/* Checks that a number has the same unit as the column's earlier numbers, and a notation in which
 * all of them can be read. Returns 0, or -EINVAL with *expected set. */
static int note_number(struct column *c, const struct notation_number *w, const char **expected)
{
    uint32_t left = readings_of(c) & w->notations;
    if (c->has_numbers && strcmp(c->unit, w->unit) != 0)
        *expected = c->unit[0] == '\0'   ? "a number without a unit, as in the rows above"
                    : w->unit[0] == '\0' ? "a number with the unit that the rows above have"
                                         : "a number of the same unit as in the rows above";
    else if (left == 0)
        *expected = (readings_of(c) & NOTATION_COMMA) == 0 && (w->notations & NOTATION_POINT) == 0
                        ? "a number with a decimal point, as in the rows above"
                    : (readings_of(c) & NOTATION_POINT) == 0 && (w->notations & NOTATION_COMMA) == 0
                        ? "a number with a decimal comma, as in the rows above"
                        : "a number with the separators of the rows above";
    else if (((left & NOTATION_COMMA) != 0 && !in_range(notation_value(w, NOTATION_COMMA)))
             || ((left & ~(uint32_t)NOTATION_COMMA) != 0
                 && !in_range(notation_value(w, left & ~(uint32_t)NOTATION_COMMA))))
        *expected = "a value in a float's range";
    else {
        c->ruled_out |= ~w->notations & NOTATION_ALL;
        c->point_seen |= w->point;
        c->comma_seen |= w->comma;
        c->has_numbers = true;
        memcpy(c->unit, w->unit, sizeof c->unit);
        return 0;
    }
    return -EINVAL;
}

/* Returns whether notation_look() must inspect a number that was already parsed as a plain number.
 * The inspection is not necessary if the column has no unit and a decimal comma is ruled out. */
static bool needs_look(const struct column *c)
{
    return !c->has_numbers || c->unit[0] != '\0' || (readings_of(c) & NOTATION_COMMA) != 0
           || (readings_of(c) & NOTATION_POINT) == 0;
}

static int note_cell(struct columns *c, struct column *column, enum columns_cell cell,
                     struct notation_number *w, double v, const uint8_t *p, size_t n,
                     const char **expected)
{
    bool number = cell == COLUMNS_NUMBER || cell == COLUMNS_WRITTEN;
    bool none = cell == COLUMNS_DATE || cell == COLUMNS_BROKEN || is_infinite(p, n);
    if (column->form == COLUMN_OPEN && !c->settled && !none)
        column->form = number ? COLUMN_NUMBERS : COLUMN_CATEGORIES;
    *expected = cell == COLUMNS_DATE ? "a number or a category, not a date or time: remove the "
                                       "column, or split it into numbers"
                : cell == COLUMNS_BROKEN && column->form != COLUMN_CATEGORIES
                    ? "a number such as 1957.25 or 1,957.25, or a category with a letter in it "
                      "(v1.2.3)"
                : column->form == COLUMN_CATEGORIES
                    ? "a category, because the first cell of the column is a category"
                    : "a number";
    if (cell == COLUMNS_DATE || cell == COLUMNS_BROKEN)
        return -EINVAL;
    if (column->form == COLUMN_CATEGORIES) {
        if (!number && c->settled) {
            bool known = is_known(column, category_of(p, n));
            column->n_unknown += !known;
            column->n_set[known]++;
        }
        return number ? -EINVAL : c->settled ? 0 : note_category(column, category_of(p, n));
    }
    if (!number)
        return -EINVAL;
    if (cell == COLUMNS_NUMBER && !in_range(v)) {
        *expected = "a value in a float's range";
        return -EINVAL;
    }
    if (cell == COLUMNS_NUMBER && !needs_look(column))
        return 0;
    if (cell == COLUMNS_NUMBER) {
        enum notation_look is = notation_look(p, n, w);
        assert(is == NOTATION_NUMBER);
    }
    return note_number(column, w, expected);
}

int columns_note(struct columns *c, size_t i, const uint8_t *p, size_t n, const char **expected)
{
    struct column *column = &c->at[i];
    struct notation_number w;
    double v = 0;
    enum columns_cell cell = look(p, n, &v, &w);
    if (cell == COLUMNS_GAP) {
        column->n_gaps++;
        return 0;
    }
    int err = note_cell(c, column, cell, &w, v, p, n, expected);
    if (err < 0 || column->form == COLUMN_CATEGORIES || c->settled
        || c->scale != COLUMNS_SCALE_STANDARD)
        return err;
    uint32_t left = readings_of(column), points = left & ~(uint32_t)NOTATION_COMMA;
    double comma = (left & NOTATION_COMMA) != 0 ? notation_value(&w, NOTATION_COMMA) : 0;
    if (cell == COLUMNS_WRITTEN)
        v = points != 0 ? notation_value(&w, points) : comma;
    /* The mean is updated number by number, not computed from a sum: if all numbers are equal, the
     * mean is then exactly that number. */
    double n_noted = (double)++column->n_numbers;
    column->offset += (v - column->offset) / n_noted;
    column->comma_offset += (comma - column->comma_offset) / n_noted;
    return 0;
}

/* Chooses the decimal mark of a column that can be read both with points and with commas as marks,
 * with different values. `points` and `commas` say which marks other columns need. The first rule
 * that applies decides:
 *
 * 1. Other columns need one of the marks and not the other: the mark that they need.
 * 2. The separator between cells is a comma: a point, unless other columns need both marks and this
 *    column contains a comma.
 * 3. The separator is a semicolon: a comma, if no other column needs a mark and this column has no
 *    point.
 *
 * Returns 0 if no rule applies: the column is ambiguous.
 */
static uint32_t decide(const struct column *c, bool points, bool commas, uint8_t separator)
{
    if (points != commas)
        return points ? NOTATION_POINT : NOTATION_COMMA;
    if (separator == ',' && (!points || !c->comma_seen))
        return NOTATION_POINT;
    return separator == ';' && !points && !c->point_seen ? NOTATION_COMMA : 0;
}

size_t columns_read_as(struct columns *c, uint8_t separator)
{
    bool points = false, commas = false;
    for (size_t i = 0; i < c->n; i++) {
        uint32_t left = readings_of(&c->at[i]);
        bool seen = c->at[i].point_seen || c->at[i].comma_seen;
        points |= seen && (left & NOTATION_COMMA) == 0;
        commas |= seen && (left & NOTATION_POINT) == 0;
    }
    for (size_t i = 0; i < c->n; i++) {
        struct column *column = &c->at[i];
        uint32_t left = readings_of(column), mark = NOTATION_POINT;
        if ((left & NOTATION_POINT) == 0)
            mark = (left & NOTATION_COMMA) != 0 ? NOTATION_COMMA : NOTATION_HEX;
        else if ((left & NOTATION_COMMA) != 0 && (column->point_seen || column->comma_seen))
            mark = decide(column, points, commas, separator);
        if (mark == 0)
            return i;
        if (column->point_seen || column->comma_seen)
            column->ruled_out |= NOTATION_ALL & ~mark;
        column->reading = left & mark;
        if (mark == NOTATION_COMMA && !c->settled)
            column->offset = column->comma_offset;
    }
    return c->n;
}

/* Returns the number in a cell. A plain number does not need notation_look(), unless points are
 * thousands separators in this column. */
static double value_of(const struct column *c, const uint8_t *p, size_t n)
{
    double v;
    struct notation_number w;
    if ((c->reading & NOTATION_POINT) != 0 || c->reading == 0)
        if (number_is(p, n, &v))
            return v;
    enum notation_look is = notation_look(p, n, &w);
    assert(is == NOTATION_NUMBER);
    return notation_value(&w, c->reading);
}

/* Returns v minus the column's offset, clamped to the range of a float. */
static float kept(const struct column *c, double v)
{
    return (float)fmin(fmax(v - c->offset, -(double)FLT_MAX), (double)FLT_MAX);
}

void columns_end_set(struct columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        c->at[i].unseen |= c->at[i].n_set[0] > 0 && c->at[i].n_set[1] == 0;
        memset(c->at[i].n_set, 0, sizeof c->at[i].n_set);
    }
}

float columns_code(const struct columns *c, size_t i, const uint8_t *p, size_t n)
{
    const struct column *column = &c->at[i];
    bool gap = is_gap(p, n);
    if (column->form != COLUMN_CATEGORIES)
        return gap ? NAN : kept(column, value_of(column, p, n));
    uint32_t h = gap ? 0 : category_of(p, n);
    if (column->hashed)
        return gap ? 0 : (float)(1 + h % COLUMNS_BUCKETS);
    uint32_t at = find_category(column, h);
    return gap || !is_known(column, h) ? 0 : (float)(1 + at);
}
