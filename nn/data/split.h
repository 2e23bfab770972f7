/* nn/data/split.h -- holds out a share of a data set for which no held-out files are given.
 *
 * The choice depends only on the set, so all processes with the same files hold out the same
 * samples. The held-out part of a text is its end. Of other data, exactly round(share * n) samples
 * are chosen by Knuth's algorithm S (The Art of Computer Programming, vol. 2, 3.4.2) with a fixed
 * seed. Both parts get at least one sample. */
#ifndef NN_DATA_SPLIT_H
#define NN_DATA_SPLIT_H

#include "nn/data/dataset.h"

/* Moves a share of the samples of *train, 0 < share < 1, to *test. Both sets keep the order of
 * their samples. Returns 0; -EINVAL, with a message about `path`, if the set has only one sample;
 * or -ENOMEM. After an error, *train is unchanged and *test is empty. */
__attribute__((warn_unused_result)) int data_split(struct dataset *train, struct dataset *test,
                                                   double share, const char *path,
                                                   char error[DATA_ERROR_MAX]);

#endif
