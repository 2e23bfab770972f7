/* nn/data/columns.h -- types of a table's columns, and the conversion of their cells to model
 * inputs.
 *
 *   column       type set by      a cell becomes                               a gap becomes
 *   numbers      its first cell   (v - mean) / scale, v / scale, or v          the mean
 *   categories   its first cell   one of n inputs is 1, the others 0           n zeros
 *
 * A gap is an empty cell, ?, NA, N/A, null or nan. A category is identified by a hash of its text.
 * A category that the training files do not have becomes n zeros, as a gap does. A column with more
 * than COLUMNS_CATEGORIES_MAX categories has COLUMNS_BUCKETS inputs, and the hash selects one of
 * them.
 *
 *   files --columns_note--> types, categories --columns_moments, columns_settle--> means, scales
 *         --columns_print--> text, a part of the kind
 *   text  --columns_parse--> the same columns, without the files
 *
 * The text has one word for each column, with commas between the words:
 *
 *   2960~280   numbers with mean 2960 and scale 280
 *   ~.25       numbers with mean 0 and scale 0.25
 *   .5         numbers with mean 0.5 and scale 1
 *   =aB3x-9    two categories, three letters of base64 each, sorted
 *   #          more than COLUMNS_CATEGORIES_MAX categories: the hash selects the input
 *
 * The deviation is rounded to two digits and the mean to the same decimal place. A run description
 * then has enough space for the text of about a hundred columns. Rounding shifts inputs to mean 0
 * +- 0.05 and deviation 1 +- 0.05, which train equally well.
 */
#ifndef NN_DATA_COLUMNS_H
#define NN_DATA_COLUMNS_H

#include "nn/data/notation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Largest number of columns of a table that may have categories or scales. A wider table must
     * contain numbers only, which are not scaled. */
    COLUMNS_MAX_N = 16384,
    /* Largest number of categories that get one input each. In a column with more categories, a
     * hash selects the input. */
    COLUMNS_CATEGORIES_MAX = 64,
    COLUMNS_CATEGORY_BITS = 18, /* Number of bits of the hash that identifies a category. */
    /* Number of inputs of a column with more than COLUMNS_CATEGORIES_MAX categories. */
    COLUMNS_BUCKETS = 256,
    /* Largest size of the text of all columns in a kind (nn/data/kind.h), in bytes with the NUL. */
    COLUMNS_TEXT_MAX = 961,
    /* Size of the longest text of one column, in bytes. */
    COLUMNS_WORD_MAX = 3 * COLUMNS_CATEGORIES_MAX + 16
};

#define COLUMNS_FAR 1e6 /* Largest magnitude of a scaled value. Larger values are clamped. */

/* Choice of the divisor by which the numbers of a column are scaled. */
enum columns_scale {
    COLUMNS_SCALE_AUTO,     /* No scale was requested: the default of the file format applies. */
    COLUMNS_SCALE_NONE,     /* The numbers are not scaled: the divisor is 1. */
    COLUMNS_SCALE_STANDARD, /* The mean is subtracted, and the divisor is the standard deviation. */
    COLUMNS_SCALE_MAX,      /* The divisor is the largest magnitude in the column. */
    COLUMNS_SCALES
};
extern const char *const columns_scale_name[COLUMNS_SCALES];
/* Alphabet in which the text of columns encodes hashes: each letter stands for 6 bits. */
extern const char columns_base64[65];

enum column_form { COLUMN_OPEN, COLUMN_NUMBERS, COLUMN_CATEGORIES };

struct column
{
    /* Type of the column. COLUMN_OPEN: all cells so far are gaps (missing values); if no other cell
     * follows, the column is treated as numbers. */
    enum column_form form;
    double mean, scale; /* Mean and divisor of the column's numbers. */
    /* True: the column has more than COLUMNS_CATEGORIES_MAX categories, so `category` is empty. */
    bool hashed;
    uint32_t n_categories; /* Number of hashes in `category`. */
    uint32_t *category;    /* Hashes of the categories, ascending. Owned. */
    size_t n_gaps;         /* Number of gaps (missing values) in the files that were read. */
    size_t n_unknown;      /* Number of cells whose category is not in `category`. */

    /* Notation of the column's numbers (nn/data/notation.h). */
    /* Notations (nn/data/notation.h) in which at least one cell of the column is not a number, as a
     * bit mask. */
    uint32_t ruled_out;
    /* Notations in which the numbers of the column are read, as a bit mask. All have the same
     * decimal mark. 0: plain numbers. */
    uint32_t reading;
    /* Whether any cell of the column contains a point, and whether any cell contains a comma. */
    bool point_seen, comma_seen;
    bool has_numbers;             /* True: a number was found in the column, so `unit` is known. */
    char unit[NOTATION_UNIT_MAX]; /* Unit of all numbers of the column. "": no unit. */

