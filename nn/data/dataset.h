/* nn/data/dataset.h -- one set of samples in memory, in the form (images, rows, text) that its kind
 * determines.
 *
 * Pixels are stored as bytes, in a quarter of the memory of floats. They are normalised when they
 * are copied into a batch, by one table look-up per pixel: (p / 255 - mean) / std, with the figures
 * of the kind (nn/data/kind.h).
 */
#ifndef NN_DATA_DATASET_H
#define NN_DATA_DATASET_H

#include "nn/data/kind.h"
#include "nn/files/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DATA_ERROR_MAX = FILE_ERROR_MAX, /* Size of an error message, in bytes with the NUL. */
    /* Largest memory that a reader needs, as a multiple of the size of the files
     * (nn/data/data.h). */
    DATA_MEMORY_FACTOR = 16
};

struct labels;

struct dataset
{
    /* Canonical kind: the text that describes the data (nn/data/kind.h), such as "csv/64x10/0". */
    char kind[DATA_KIND_MAX];
    struct data_shape shape;
    size_t n; /* Number of samples. At least one after the set has been opened. */
    /* Class of each sample, below shape.n_classes. NULL for a text, and for rows without labels
     * (nn/data/reader.h). */
    uint16_t *labels;
    uint32_t *file; /* Index of the file that each sample is from. NULL: all are from one file. */
    uint32_t n_files;
    /* Encoding of the files if it was not UTF-8, such as "Windows-1252". A static text. NULL:
     * UTF-8. */
    const char *encoding;
    /* Names of the classes (nn/data/labels.h), owned. NULL: the classes have no names, or their
     * names are not known. */
    struct labels *names;

    /* DATA_IMAGES: bytes of all images, n x channels x height x width, in the order of the
     * files. */
    uint8_t *pixels;
    /* Mean and deviation of pixel / 255 for each channel. */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
    /* Normalised value of each pixel byte, for each channel. */
    float value[DATA_CHANNELS_MAX][256];

    float *rows; /* DATA_ROWS: n rows of `stride` floats. */
    /* Number of floats of a stored row: the number of model inputs, unless categories are stored as
     * one number each (nn/data/columns.h). */
    size_t stride;
    /* The columns, owned, if some of them hold categories. dataset_sample() needs them to write the
     * inputs. NULL: no column holds categories. */
    struct columns *columns;

    /* DATA_SPARSE: n + 1 offsets into `column` and `entry`. Row i has the entries start[i] to
     * start[i + 1] - 1. */
    size_t *start;
    uint32_t *column; /* DATA_SPARSE: column of each entry, ascending within a row. */
    float *entry;
    size_t longest; /* DATA_SPARSE: number of entries of the longest row. */

    /* DATA_TEXT: all bytes. Sample i is the `context` bytes from text[i * context] on, and the
     * label of its last byte is the byte after it. */
    uint8_t *text;
};

/* Returns the number of floats of one sample: channels * height * width. */
size_t dataset_dim(const struct dataset *d);

/* Writes sample i to out[0..dataset_dim()): a normalised image as [h][w][c], a row, or the bytes of
 * a text as floats. Not for sparse rows, which are used in place. */
void dataset_sample(const struct dataset *d, size_t i, float *out);

/* Writes the labels of sample i. An image or a row has one label. A text has `context` labels per
 * sample: for each byte, the byte after it. */
void dataset_labels(const struct dataset *d, size_t i, uint16_t *labels);

/* Returns how table files spell a class: a number such as "7", or a name. If the names are not
 * known, returns the class's number. The text is in `out`, or borrowed from the set. */
const char *dataset_class(const struct dataset *d, uint16_t class, char out[8]);

/* Initialises *d with the shape and normalisation of a fixed `kind` such as "csv/64x10/0", and
 * allocates n >= 1 samples. `entries`: for sparse rows, the number of entries of all rows; for
 * dense rows, the floats of each row, or 0 for one per feature. For readers of files and for tests.
 * Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int dataset_init(struct dataset *d, const char *kind, size_t n,
                                                     size_t entries);
void dataset_close(struct dataset *d);

/* Sets the kind (nn/data/kind.h) of a data set, and the shape and normalisation that the kind says.
 * The samples do not change. */
void dataset_kind(struct dataset *d, const char *kind);

#endif
