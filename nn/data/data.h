/* nn/data/data.h -- the door of this room: what a data spec names, read or drawn into memory.
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
 *   validate   all          share of the training samples that takes the held-out ones' place, so that
 *                           something can be chosen by it: who tests on those later has not seen them
 *   label      csv          column of the label, by name or number from 1; last; of rows to be labelled
 *                           "none", too
 *   header     csv          yes, no, auto
 *   divide     csv, libsvm  every value is divided by this (1)
 *   scale      csv, libsvm  none, max, of csv standard (nn/data/scale.h)
 *   features   libsvm       how many there are, where files do not show all
 *   context    text         bytes of one sample (128)
 *
 * The canonical kind (nn/data/kind.h) is what the spec comes to: part of a run, while paths are
 * each peer's own.
 *
 * Reading costs at most DATA_MEMORY_FACTOR times the files' unpacked size, and
 * a few MiB, at its peak (tests/unit/nn_data_memory.c measures every reader). Images
 * take 1.1 times (2 of address space), tables and sparse rows 4 to 5; the most, 13,
 * do rows that are a label and nothing else, nine tenths of them held out.
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

/* Where the held-out set comes from. The first two are apart from the training set. So is a share, if
 * the model was trained on the same files with the same share. */
enum data_held_out {
    DATA_HELD_DRAWN, /* Glyphs, behind those for training. */
    DATA_HELD_FILES, /* Files by their names, or test=. */
    DATA_HELD_SHARE, /* A share of the files' samples (nn/data/split.h). */
    DATA_HELD_OTHER, /* All samples: the files are not those of the training set. */
    DATA_HELD_NONE   /* All samples, and the model was trained on all of them. */
};

/* The files that a model was trained on. */
struct data_trained
{
    uint64_t hash; /* struct data's. */
    double share;  /* The share of their samples that was held out; 0: none. */
};

enum { DATA_NOTE_MAX = SCALE_NOTE_MAX + 2 * READER_NOTE_MAX };

struct data
{
    struct dataset train, test;
    enum data_held_out held_out;
    double share;   /* Share of the samples that DATA_HELD_SHARE holds out; 0 otherwise. */
    uint64_t hash;  /* Hash of the training files before a share of them is held out (struct
                               * file_progress). 0: the samples are drawn. */
    double holdout; /* Share of those files that was held out, whatever `validate` took later. */
    char note[DATA_NOTE_MAX]; /* What people should know of how it was read; or "". */
    struct schema schema;     /* Names of a table's columns. Zeros: the columns have no names. */
    struct moments
        moments; /* Those of a table whose columns no kind has fixed, and a run can carry; else
                                * none. To be pooled with those of other peers. */
};

struct data_request
{
    const char *spec;
    const char *kind; /* The run's: data must be of it. NULL: their own. */
    uint64_t seed;    /* The run's: changes "glyphs" only. */
    /* The names of `kind`'s classes, where they are known: files may then lack some. Borrowed, or NULL. */
    const struct labels *names;
    /* The training files are one part of a run's, whose kind is not known yet: held-out files may have
     * whole numbers for labels that these lack. */
    bool part;
    /* The names of its columns, where they are known: the order of the inputs. Of an open kind they are the order
     * that a table is brought to. Borrowed, or NULL. */
    const struct schema *schema;
    /* The samples are to be labelled, and rows may have no label yet (the held-out files; where there are
     * none, all): then the test set's `labels` are NULL, and in the second case the training set is empty.
     * `kind` is fixed; label=none says that there are none. */
    bool bare;
    /* The samples are for an evaluation of a model that was trained on these files; NULL: for training,
     * or not known. Where the spec does not say what is held out, all samples of other files are. Then
     * the training set is empty. */
    const struct data_trained *trained;
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

#endif