    /* Rows store (number - offset) as a float, so numbers with a small spread around a large mean
     * keep their precision. For COLUMNS_SCALE_STANDARD, `offset` is the mean of all cells read, or
     * the mean in the kind (text that describes the data). Otherwise `offset` is 0. */
    double offset;
    /* Value that `offset` gets if the commas in the column's numbers are found to be decimal
     * marks. */
    double comma_offset;
    size_t n_numbers; /* Number of cells from which the mean in `offset` was computed. */
    bool constant;    /* True: all numbers of this column in the training set are equal. */
    /* Cells of the current set (training or held-out): n_set[0] counts cells with an unknown
     * category, n_set[1] cells with a known category. */
    size_t n_set[2];
    /* True: there is a set (training or held-out) in which every category of the column was
     * unknown. */
    bool unseen;
};

/* Statistics of a column's numbers. All zero: the column has no numbers. */
struct column_moments
{
    /* Number of cells with a number (gaps are not counted), and the mean of these numbers. */
    double n, mean;
    double m2; /* Sum of the squared distances of the numbers from their mean. */
    double low, high;
};

/* All columns of a table except the label. All zero: no columns. */
struct columns
{
    enum columns_scale scale;
    /* True: types and categories of the columns are fixed, so columns_note() adds no category. */
    bool settled;
    uint32_t n; /* Number of columns, not counting the label's column. */
    /* Number of columns before the label in the file. SIZE_MAX: the table has no label. */
    size_t label;
    struct column *at;
};

/* Allocates n <= COLUMNS_MAX_N columns of unknown types. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int columns_open(struct columns *c, size_t n);
__attribute__((warn_unused_result)) int columns_copy(struct columns *to,
                                                     const struct columns *from);
void columns_close(struct columns *c);

/* Type of a cell's text, independent of its column. */
enum columns_cell {
    COLUMNS_GAP,
    COLUMNS_NUMBER,  /* A plain number, as number_read() accepts it. */
    COLUMNS_WRITTEN, /* A number that only nn/data/notation.h can read, such as "1,957". */
    COLUMNS_WORD,
    COLUMNS_DATE,
    COLUMNS_BROKEN /* The text has only digits, separators and signs, but is not a number. */
};
enum columns_cell columns_look(const uint8_t *p, size_t n);

/* Records a cell of column i: type, notation, unit and category. Returns 0; -ENOMEM; or -EINVAL if
 * the cell does not fit the column. After -EINVAL, *expected is the text that follows "expected" in
 * an error message. */
__attribute__((warn_unused_result)) int columns_note(struct columns *c, size_t i, const uint8_t *p,
                                                     size_t n, const char **expected);

/* Ends one set (training or held-out), after columns_note() has recorded all its cells. */
void columns_end_set(struct columns *c);

/* Decides the decimal mark of each column. Call it after all cells have been recorded. If all cells
 * of a column can be read both with a decimal point and with a decimal comma, the marks of the
 * other columns decide. If these marks do not decide either, the separator of the files decides (0:
 * the files have different separators). Returns the first column that remains ambiguous, or c->n if
 * none does. */
size_t columns_read_as(struct columns *c, uint8_t separator);

/* Returns the float that a row of the data set stores for a recorded cell. A number is stored minus
 * the column's offset, and a gap (missing value) in a column of numbers as NAN. A category is
 * stored as 1 + its index, and a gap in a column of categories as 0. */
float columns_code(const struct columns *c, size_t i, const uint8_t *p, size_t n);

/* Returns the number of model inputs of all columns. */
size_t columns_inputs(const struct columns *c);
bool columns_have_categories(const struct columns *c);
size_t columns_gaps(const struct columns *c);

/* Computes the moments of each column from n stored rows, and writes them to of[0..c->n). A stored
 * row has c->n floats; the offset of its column is added to each number first. Gaps are skipped,
 * and columns of categories get no moments. O(n * c->n). */
void columns_moments(const struct columns *c, const float *rows, size_t n,
                     struct column_moments *of);

/* Computes the mean and scale of each column from its moments of[0..c->n), as c->scale requires. */
void columns_settle(struct columns *c, const struct column_moments *of);

/* Converts the numbers of n stored rows to inputs in place, and fills gaps. */
void columns_apply(const struct columns *c, float *rows, size_t n);

/* Expands one row of c->n floats, which columns_apply() has converted, to columns_inputs() floats.
 * A category becomes several inputs: one of them is 1, the others are 0. */
void columns_expand(const struct columns *c, const float *row, float *out);

/* Writes the text of all columns, such as "2960~280,~.25". At most cap bytes are written, including
 * the NUL, with cap >= 1. Returns the length of the whole text, which may exceed cap. */
size_t columns_print(const struct columns *c, char *text, size_t cap);
uint64_t columns_hash(const struct columns *c);

/* Returns true if columns_print() can have written `text`, for columns with n_inputs inputs in
 * total. The text may come from an untrusted peer. */
bool columns_check(const char *text, enum columns_scale scale, size_t n_inputs);
/* Parses a text that columns_check() accepts. The types and categories of the columns are then
 * fixed (`settled`). Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int columns_parse(struct columns *c, const char *text,
                                                      enum columns_scale scale);

/* Rounds the deviation to two significant digits, and the mean to the decimal place of the second
 * of these digits. */
void columns_round(double *mean, double *deviation);

#endif
