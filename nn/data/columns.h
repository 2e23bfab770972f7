/* nn/data/columns.h -- what the columns of a table hold, and how their cells become a model's inputs.
 *
 *   column       told by             a cell becomes                               a gap becomes
 *   numbers      its first cell      (v - mean) / scale, v / scale, or v          the mean
 *   categories   its first cell      one of n inputs is 1, the others 0           n zeros
 *
 * A gap is an empty cell, ?, NA, N/A, null or nan. A category is known by a hash of its text, the same
 * everywhere; one that the training files do not have is n zeros, as a gap is. A column of more than
 * COLUMNS_CATEGORIES_MAX categories has COLUMNS_BUCKETS inputs, and its hash picks one.
 *
 *   files --note--> forms, categories --moments--> --settle--> means, scales --print--> text, a
 *                                                     part of the kind
 *   text --parse--> the same, without the files that it is of
 *
 * In the text each column has a word, with commas between:
 *
 *   2960~280   numbers of mean 2960 and scale 280
 *   ~.25       numbers of mean 0
 *   .5         numbers of mean 0.5 and scale 1
 *   =aB3x-9    two categories, three letters of base64 each, sorted
 *   #          categories, by their hash
 *
 * The deviation is rounded to two digits and the mean to the last of these, so that a run has room for
 * the text of a hundred columns and more: inputs of mean 0 +- 0.05 and deviation 1 +- 0.05 train alike.
 */
#ifndef NN_DATA_COLUMNS_H
#define NN_DATA_COLUMNS_H

#include "nn/data/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COLUMNS_MAX_N = 16384,       /* Tables of more columns have numbers only, as they are. */
    COLUMNS_CATEGORIES_MAX = 64, /* Inputs of one column, each for one category; */
    COLUMNS_CATEGORY_BITS = 18,  /* Bits of a hash that are a category. */
    COLUMNS_BUCKETS = 256,       /* with more categories than that, so many. */
    COLUMNS_TEXT_MAX = 961,      /* Bytes of a text, with the NUL, that a kind has room for. */
    COLUMNS_WORD_MAX = 3 * COLUMNS_CATEGORIES_MAX + 16 /* Bytes of a column's word. */
};

#define COLUMNS_FAR                                                                                \
    1e6 /* A scaled value is at most so large; what is further out counts as this. */

/* What numbers are divided by. With COLUMNS_SCALE_STANDARD the mean is taken off before. */
enum columns_scale {
    COLUMNS_SCALE_AUTO,     /* Not said: what suits the format. */
    COLUMNS_SCALE_NONE,     /* 1. */
    COLUMNS_SCALE_STANDARD, /* Their deviation. */
    COLUMNS_SCALE_MAX,      /* The largest of them, without its sign. */
    COLUMNS_SCALES
};
extern const char *const columns_scale_name[COLUMNS_SCALES];
extern const char columns_base64[65]; /* The letters of texts: 6 bits each. */

enum column_form { COLUMN_OPEN, COLUMN_NUMBERS, COLUMN_CATEGORIES };

struct column
{
    enum column_form form; /* COLUMN_OPEN: no cell so far; in the end, as numbers are. */
    double mean, scale;    /* What its numbers have. */
    bool hashed;           /* It has more categories than have inputs of their own. */
    uint32_t n_categories; /* Else so many, */
    uint32_t *category;    /* ascending; owned. */
    size_t n_gaps;         /* In the files that were read; */
    size_t n_unknown;      /* and cells of a category that is none of these. */

    /* How its numbers are written (nn/data/number.h). */
    uint32_t ruled_out;          /* Notations in which some cell cannot be read. */
    uint32_t reading;            /* Those to read by, of one decimal mark; 0: plain numbers. */
    bool point_seen, comma_seen; /* In some cell. */
    bool has_numbers;            /* A cell fixed the unit: */
    char unit[NUMBER_UNIT_MAX];  /* "" for none. */

