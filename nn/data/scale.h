/* nn/data/scale.h -- a set that has been read: its columns brought to one scale, and that said in its kind.
 *
 *   csv      what columns are (nn/data/columns.h), means and scales of the training set
 *   libsvm   scales only, so that rows stay sparse; by itself where one column reaches more than
 *            COLUMN_STATISTICS_WILD times as far as another
 *
 * A kind with a text brings them along, and the set is taken as that says, whatever is in it. One with
 * a hash is that of a set too wide for a text: who is to be of it has the same training set.
 */
#ifndef NN_DATA_SCALE_H
#define NN_DATA_SCALE_H

#include "nn/data/column_statistics.h"
#include "nn/data/dataset.h"
#include "nn/data/kind.h"

enum { SCALE_NOTE_MAX = 640 };

/* What is to be done with the columns of a set. */
struct scale
{
    enum columns_scale wanted;
    bool given;             /* A kind's text says what columns are. */
    bool strict;            /* Numbers as they are, and nothing else: of csv only. */
    uint64_t hash;          /* That of a kind without a text; else 0. */
    struct columns columns; /* A table's: for the reader to find out, or as a kind says. */
    struct column_statistics
        moments; /* Those of the training set, where it is we who have fitted them; else none. */
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
