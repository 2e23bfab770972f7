/* nn/data/dataset.h -- one set of samples in memory, in the form that its kind fixes.
 *
 * Pixels stay bytes: a quarter of the memory, and normalising on the way into
 * a batch costs one table look-up a pixel. Normalisation is (p / 255 - mean) / std
 * with the figures of the kind (nn/data/kind.h).
 */
#ifndef NN_DATA_DATASET_H
#define NN_DATA_DATASET_H

#include "nn/data/kind.h"
#include "nn/files/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DATA_ERROR_MAX = FILE_ERROR_MAX, /* Most sentences are about a file. */
    DATA_MEMORY_FACTOR = 16 /* nn/data/data.h: reading costs at most this times the files. */
};

struct labels;

struct dataset
{
    char kind[DATA_KIND_MAX]; /* Canonical. */
    struct data_shape shape;
    size_t n; /* Samples; at least one once open. */
    uint16_t
        *labels; /* n, each < n_classes; NULL for a text, and of rows without (nn/data/reader.h). */
    uint32_t *file; /* n: which file each is from; NULL: all from one. */
    uint32_t n_files;
    /* Encoding of the files if it was not UTF-8, such as "Windows-1252". Static. NULL: UTF-8. */
    const char *encoding;
    struct labels *names; /* The names of the classes where the kind has names
                           * (nn/data/labels.h), else NULL; owned. */

    uint8_t *pixels; /* DATA_IMAGES: n x channels x height x width, as files
                       * have them. */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX]; /* Over pixel / 255. */
    float value[DATA_CHANNELS_MAX][256];                   /* Pixel byte -> normalised. */

    float *rows;   /* DATA_ROWS: n x stride. */
    size_t stride; /* Floats of a row as it is kept: as many as it has inputs, but where categories
                    * are kept as one number each (nn/data/columns.h). */
    /* The columns, if some of them hold categories: dataset_sample() needs them to write the
     * inputs. NULL: no column holds categories. Owned. */
    struct columns *columns;

    size_t *start;    /* DATA_SPARSE: n + 1; row i is start[i] to start[i + 1]. */
    uint32_t *column; /* Ascending in a row. */
    float *entry;
    size_t longest; /* Entries of the longest row. */

    uint8_t *text; /* DATA_TEXT: sample i is text[i * context] on, context
                       * bytes and the one behind them. */
};

/* Floats of one sample: channels * height * width. */
size_t dataset_dim(const struct dataset *d);

/* Write sample i to out[0..dataset_dim): an image normalised, [h][w][c]; a row;
 * a text's bytes as floats. Sparse rows are not written out: they are used where
 * they lie. */
void dataset_sample(const struct dataset *d, size_t i, float *out);

/* Labels of sample i: one, or for a text `context` of them: each byte's successor. */
void dataset_labels(const struct dataset *d, size_t i, uint16_t *labels);

/* Returns the label or name that files of rows have for a class. Returns the class's number if the
 * names are not known. The text is in `out`, or borrowed from the set. */
const char *dataset_class(const struct dataset *d, uint16_t class, char out[8]);

/* Give *d the shapes and normalisation of a fixed `kind` and room for n >= 1
 * samples: sparse ones with `entries` in all, dense rows with `entries` floats each (0: one for each
 * feature). For readers of files and for tests. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int dataset_init(struct dataset *d, const char *kind, size_t n,
                                                     size_t entries);
void dataset_close(struct dataset *d);

/* Set its kind, shapes and normalisation alone: all else stays. */
void dataset_kind(struct dataset *d, const char *kind);

#endif
