/* nn/data/schema.h -- the names of a table's columns: stored, compared and matched.
 *
 *   header of the first training file --schema_adopt--> schema --schema_match--> each later header
 *
 * The inputs of a model have the order of the columns in the first training file. Every other table
 * is matched to that order by the names of its columns:
 *
 *   the same names, another order      the columns are reordered
 *   more columns                       additional columns are ignored, and a note names them
 *   fewer columns                      refused, with the names found and expected
 *   the label's column                 found by its name, at any position; label= may name another
 *
 * Names are compared byte by byte, case-sensitively, without spaces around them. Names that are not
 * UTF-8 are read as Latin-1.
 *
 * A run description has a hash of the names in their order. It also has a tag of 18 bits for each
 * name, if the tags fit (nn/data/kind.h). With tags, a peer can put its columns into the run's
 * order without knowing the run's names. The names themselves are in model files and in the
 * statistics that peers exchange before the run (column_statistics.h).
 */
#ifndef NN_DATA_SCHEMA_H
#define NN_DATA_SCHEMA_H

#include "nn/data/kind.h"

enum {
    /* Length of the tag of one name, in letters of base64. A tag is a short hash. */
    SCHEMA_TAG = 3,
    SCHEMA_WHY_MAX = 256, /* Size of a partial error message, in bytes with the NUL. */
    SCHEMA_LIST_MAX = 100 /* Size of a list of names in a message, in bytes with the NUL. */
};

/* List of names, all UTF-8 and without NUL bytes. All zero: no names. */
struct schema_names
{
    uint32_t n, cap;
    size_t *at; /* text[at[i]] is the first byte of name i. `n` entries, room for `cap`. */
    char *text; /* All names one after the other, each with a NUL. */
    size_t n_text, text_cap;
};

/* Names of the columns of a table or of a run. All zero: the columns have no names. */
struct schema
{
    bool named;
    uint64_t hash; /* Hash of the names of all columns except the label's, in their order. */
    /* Number of columns without the label. 0: not known, because names and tags are not known. */
    uint32_t n;
    /* Names of the n columns, then the label's name if has_label. Empty: the names are not
     * known. */
    struct schema_names names;
    bool has_label; /* True: the label's name or tag is known. */
    /* Tags (short hashes) of the n names and of the label's name. "": not known. */
    char tags[COLUMNS_TEXT_MAX];
};

/* Values of schema_found.place for columns that are no inputs of the model: the label's column
 * (SCHEMA_LABEL), and columns that the schema does not have (SCHEMA_IGNORED). */
enum { SCHEMA_LABEL = 1 << 30, SCHEMA_IGNORED };

/* Requirements on the label, an argument of schema_match(). */
struct schema_ask
{
    size_t label;  /* Column that label= requests. SIZE_MAX: label= is not given. */
    bool labelled; /* True: rows must have a label. */
    /* True: the label is not read, even if the table has one. If `labelled` and `bare` are both
     * false, the header decides whether there is a label. */
    bool bare;
};

/* Result of schema_match(). */
struct schema_found
{
    /* For each column of the table: its index among the values of a row, or SCHEMA_LABEL or
     * SCHEMA_IGNORED. Owned by the caller. */
    uint32_t *place;
    size_t label; /* Index of the label's column in the header. SIZE_MAX: no label is read. */
    bool reordered;
    char note[SCHEMA_WHY_MAX]; /* Notes for the user. "": none. */
};

/* Allocates a list for n names. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_names_open(struct schema_names *l, size_t n);
void schema_names_close(struct schema_names *l);
/* Appends a name that was read from a file, without the spaces around it. Returns 0, -ENOMEM, or
 * -EINVAL if the name has a NUL byte. */
__attribute__((warn_unused_result)) int schema_names_add(struct schema_names *l,
                                                         const uint8_t *name, size_t n);
const char *schema_name(const struct schema_names *l, size_t i);
/* Finds out whether two names in the list are equal. If so, sets *twice to true and column[] to the
 * indices of these two names. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_names_twice(const struct schema_names *l,
                                                           bool *twice, size_t column[2]);

/* Appends a list such as "a", "b" and 52 more to `text`, which has room for `cap` bytes. The list
 * has about SCHEMA_LIST_MAX bytes. `column`: the n columns to list. NULL: the first n columns. */
void schema_names_list(const struct schema_names *l, const size_t *column, size_t n, char *text,
                       size_t cap);

void schema_close(struct schema *s);
__attribute__((warn_unused_result)) int schema_copy(struct schema *to, const struct schema *from);

/* Initialises the schema from the first header. `label`: the label's column, or SIZE_MAX if the
 * rows have no label. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_adopt(struct schema *s,
                                                     const struct schema_names *header,
                                                     size_t label);

/* Initialises the schema for data with the description *k (nn/data/kind.h). `known`: a schema with
 * names, or NULL. If the kind is open, or if the kind has the hash of `known`, the schema becomes a
 * copy of `known` (empty if NULL). Otherwise it gets the hash and the tags of the kind, but no
 * names. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int schema_of_kind(struct schema *s, const struct kind_rows *k,
                                                       const struct schema *known);

/* Matches a header, which must have no duplicate names, to the schema. A schema that has only tags
 * or a hash learns the names from the header. Returns 0; -ENOMEM; or -EINVAL with the reason in
 * `why`, to which the caller adds the file and the line. O(n log n). */
__attribute__((warn_unused_result)) int schema_match(struct schema *s,
                                                     const struct schema_names *header,
                                                     const struct schema_ask *ask,
                                                     struct schema_found *found,
                                                     char why[SCHEMA_WHY_MAX]);

/* Returns true if the schema knows the names of all its columns and the header has all of them. */
bool schema_is_in(const struct schema *s, const struct schema_names *header);

/* Writes the names of the schema's columns and of the label for messages: "a", "b" and the label
 * "y". */
void schema_list(const struct schema *s, char text[SCHEMA_WHY_MAX]);
/* Writes how messages name column i of the schema: column "a", or column 3 if the name is not
 * known. */
void schema_column(const struct schema *s, size_t i, char text[64]);

/* Finds the order of columns: for each of the to->n columns of `to`, sets place[i] to the matching
 * column of `from`. Both schemas must have names. Returns false if `from` lacks a column of `to`;
 * `why` then lists the names of both. */
bool schema_order(const struct schema *from, const struct schema *to, uint32_t *place,
                  char why[SCHEMA_WHY_MAX]);

#endif
