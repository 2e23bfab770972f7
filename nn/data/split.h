/* nn/data/split.h -- holds out a share of a set that has no held-out files. The choice depends
 * on the set alone, so that all processes with the same files hold out the same samples: of a
 * text its end, of other data exactly round(share * n) samples, chosen by Knuth's algorithm S
 * (The Art of Computer Programming, vol. 2, 3.4.2) with a fixed seed. Both parts get at least
 * one sample. */
#ifndef NN_DATA_SPLIT_H
#define NN_DATA_SPLIT_H

#include "nn/data/dataset.h"

/* Move 0 < share < 1 of the samples of *train to *test; both keep their order.
 * 0; -EINVAL (a set of one sample) with a sentence about `path`, or -ENOMEM:
 * then *train is as it was and *test empty. */
__attribute__((warn_unused_result)) int data_split(struct dataset *train, struct dataset *test,
                                                   double share, const char *path,
                                                   char error[DATA_ERROR_MAX]);

#endif
