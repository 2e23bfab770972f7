/* nn/data/idx.h -- the names and headers of IDX files, MNIST's format.
 *
 *   images  00 00 08 03 | n | height | width | n * height * width bytes
 *   labels  00 00 08 01 | n | n bytes          (numbers: 4 bytes, big-endian)
 *
 *   names   PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, each plain or
 *           with .gz; some sites write images.idx3-ubyte
 *
 * LeCun, Cortes, Burges, "The MNIST database". Fashion-MNIST, KMNIST and EMNIST
 * come in the same files. Nothing in a file is trusted: sizes are compared with
 * what the file can hold before memory is taken, labels with the classes. The
 * reader is idx_read() of nn/data/reader.h.
 */
#ifndef NN_DATA_IDX_H
#define NN_DATA_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IDX_NAME_MAX = 512 /* Bytes of a name, with the NUL. */
};

/* Is this the name (no path) of a file of images, of labels? */
bool idx_names_images(const char *name);
bool idx_names_labels(const char *name);

/* The name of the other of the two, without .gz. False where `name` is neither
 * or too long. */
bool idx_partner(const char *name, char partner[IDX_NAME_MAX]);

/* Height and width that a file of images begins with; false where it begins
 * otherwise. */
bool idx_size(const uint8_t *bytes, size_t n, uint32_t *height, uint32_t *width);

#endif
