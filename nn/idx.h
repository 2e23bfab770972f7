/* nn/idx.h -- MNIST's IDX files: images and labels of one set.
 *
 *   images  00 00 08 03 | n | height | width | n * height * width bytes
 *   labels  00 00 08 01 | n | n bytes          (numbers: 4 bytes, big-endian)
 *
 * LeCun, Cortes, Burges, "The MNIST database". Fashion-MNIST and KMNIST come
 * in the same files. Nothing in a file is trusted: sizes are compared with
 * what the file can hold before memory is taken, labels with the classes.
 */
#ifndef NN_IDX_H
#define NN_IDX_H

#include "nn/data.h"

/* Read DIR/PREFIX-images-idx3-ubyte and DIR/PREFIX-labels-idx1-ubyte (each
 * plain or with .gz) into *d, as a set of `kind`, whose height and width they
 * must have. 0, or negative with a sentence, *d empty. */
__attribute__((warn_unused_result)) int
idx_read(struct dataset *d, const char *kind, const char *dir,
         const char *prefix, char error[DATA_ERROR_MAX]);

#endif
