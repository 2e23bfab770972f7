/* nn/data/schema.h -- the names of a table's columns: kept, compared and matched.
 *
 *   header of the first training file --schema_adopt--> schema --schema_match--> each later header
 *
 * The inputs of a model have the order of the columns of the first training file. Every other table
 * is matched to that order by the names of its columns:
 *
 *   the same names, another order      the columns are reordered
 *   more columns                       the others are ignored, and a note names them
 *   fewer columns                      refused, with the names found and expected
 *   the label's column                 found by its name, at any position; label= may name another
 *
 * Names are compared byte by byte, with their case, without spaces around them. Bytes that are not
 * UTF-8 are read as Latin-1.
 *
 * A run has a hash of the names in their order, and a tag of 18 bits for each name where there is
 * room (nn/data/kind.h). With tags a peer can reorder its columns without knowing the names. The names
 * themselves are in model files and in the moments that peers exchange before the run.
 */
#ifndef NN_DATA_SCHEMA_H
#define NN_DATA_SCHEMA_H

#include "nn/data/kind.h"

enum {
    SCHEMA_TAG = 3,       /* Letters of a tag. */
    SCHEMA_WHY_MAX = 256, /* Bytes of half a sentence, with the NUL. */
    SCHEMA_LIST_MAX = 100 /* Bytes of a list of names in a sentence, with the NUL. */
};

/* Names in order, all UTF-8 and without NUL bytes. Zeros: none. */
struct schema_names
{
    uint32_t n, cap;
    size_t *at; /* Name i begins at text[at[i]]; n of cap. */
    char *text; /* Names, each with its NUL. */
    size_t n_text, text_cap;
};

/* Zeros: the columns have no names. */
struct schema
{
    bool named;
    uint64_t hash; /* Hash of the names of the values' columns, in order. */
    uint32_t n;    /* Columns of values. 0: not known, which is so without names and tags. */
    struct schema_names names; /* n of them, then the label's where has_label; empty: not known. */
    bool has_label;            /* The label's name or tag is known. */
    char tags[COLUMNS_TEXT_MAX]; /* Tags of n names and the label's, or "". */
};

/* Meanings of a column of a table that are no place among the values. */
enum { SCHEMA_LABEL = 1 << 30, SCHEMA_IGNORED };

/* How a table is to be read. */
struct schema_ask
{
    size_t label;  /* The label's column, where label= says it; SIZE_MAX: it does not. */
    bool labelled; /* Rows need a label; */
    bool bare;     /* rows are to be taken without one. Neither: as the header has it. */
};

/* Result of matching a header. */
struct schema_found
{
    uint32_t *place; /* For each column of the table its place among the values, SCHEMA_LABEL or
                      * SCHEMA_IGNORED; owned. */
    size_t label;    /* The label's column; SIZE_MAX: none. */
    bool reordered;
    char note[SCHEMA_WHY_MAX]; /* What people should know, or "". */
};

/* Room for n names. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_names_open(struct schema_names *l, size_t n);
void schema_names_close(struct schema_names *l);
/* One more name: bytes as a file has them. 0, -ENOMEM, or -EINVAL for a NUL byte in it. */
__attribute__((warn_unused_result)) int schema_names_add(struct schema_names *l,
                                                         const uint8_t *name, size_t n);
const char *schema_name(const struct schema_names *l, size_t i);
/* Is a name there twice? Then the two columns, from 0. Without memory: -ENOMEM. */
__attribute__((warn_unused_result)) int schema_names_twice(const struct schema_names *l,
                                                           bool *twice, size_t column[2]);

void schema_close(struct schema *s);
__attribute__((warn_unused_result)) int schema_copy(struct schema *to, const struct schema *from);

/* The schema of a first header; `label` is its label's column, SIZE_MAX where it has none. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_adopt(struct schema *s,
                                                     const struct schema_names *header,
                                                     size_t label);

/* The schema that a kind names; of an open one `known`, which may be NULL. Where `known` has the kind's hash,
 * its names are taken. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_of_kind(struct schema *s, const struct kind_rows *k,
                                                       const struct schema *known);

/* Match a header without a name twice. 0; -EINVAL with what is wrong, for the end of a sentence; or
 * -ENOMEM. A schema that knew tags only learns the names. O(n log n). */
__attribute__((warn_unused_result)) int schema_match(struct schema *s,
                                                     const struct schema_names *header,
                                                     const struct schema_ask *ask,
                                                     struct schema_found *found,
                                                     char why[SCHEMA_WHY_MAX]);

/* Are all known names of values in the header? False where no names are known. */
bool schema_is_in(const struct schema *s, const struct schema_names *header);

/* The names of values, and behind them the label's: "a", "b" and the label "y". For sentences. */
void schema_list(const struct schema *s, char text[SCHEMA_WHY_MAX]);
/* The name of value i, in quotes; "column 3" where it is not known. */
void schema_column(const struct schema *s, size_t i, char text[64]);

/* Order of the columns of `from` in `to`: place[i] of to->n is the column of `from` for it. False
 * where one lacks names of the other, or has other ones: then `why` has both lists. Both know their names. */
bool schema_order(const struct schema *from, const struct schema *to, uint32_t *place,
                  char why[SCHEMA_WHY_MAX]);

#endif
