/* nn/data/cifar.h -- recognises binary files of CIFAR-10 and CIFAR-100.
 *
 *   file                records, nothing else
 *   CIFAR-10 record     label (1 byte) | red 32x32 | green 32x32 | blue 32x32
 *   CIFAR-100 record    coarse label (1 byte, 0..19) | fine label (1 byte) | the same three planes
 *
 * Krizhevsky, "Learning multiple layers of features from tiny images", 2009. The model learns the
 * fine label of CIFAR-100. The reader is cifar_read() of nn/data/reader.h.
 */
#ifndef NN_DATA_CIFAR_H
#define NN_DATA_CIFAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return whether a file that begins with these n bytes looks like CIFAR-10 or like CIFAR-100.
 * `whole`: the file has no more bytes. In rare cases, such as all-black images, both functions
 * return true. */
bool cifar_looks_10(const uint8_t *bytes, size_t n, bool whole);
bool cifar_looks_100(const uint8_t *bytes, size_t n, bool whole);

#endif
