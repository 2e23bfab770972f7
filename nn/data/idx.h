/* nn/data/idx.h -- the names and headers of IDX files, the format of MNIST.
 *
 *   images  00 00 08 03 | n | height | width | n * height * width bytes
 *   labels  00 00 08 01 | n | n bytes          (numbers: 4 bytes, big-endian)
 *
 *   names   PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, each plain or with .gz; some
 *           sites write images.idx3-ubyte
 *
 * LeCun, Cortes, Burges, "The MNIST database". Fashion-MNIST, KMNIST and EMNIST use the same
 * format. Nothing in a file is trusted: sizes are compared with what the file can contain before
 * memory is allocated, and labels are compared with the number of classes. The reader is idx_read()
 * of nn/data/reader.h.
 */
#ifndef NN_DATA_IDX_H
#define NN_DATA_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IDX_NAME_MAX = 512 /* Size of the longest file name, in bytes with the NUL. */
};

/* Return whether a name, without a path, belongs to a file of images or to a file of labels. */
bool idx_names_images(const char *name);
bool idx_names_labels(const char *name);

/* Writes the name of the other file of a pair of images and labels, without .gz. Returns false if
 * `name` is no IDX name or is too long. */
bool idx_partner(const char *name, char partner[IDX_NAME_MAX]);

/* Gets height and width from the first bytes of a file of images. Returns false if the bytes are
 * not the header of such a file. */
bool idx_size(const uint8_t *bytes, size_t n, uint32_t *height, uint32_t *width);

#endif
