/* nn/data/moments.h -- what a training set's columns come to, to be pooled with those of other sets.
 *
 *   set --scale_sets()--> moments --print--> bytes ~~~> bytes --parse--> moments --.
 *                            '------------------- pool --------------------------- + --> kind
 *
 * Peers with files of their own agree so on one kind before there is a run: the moments of the union of
 * all sets are those of the sets, pooled (Chan, Golub, LeVeque: "Algorithms for computing the sample
 * variance", 1983, pairwise update):
 *
 *   n = n1 + n2    d = mean2 - mean1    mean = mean1 + d n2 / n    m2 = m2_1 + m2_2 + d^2 n1 n2 / n
 *
 * Rows do not leave a set: of a column of numbers it tells how many there are, mean, squared distances,
 * least and largest; of words, the hashes of which there are; and how many gaps.
 *
 *   who lies           with `liars` = 0 (everybody is believed)    with `liars` > 0
 *   of its rows        it counts for at most MOMENTS_WEIGHT        each member counts once
 *                      times as many as the median member has
 *   of its numbers     they have that weight                       medians of means, deviations, ranges
 *   of words, classes  they are taken                              what more than `liars` members have
 *
 * Bytes may be a stranger's, and are held to all that numbers cannot break.
 */
#ifndef NN_DATA_MOMENTS_H
#define NN_DATA_MOMENTS_H

#include "nn/data/dataset.h"
#include "nn/data/schema.h"

enum {
    MOMENTS_BYTES_MAX = 24 * 1024, /* More columns than fit would not fit into a run either. */
    MOMENTS_COLUMNS_MAX = COLUMNS_TEXT_MAX / 2,
    MOMENTS_WEIGHT = 64,
    MOMENTS_WHY_MAX = 320
};
#define MOMENTS_ROWS_MAX (UINT64_C(1) << 40)

/* How many times as far as another column one reaches for a libsvm to be scaled by itself. */
#define MOMENTS_WILD 100.0

/* Zeros are none. */
struct moments
{
    bool sparse;               /* libsvm: numbers only, and of each only the range. */
    enum columns_scale wanted; /* As asked for; AUTO: of libsvm, by the ranges. */
    enum labels_scheme scheme; /* What labels are: as in struct kind_rows. */
    uint32_t n_classes;
    uint64_t names;            /* LABELS_NAMES: the hash of their names. */
    char list[LABEL_SET_MAX];  /* LABELS_LIST: the labels, else "". */
    uint64_t rows;             /* The training set has so many; 1 or more. */
    struct schema schema;      /* Names of the columns. Zeros: the columns have no names. */
    struct columns columns;    /* Forms, categories, gaps, the label's place. */
    struct column_moments *of; /* columns.n of them; owned. */
};

/* Copies columns, takes the rest of *rows, a kind taken apart that is fixed; `of` is zeroed. 0 or -ENOMEM,
 * then *m is none. */
__attribute__((warn_unused_result)) int moments_open(struct moments *m, const struct kind_rows *k,
                                                     const struct columns *columns);
void moments_close(struct moments *m);

/* How far a column reaches, at most; of[low] reaches least, of[high] farthest, columns that are all the
 * same aside (SIZE_MAX: all are). The ratio of the two. */
double moments_apart(const struct column_moments *of, size_t n, size_t *low, size_t *high);

/* Fix columns->scale, means and scales by the moments. */
void moments_settle(struct moments *m);

/* To at most cap bytes; 0 where that is too little. */
size_t moments_print(const struct moments *m, uint8_t *out, size_t cap);

/* Bytes of anybody. 0; -EINVAL with what is wrong, a literal; or -ENOMEM; then *m is none. */
__attribute__((warn_unused_result)) int moments_parse(struct moments *m, const uint8_t *p, size_t n,
                                                      const char **wrong);

/* Can `found` not be pooled with `expected`, whose columns are those of the run? Then `why` says in what they
 * differ: "column 3: found numbers, expected categories". Columns with names may have another order, and
 * `found` may have more of them. Where one side has no names, columns are taken in order. */
bool moments_differ(const struct moments *found, const struct moments *expected,
                    char why[MOMENTS_WHY_MAX]);

/* Bring columns that do not differ from those of `to` to their order, and leave out others. Without names there,
 * ours are dropped. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int moments_reorder(struct moments *m, const struct schema *to);

/* The moments of n >= 1 sets that do not differ, in one order, at most `liars` of which lie. Means and scales are not
 * settled. The same sets in the same order give the same bits; in another, the same but for rounding.
 * 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int moments_pool(struct moments *out,
                                                     const struct moments *const *of, size_t n,
                                                     uint32_t liars);

/* The kind of settled moments. 0; or -EINVAL with a sentence where a run has no room for it. */
__attribute__((warn_unused_result)) int moments_kind(const struct moments *m,
                                                     char kind[DATA_KIND_MAX],
                                                     char why[MOMENTS_WHY_MAX]);

#endif
