/* nn/data/data.h -- interface of this folder: reads or draws the data that a spec names.
 *
 *   spec   "glyphs"               drawn by the program (nn/data/glyphs.h)
 *          "KIND:PATH[,key=value]..."
 *
 *   KIND      PATH                                     canonical kind (example)
 *   mnist     a directory of IDX files                 mnist
 *   idx       the same, any size and classes           idx/1x28x28/10
 *   cifar10   a directory of binary batches            cifar10
 *   cifar100  the same, fine labels                    cifar100
 *   libsvm    files of sparse rows, or a directory     libsvm/123x2/pm
 *   csv       files of a table, or a directory         csv/64x10/0
 *   text      files, or a directory                    text/128
 *
 * If a spec is a PATH without KIND, the kind is detected (data_sniff()). Each file may be plain or
 * .gz.
 *
 * The held-out set consists of the files of a directory with names such as test, .t, tes or val
 * (rules in nn/data/files.h), or of test=PATH, or of holdout=SHARE of the samples. The default is a
 * share of 0.1. The held-out share of a text is its end (nn/data/split.h).
 *
 *   key        for          meaning
 *   test       all          PATH of the held-out set
 *   holdout    all          share of the samples that is held out instead
 *   validate   all          share of the training samples that replaces the held-out set, so that
 *                           a choice can be made without the samples of the final test
 *   label      csv          column of the label, by name or number from 1. Default: the last one.
 *                           For rows whose labels are to be predicted also "none"
 *   header     csv          yes, no, auto
 *   divide     csv, libsvm  divisor of every value (1)
 *   scale      csv, libsvm  none, max; csv also standard (nn/data/scale.h)
 *   features   libsvm       number of features, if the files do not contain all of them
 *   context    text         bytes of one sample (128)
 *
 * The canonical kind (nn/data/kind.h) describes the data that were read. The kind is part of a run,
 * while each peer has its own paths.
 *
 * Reading needs at most DATA_MEMORY_FACTOR times the files' unpacked size and a few MiB
 * (tests/unit/nn_data_memory.c measures every reader). Images take 1.1 times their size (2 times in
 * address space), tables and sparse rows 4 to 5 times. The largest factor is 13, for rows that
 * consist of a label only, with nine tenths of the rows held out.
 */
#ifndef NN_DATA_DATA_H
#define NN_DATA_DATA_H

#include "nn/data/dataset.h"
#include "nn/data/kind.h"
#include "nn/data/reader.h"
#include "nn/data/scale.h"
#include "nn/data/schema.h"
#include "nn/data/sniff.h"
#include "nn/data/spec.h"

/* Source of the held-out samples. A model is never trained on samples from DATA_HELD_DRAWN and
 * DATA_HELD_FILES. The same holds for DATA_HELD_SHARE if the training held out the same share of
 * the same files. */
enum data_held_out {
    DATA_HELD_DRAWN, /* Held out: generated glyphs that differ from those for training. */
    DATA_HELD_FILES, /* Held out: the files that are named as held out, or those of test=. */
    DATA_HELD_SHARE, /* Held out: a share of the samples in the spec's files (nn/data/split.h). */
    DATA_HELD_OTHER, /* An evaluation uses all samples: the model was trained on other files. */
    /* An evaluation uses all samples. They are the samples of the training, which held out none. */
    DATA_HELD_NONE
};

/* Training files of a model. */
struct data_trained
{
    uint64_t hash; /* Sum of the hashes of the training files (`hash` of struct data). */
    double share;  /* Share of the samples that was held out of training. 0: none. */
};

enum { DATA_NOTE_MAX = SCALE_NOTE_MAX + 2 * READER_NOTE_MAX };

struct data
{
    struct dataset train, test;
    enum data_held_out held_out;
    /* Share of the samples that is held out, if the source is DATA_HELD_SHARE. Otherwise 0. */
    double share;
    /* Sum of the hashes of the training files (struct file_progress), including the samples that
     * are later held out of them. 0: there are no files, because the samples are drawn. */
    uint64_t hash;
    /* Share of the training files that was held out before the option validate= replaced the
     * held-out set. */
    double holdout;
    char note[DATA_NOTE_MAX]; /* Notes for the user about reading the data. "": none. */
    struct schema schema;     /* Names of a table's columns. Zeros: the columns have no names. */
    /* Statistics of the columns of rows, for pooling with the statistics of other peers. All zeros
     * if the kind of the run's data already determines the columns, or if there are too many
     * columns for a run. */
    struct column_statistics moments;
};

struct data_request
{
    const char *spec;
    /* Kind of the run's data, such as "csv/64x10/0" (nn/data/kind.h), which the files must have.
     * NULL: the kind is derived from the files. */
    const char *kind;
    uint64_t seed; /* Seed of the run. Only the built-in data set "glyphs" depends on it. */
    /* Names of all classes of `kind`. The files may lack some of these classes. Borrowed. NULL: not
     * known. */
    const struct labels *names;
    /* True: these files are one peer's part of a run, and the kind of the run's data (kind.h) is
     * not known yet. The held-out files may then have labels, as whole numbers, that the training
     * files lack. */
    bool part;
    /* Known names of the columns, in the order of the inputs. If `kind` fixes no columns (an open
     * kind such as "csv"), the table's columns are matched to this order. Borrowed. NULL: not
     * known. */
    const struct schema *schema;
    /* True: a trained model is to predict labels, so rows may have no label. With label=none in the
     * spec, no row has a label. `kind` must be the fixed kind of that model's data. The test set is
     * the held-out files. If there are no held-out files and the rows have no label, the test set
     * is all rows, and the training set is empty. `labels` of a test set without labels is NULL. */
    bool bare;
    /* Training files of the model to evaluate. NULL: the data are for training, or the files are
     * not known. Has an effect only if the spec does not say which samples to hold out. If the
     * files of the spec are not the training files, or if no sample was held out in training, all
     * samples are the test set. Otherwise the same share as in training is held out. */
    const struct data_trained *trained;
    /* Called every few MiB while files are read. May be NULL. `done`: bytes on disk that were read
     * so far. `total`: all bytes on disk. */
    void (*progress)(void *self, const char *path, uint64_t done, uint64_t total);
    void *self;
};

/* Reads or draws the training set and the held-out set. Returns 0, -EINVAL if the spec or the
 * contents are wrong, -ENOMEM, or the negative errno of a failed file operation. After an error,
 * `error` has a message (file, line or offset, found, expected) and *d is empty. */
__attribute__((warn_unused_result)) int data_open(struct data *d,
                                                  const struct data_request *request,
                                                  char error[DATA_ERROR_MAX]);
void data_close(struct data *d);

#endif
