/* nn/data/scale.h -- scales the columns of a data set that was read, and writes the scales to its kind.
 *
 *   csv      types of the columns (nn/data/columns.h), means and scales of the training set
 * libsvm   scales only, so that rows stay sparse; by default only if the range of one column is
 *          more than COLUMN_STATISTICS_WILD times that of another
 *
 * If the kind contains the scales, the set is scaled by them. A kind of a set with too many columns has
 * a hash instead; then all peers need the same training set.
 */
#ifndef NN_DATA_SCALE_H
#define NN_DATA_SCALE_H

#include "nn/data/column_statistics.h"
#include "nn/data/dataset.h"
#include "nn/data/kind.h"

enum { SCALE_NOTE_MAX = 640 };

/* How the columns of a set are scaled. */
struct scale
{
    enum columns_scale wanted;
    bool given;             /* A kind's text says what columns are. */
    bool strict;            /* Numbers as they are, and nothing else: of csv only. */
    uint64_t hash;          /* Hash in a kind without a text. 0: the kind has a text. */
    struct columns columns; /* A table's: for the reader to find out, or as a kind says. */
    struct column_statistics
        /* Statistics of the training set, if this process computed the scales. Otherwise empty. */
        moments;
};

/* `kind` is what the set is to be of, open or fixed; `wanted` and `divide` are the spec's. 0; -EINVAL with
 * a sentence where spec and kind contradict each other; or -ENOMEM. */
__attribute__((warn_unused_result)) int scale_open(struct scale *s, const char *kind,
                                                   enum columns_scale wanted, double divide,
                                                   char error[DATA_ERROR_MAX]);
void scale_close(struct scale *s);

/* Both sets have been read: scale them by what the training set says, and name that in their kinds. The
 * second may be empty, zeros.
 * `path` is for sentences. What people should know of it goes to `note`, a sentence or several. 0;
 * -EINVAL with a sentence; or -ENOMEM. */
__attribute__((warn_unused_result)) int scale_sets(struct scale *s, struct dataset *train,
                                                   struct dataset *test, const char *path,
                                                   char note[SCALE_NOTE_MAX],
                                                   char error[DATA_ERROR_MAX]);

#endif
