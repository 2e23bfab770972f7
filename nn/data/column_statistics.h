/* nn/data/column_statistics.h -- statistics (moments) of a training set's columns, which peers pool
 * to agree on one kind (text that describes the data, kind.h).
 *
 *   set --scale_sets()--> moments --print--> bytes ~~~> bytes --parse--> moments --.
 *                            '------------------- pool --------------------------- + --> kind
 *
 * Peers with different files agree on one kind, with one mean and scale per column, before the run
 * starts. The moments of the union of two sets are computed from the moments of both (Chan, Golub,
 * LeVeque: "Algorithms for computing the sample variance", 1983, pairwise update):
 *
 *   n = n1 + n2    d = mean2 - mean1    mean = mean1 + d n2 / n    m2 = m2_1 + m2_2 + d^2 n1 n2 / n
 *
 * Rows do not leave a peer. For a column of numbers, a peer sends their count, mean, sum of squared
 * distances from the mean, minimum and maximum. For a column of categories, a peer sends the hashes
 * of the categories. For both, a peer sends the number of gaps.
 *
 * `liars` is the number of members that may report false values. The table shows what a false value
 * can change if all members are trusted, and if some are not:
 *
 *                      with `liars` = 0                      with `liars` > 0
 *   rows               the weight is limited to              none: each member has the same weight
 *                      COLUMN_STATISTICS_WEIGHT times the median
 *                      row count
 *   numbers            the value is used with that weight    limited: medians of means, deviations
 *                                                            and ranges are used
 *   words, classes     the value is used                     limited: a value is used if more than
 *                                                            `liars` members report it
 *
 * The bytes may come from an untrusted peer. column_statistics_parse() refuses moments that no set
 * of numbers can have.
 */
#ifndef NN_DATA_COLUMN_STATISTICS_H
#define NN_DATA_COLUMN_STATISTICS_H

#include "nn/data/dataset.h"
#include "nn/data/schema.h"

enum {
    /* Largest size of the encoded statistics, in bytes. A table whose statistics are larger also
     * has too many columns for a run description. */
    COLUMN_STATISTICS_BYTES_MAX = 24 * 1024,
    COLUMN_STATISTICS_COLUMNS_MAX = COLUMNS_TEXT_MAX / 2,
    COLUMN_STATISTICS_WEIGHT = 64,
    COLUMN_STATISTICS_WHY_MAX = 320
};
#define COLUMN_STATISTICS_ROWS_MAX (UINT64_C(1) << 40)

/* A libsvm set is scaled by default if one column's range is more than COLUMN_STATISTICS_WILD times
 * the range of another column. */
#define COLUMN_STATISTICS_WILD 100.0

/* Statistics of the training data of one member, or of several members pooled. All zero: no
 * statistics. */
struct column_statistics
{
    /* True: the rows are sparse (libsvm). Then all columns are numbers, and only the smallest and
     * largest value of each is known. */
    bool sparse;
    /* Requested scale. COLUMNS_SCALE_AUTO (libsvm only): the ranges of the columns decide whether
     * they are scaled. */
    enum columns_scale wanted;
    enum labels_scheme scheme; /* Scheme of the labels: numbers, names, ... (nn/data/labels.h). */
    uint32_t n_classes;
    uint64_t names;           /* With LABELS_NAMES: hash of the labels' names. */
    char list[LABEL_SET_MAX]; /* With LABELS_LIST: text of the labels, otherwise "". */
    uint64_t rows;            /* Number of rows of the training set, at least 1. */
    struct schema schema;     /* Names of the columns. Zeros: the columns have no names. */
    struct columns columns; /* Types, categories and gaps of the columns, and the label's column. */
    struct column_moments *of; /* Statistics of each column, columns.n of them. Owned. */
};

/* Initialises *m: copies `columns`, and the labels of the data description *k (nn/data/kind.h), and
 * sets all moments to zero. Returns 0 or -ENOMEM. After an error, *m is empty. */
__attribute__((warn_unused_result)) int column_statistics_open(struct column_statistics *m,
                                                               const struct kind_rows *k,
                                                               const struct columns *columns);
void column_statistics_close(struct column_statistics *m);

/* Returns the ratio of the largest to the smallest range of n columns, and their indices in *high
 * and *low. Columns whose numbers are all equal are ignored. If there is no other column, returns 1
 * and sets both indices to SIZE_MAX. */
double column_statistics_apart(const struct column_moments *of, size_t n, size_t *low,
                               size_t *high);

/* Computes the means and scales in m->columns from the moments. If no scale was requested, also
 * decides whether the columns are scaled. */
void column_statistics_settle(struct column_statistics *m);

/* Encodes the statistics m as bytes. Returns the number of bytes, or 0 if `cap` bytes are too
 * few. */
size_t column_statistics_print(const struct column_statistics *m, uint8_t *out, size_t cap);

/* Parses encoded statistics, which may come from an untrusted peer. Returns 0, -EINVAL with the
 * reason in *wrong (a string literal), or -ENOMEM. After an error, *m is empty. */
__attribute__((warn_unused_result)) int column_statistics_parse(struct column_statistics *m,
                                                                const uint8_t *p, size_t n,
                                                                const char **wrong);

/* Returns true if `found` cannot be pooled with `expected`, which has the columns of the run. `why`
 * then describes the difference, such as "column 3: found numbers, expected categories". If both
 * have names, `found` may have another order of columns and additional columns. If one of them has
 * no names, columns are compared in order. */
bool column_statistics_differ(const struct column_statistics *found,
                              const struct column_statistics *expected,
                              char why[COLUMN_STATISTICS_WHY_MAX]);

/* Puts the columns of m into the order of `to`, and drops columns that `to` lacks. Call it only if
 * column_statistics_differ() returned false for m. If `to` has no names, the names of m are
 * dropped. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int column_statistics_reorder(struct column_statistics *m,
                                                                  const struct schema *to);

/* Pools the statistics of n >= 1 members, whose columns must be in the same order and must not
 * differ (column_statistics_differ()). At most `liars` of the members may report false values. Does
 * not compute means and scales: see column_statistics_settle(). The same statistics in the same
 * order give the same bits. Another order of the members changes only the rounding. Returns 0 or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int column_statistics_pool(
    struct column_statistics *out, const struct column_statistics *const *of, size_t n,
    uint32_t liars);

/* Writes the kind (text that describes the data) for the statistics m, after
 * column_statistics_settle(m). Returns 0, or -EINVAL with a message if the kind is too long for a
 * run description. */
__attribute__((warn_unused_result)) int column_statistics_kind(const struct column_statistics *m,
                                                               char kind[DATA_KIND_MAX],
                                                               char why[COLUMN_STATISTICS_WHY_MAX]);

#endif
