/* nn/data/scale.h -- scales the columns of a data set after reading, and writes the scales to its
 * kind, the text that describes the data (nn/data/kind.h).
 *
 *   csv      types of the columns (nn/data/columns.h), means and scales of the training set
 *   libsvm   scales only, so that rows stay sparse. By default only if one column's range is more
 *            than COLUMN_STATISTICS_WILD times another column's range
 *
 * If the kind already contains the scales, the set is scaled by them. If the set has too many
 * columns, its kind contains only a hash of the scales. All peers then need the same training set,
 * because scales cannot be read from a hash.
 */
#ifndef NN_DATA_SCALE_H
#define NN_DATA_SCALE_H

#include "nn/data/column_statistics.h"
#include "nn/data/dataset.h"
#include "nn/data/kind.h"
#include "nn/data/schema.h"

enum { SCALE_NOTE_MAX = 640 };

/* State of scaling the columns of one data set. */
struct scale
{
    enum columns_scale wanted;
    /* True: the means and scales of the columns are given in the run's description of the data
     * (nn/data/kind.h), and are not computed from this data set. */
    bool given;
    /* True: all values are numbers and are not scaled. The csv reader then gets no struct
     * columns. */
    bool strict;
    /* Hash of the text of the columns, if the kind of the data (nn/data/kind.h) contains this hash
     * instead of the text. Otherwise 0. */
    uint64_t hash;
    /* Columns of a table, found by the reader or given by the kind (nn/data/kind.h). */
    struct columns columns;
    struct column_statistics
        /* Statistics of the training set, if this process computed the scales. Otherwise empty. */
        moments;
};

/* Prepares scaling before the sets are read. `kind`: the kind that the set must have, open or
 * fixed. `wanted` and `divide`: scale= and divide= of the spec. Returns 0; -EINVAL with a message
 * if spec and kind contradict each other; or -ENOMEM. */
__attribute__((warn_unused_result)) int scale_open(struct scale *s, const char *kind,
                                                   enum columns_scale wanted, double divide,
                                                   char error[DATA_ERROR_MAX]);
void scale_close(struct scale *s);

/* Scales both sets after reading, by the columns of the training set, and adds the scales to their
 * kinds (nn/data/kind.h). `test` may be empty (zeros). `names`: names of the columns in notes, or
 * an empty schema. `path`: name of the data in messages. Notes for the user are written to `note`.
 * Returns 0; -EINVAL with a message; or -ENOMEM. */
__attribute__((warn_unused_result)) int scale_sets(struct scale *s, struct dataset *train,
                                                   struct dataset *test, const struct schema *names,
                                                   const char *path, char note[SCALE_NOTE_MAX],
                                                   char error[DATA_ERROR_MAX]);

#endif
