/* nn/data/reader.h -- what nn/data/data.c asks of the readers of files, one per format.
 *
 * A reader fills one set from the files of that set, in order. `kind` is either
 * an open kind ("libsvm"): then what the files show fixes the set's canonical
 * kind; or a fixed one: then the files must be of it, and whatever is not is
 * refused with file, line or offset, found and expected. On failure *d is empty.
 */
#ifndef NN_DATA_READER_H
#define NN_DATA_READER_H

#include "nn/data/dataset.h"
#include "nn/data/schema.h"
#include "nn/files/file.h"

enum { READER_FILES_MAX = 4096, READER_NOTE_MAX = 400 };

/* Do rows have labels? Without them a set's `labels` are NULL. */
enum reader_rows {
    READER_LABELLED,
    /* Decided by the number of cells of the first file (csv) or by the first row (libsvm). */
    READER_MAYBE,
    READER_BARE
};

struct reader
{
    const char *const *paths; /* Files of the set, n_paths >= 1 of them. */
    size_t n_paths;
    const char *kind;
    const char *label;  /* csv: label= of the spec. NULL: the last column. */
    const char *header; /* csv: header= of the spec: "yes", "no" or "auto". */
    double divide;      /* csv, libsvm: divisor of every value, > 0. */
    uint32_t features;  /* libsvm: number of features. 0: the largest index found. */
    uint32_t context;   /* text: bytes of a sample. */
    /* csv with labels that are names: the names of the training set, if the held-out files are
     * read. The files may then have any of these names and no other. NULL: not known. Files of a
     * fixed kind must then have all of its names, because the kind has only their hash. */
    const struct labels *names;
    /* csv: types of the columns. All zero: this reader detects them. Settled: those of the training
     * set or of a kind. NULL: all columns are numbers without gaps. */
    struct columns *columns;
    bool more_labels; /* csv, libsvm: labels that `kind` lacks are added to it (labels_more()). */
    /* csv: names of the columns. All zero: taken from the first header. Otherwise those of the
     * training set or of a run, and each header is matched to them. NULL: the kind gets no
     * names. */
    struct schema *schema;
    /* csv: a number in label= refers to the training files only, because `schema` has the label's
     * name. */
    bool label_known;
    /* csv: buffer of READER_NOTE_MAX bytes for notes to the user, "" at first. NULL: no notes. */
    char *note;
    enum reader_rows rows; /* csv, libsvm: READER_MAYBE and READER_BARE need a fixed kind. */
    struct file_progress progress;
};

__attribute__((warn_unused_result)) int libsvm_read(struct dataset *d, const struct reader *r,
                                                    char error[DATA_ERROR_MAX]);
__attribute__((warn_unused_result)) int csv_read(struct dataset *d, const struct reader *r,
                                                 char error[DATA_ERROR_MAX]);
__attribute__((warn_unused_result)) int text_read(struct dataset *d, const struct reader *r,
                                                  char error[DATA_ERROR_MAX]);
__attribute__((warn_unused_result)) int cifar_read(struct dataset *d, const struct reader *r,
                                                   char error[DATA_ERROR_MAX]);

/* The same of files whose bytes are in memory, files[r->n_paths] (nn/data/lines.h):
 * r->paths is not looked at. */
struct lines_file;
__attribute__((warn_unused_result)) int libsvm_parse(struct dataset *d, const struct reader *r,
                                                     const struct lines_file *files,
                                                     char error[DATA_ERROR_MAX]);
__attribute__((warn_unused_result)) int csv_parse(struct dataset *d, const struct reader *r,
                                                  const struct lines_file *files,
                                                  char error[DATA_ERROR_MAX]);
__attribute__((warn_unused_result)) int text_parse(struct dataset *d, const struct reader *r,
                                                   const struct lines_file *files,
                                                   char error[DATA_ERROR_MAX]);

/* Images and labels lie in two files: paths[2 i] are images, paths[2 i + 1]
 * their labels. */
__attribute__((warn_unused_result)) int idx_read(struct dataset *d, const struct reader *r,
                                                 char error[DATA_ERROR_MAX]);

/* Does a file begin like this format? What has been looked at are its first n
 * bytes, unpacked; `whole` says that there are no more. */
bool libsvm_looks(const uint8_t *bytes, size_t n, bool whole);
bool csv_looks(const uint8_t *bytes, size_t n, bool whole);
bool text_looks(const uint8_t *bytes, size_t n, bool whole);
bool idx_looks(const uint8_t *bytes, size_t n, bool whole);

#endif
