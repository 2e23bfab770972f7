/* nn/data/cifar.h -- CIFAR's binary batches: which of the two sets are they of?
 *
 *   batch     records, nothing else
 *   CIFAR-10  label (1 byte) | red 32x32 | green 32x32 | blue 32x32
 *   CIFAR-100 coarse label (1 byte, 0..19) | fine label (1 byte) | the same
 *
 * Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
 * The fine label of CIFAR-100 is the one that is learned. The reader is
 * cifar_read() of nn/data/reader.h.
 */
#ifndef NN_DATA_CIFAR_H
#define NN_DATA_CIFAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Do a file's first n bytes (`whole`: all it has) look like CIFAR-10's, like
 * CIFAR-100's? Seldom, as of black images, like both. */
bool cifar_looks_10(const uint8_t *bytes, size_t n, bool whole);
bool cifar_looks_100(const uint8_t *bytes, size_t n, bool whole);

#endif
