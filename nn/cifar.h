/* nn/cifar.h -- CIFAR-10's binary batches.
 *
 *   batch   records, nothing else
 *   record  label (1 byte) | red 32x32 | green 32x32 | blue 32x32
 *
 * Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
 * data_batch_1.bin to data_batch_5.bin are the training set, as many of them
 * as there are, and test_batch.bin the test set; each plain or with .gz.
 */
#ifndef NN_CIFAR_H
#define NN_CIFAR_H

#include "nn/data.h"

/* Read the training and the test set of DIR. 0, or negative with a sentence
 * and *d empty. */
__attribute__((warn_unused_result)) int
cifar_read(struct data *d, const char *dir, char error[DATA_ERROR_MAX]);

#endif
