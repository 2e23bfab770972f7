/* nn/data/data.h -- data sets: what a data spec names, in memory.
 *
 *   spec   "glyphs"               drawn by the program (nn/data/glyphs.h)
 *          "KIND:PATH[,key=value]..."
 *
 *   KIND      PATH                                     canonical kind
 *   mnist     a directory of IDX files                 mnist
 *   idx       the same, any size and classes           idx/1x28x28/10
 *   cifar10   a directory of binary batches            cifar10
 *   cifar100  the same, fine labels                    cifar100
 *   libsvm    files of sparse rows, or a directory     libsvm/123x2/pm
 *   csv       files of a table, or a directory         csv/64x10/0
 *   text      files, or a directory                    text/128
 *
 * A PATH alone is looked into to find its kind (data_sniff()). Each file may be
 * plain or .gz. The held-out set: files of a directory named so (test, .t, tes,
 * val: nn/data/files.h has the rules), or test=PATH, or holdout=SHARE of the samples
 * (0.1 where nothing else is said; of a text, its end: nn/data/split.h).
 *
 *   key        of           meaning
 *   test       all          PATH of the held-out set
 *   holdout    all          share of the samples held out instead
 *   label      csv          column of the label, by name or number from 1; last
 *   header     csv          yes, no, auto
 *   divide     csv, libsvm  every value is divided by this (1)
 *   features   libsvm       how many there are, where files do not show all
 *   context    text         bytes of one sample (128)
 *
 * The canonical kind is part of a run and alone fixes shapes, number of classes,
 * what labels mean, and normalisation: peers may hold different files of one
 * kind. "libsvm", "csv", "idx" without the rest are open kinds: the files fix
 * them once read. Labels: "pm" (-1/+1), "0" (0..C-1), "1" (1..C), or
 * "names-HASH" of the sorted names; divide=16 ends the kind in "/16".
 *
 * Pixels stay bytes: a quarter of the memory, and normalising on the way into
 * a batch costs one table look-up a pixel. Normalisation: (p / 255 - mean) / std
 * with the sets' usual figures; of "idx", 0.5 and 0.5.
 *
 * Reading costs at most DATA_MEMORY_FACTOR times the files' unpacked size, and
 * a few MiB, at its peak. Images take 1.1 times (2 of address space), tables and
 * sparse rows 4 to 5; the most, 13, do rows that are a label and nothing else,
 * nine tenths of them held out.
 */
#ifndef NN_DATA_DATA_H
#define NN_DATA_DATA_H

#include "nn/files/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DATA_ERROR_MAX = FILE_ERROR_MAX, /* Most sentences are about a file. */
    DATA_KIND_MAX = 64,
    DATA_CHANNELS_MAX = 4,
    DATA_CLASSES_MAX = 4096,
    DATA_FEATURES_MAX = 1 << 24,
    DATA_CONTEXT_MAX = 4096,
    DATA_MEMORY_FACTOR = 16
};

enum data_form {
    DATA_IMAGES, /* Bytes, normalised by a table. */
    DATA_ROWS,   /* Dense floats. */
    DATA_SPARSE, /* Rows of (column, value). */
    DATA_TEXT    /* Bytes; each predicts the next. */
};

/* In a sentence: "images", "sparse rows". */
const char *data_form_name(enum data_form form);

/* What a canonical kind fixes. Of a text: 1 x context x 1, 256 classes. Of rows:
 * features x 1 x 1. */
struct data_shape
{
    enum data_form form;
    uint32_t channels, height, width, n_classes;
};

struct labels;

struct dataset
{
    char kind[DATA_KIND_MAX]; /* Canonical. */
    struct data_shape shape;
    size_t n;         /* Samples; at least one once open. */
    uint16_t *labels; /* n, each < n_classes; NULL for a text. */
    uint32_t *file;   /* n: which file each is from; NULL: all from one. */
    uint32_t n_files;
    struct labels *names; /* Of a kind of names (nn/data/labels.h), else NULL; freed
                           * by labels_close(). */

    uint8_t *pixels; /* DATA_IMAGES: n x channels x height x width, as files
                       * have them. */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX]; /* Of pixel / 255. */
    float value[DATA_CHANNELS_MAX][256];                   /* Pixel byte -> normalised. */

    float *rows; /* DATA_ROWS: n x channels. */

    size_t *start;    /* DATA_SPARSE: n + 1; row i is start[i] to start[i + 1]. */
    uint32_t *column; /* Ascending in a row. */
    float *entry;
    size_t longest; /* Entries of the longest row. */

    uint8_t *text; /* DATA_TEXT: sample i is text[i * context] on, context
                       * bytes and the one behind them. */
};

struct data
{
    struct dataset train, test;
};

/* The kind that a spec of the command line, or a canonical kind, stands for;
 * opens no file: "libsvm:DIR" gives the open kind "libsvm", "text:F,context=64"
 * gives "text/64", "csv/64x10/0" itself. A PATH alone is refused here. 0, or
 * -EINVAL with a sentence. */
__attribute__((warn_unused_result)) int data_kind(const char *spec, char kind[DATA_KIND_MAX],
                                                  char error[DATA_ERROR_MAX]);

/* Is this spec a PATH alone? And which KIND is it: looks at names and at the
 * first bytes of its files. 0, or -EINVAL or an errno with a sentence. */
bool data_is_path(const char *spec);
__attribute__((warn_unused_result)) int data_sniff(const char *path, char kind[DATA_KIND_MAX],
                                                   char error[DATA_ERROR_MAX]);

/* Is the shape known? Do two kinds agree (equal, or one is the open kind of the
 * other)? */
bool data_kind_fixed(const char *kind);
bool data_kind_agrees(const char *a, const char *b);

/* Shapes that a canonical, fixed kind fixes. 0, or -EINVAL for what is none. */
__attribute__((warn_unused_result)) int data_shape(const char *kind, struct data_shape *shape);

/* What to read. */
struct data_request
{
    const char *spec;
    const char *kind; /* The run's: data must be of it. NULL: their own. */
    uint64_t seed;    /* The run's: changes "glyphs" only. */
    /* Called while reading, at most some times a second's worth of bytes; may
     * be NULL. `total` is the size of the file on disk. */
    void (*progress)(void *self, const char *path, uint64_t done, uint64_t total);
    void *self;
};

/* Read or draw both sets. 0, or -EINVAL (spec or contents), -ENOMEM, or the
 * file's errno; then `error` has one sentence (file, line or offset, found,
 * expected) and *d holds nothing. */
__attribute__((warn_unused_result)) int data_open(struct data *d,
                                                  const struct data_request *request,
                                                  char error[DATA_ERROR_MAX]);
void data_close(struct data *d);

/* Floats of one sample: channels * height * width. */
size_t dataset_dim(const struct dataset *d);

/* Write sample i to out[0..dataset_dim): an image normalised, [h][w][c]; a row;
 * a text's bytes as floats. Not of sparse rows. */
void dataset_sample(const struct dataset *d, size_t i, float *out);

/* Labels of sample i: one, or of a text `context`: each byte's successor. */
void dataset_labels(const struct dataset *d, size_t i, uint16_t *labels);

/* Give *d the shapes and normalisation of a fixed `kind` and room for n >= 1
 * samples; `entries` of sparse rows in all. For readers of files and for
 * tests. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int dataset_init(struct dataset *d, const char *kind, size_t n,
                                                     size_t entries);
void dataset_close(struct dataset *d);

/* Only its kind, shapes and normalisation: all else stays. */
void dataset_kind(struct dataset *d, const char *kind);

#endif