    /* Rows keep number - offset as a float, so that a spread that is small against the numbers is
     * kept, too. With COLUMNS_SCALE_STANDARD the mean of all cells read or that of the kind; else 0. */
    double offset;
    double comma_offset; /* The same by readings with a decimal comma, until that is settled. */
    size_t n_numbers;    /* That the offset is the mean of. */
    bool constant;       /* All numbers of the training set are the same. */
    size_t n_set[2];     /* Cells of the present set with an unknown and with a known category. */
    bool unseen;         /* Some set had categories, and all of them were unknown. */
};

/* What a column's numbers come to; all zeros where there are none. */
struct column_moments
{
    double n, mean; /* So many numbers, gaps not among them, and their mean. */
    double m2;      /* The sum of their squared distances from it. */
    double low, high;
};

/* Zeros are none. */
struct columns
{
    enum columns_scale scale;
    bool settled; /* Forms and categories are known: note adds none. */
    uint32_t n;   /* The label's column is not among them, */
    size_t label; /* but so many stand before it; SIZE_MAX: there is none. */
    struct column *at;
};

/* Room for n columns, at most COLUMNS_MAX_N, of which nothing is known. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int columns_open(struct columns *c, size_t n);
__attribute__((warn_unused_result)) int columns_copy(struct columns *to,
                                                     const struct columns *from);
void columns_close(struct columns *c);

/* What stands in a cell, before its column is asked. */
enum columns_cell {
    COLUMNS_GAP,
    COLUMNS_NUMBER,  /* Plain, as number_read() has it; */
    COLUMNS_WRITTEN, /* or in a notation of tables. */
    COLUMNS_WORD,
    COLUMNS_DATE,
    COLUMNS_BROKEN /* Digits, separators and signs that are no number. */
};
enum columns_cell columns_look(const uint8_t *p, size_t n);

/* Note a cell of column i. 0; -EINVAL with what was expected, for the end of a sentence; or -ENOMEM. */
__attribute__((warn_unused_result)) int columns_note(struct columns *c, size_t i, const uint8_t *p,
                                                     size_t n, const char **expected);

/* All cells of one set are noted. */
void columns_end_set(struct columns *c);

/* All cells are noted: fix how each column's numbers are read. A column of which every cell has a
 * reading with a decimal point and one with a decimal comma follows the other columns, else the
 * file's separator. Returns the first column that this leaves open; c->n where there is none. */
size_t columns_read_as(struct columns *c, uint8_t separator);

/* What a noted cell is in a row as it is kept: a number less the column's offset, NAN for a gap among
 * numbers; of categories 1 + the place of the one, 0 for a gap. */
float columns_code(const struct columns *c, size_t i, const uint8_t *p, size_t n);

/* How many inputs they come to. */
size_t columns_inputs(const struct columns *c);
bool columns_have_categories(const struct columns *c);
size_t columns_gaps(const struct columns *c);

/* The moments of n rows as they are kept, c->n floats each, to of[c->n]: of the numbers, with the offsets;
 * gaps do not count, and a column of categories has none. O(n c->n). */
void columns_moments(const struct columns *c, const float *rows, size_t n,
                     struct column_moments *of);

/* Means and scales by the moments of[c->n], as c->scale has it. */
void columns_settle(struct columns *c, const struct column_moments *of);

/* Numbers of n rows to inputs in place, and gaps filled. */
void columns_apply(const struct columns *c, float *rows, size_t n);

/* One applied row of c->n floats to columns_inputs() of them. */
void columns_expand(const struct columns *c, const float *row, float *out);

/* The text of the columns: up to cap >= 1 bytes with the NUL; returns its length, which may be more. */
size_t columns_print(const struct columns *c, char *text, size_t cap);
uint64_t columns_hash(const struct columns *c);

/* Is it the text of columns with so many inputs, as columns_print() spells it? It may be a stranger's. */
bool columns_check(const char *text, enum columns_scale scale, size_t n_inputs);
/* A checked text to columns, settled. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int columns_parse(struct columns *c, const char *text,
                                                      enum columns_scale scale);

/* A number rounded to the last of a deviation's two digits, and that deviation to these. */
void columns_round(double *mean, double *deviation);

#endif
