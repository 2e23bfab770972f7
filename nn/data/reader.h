/* nn/data/reader.h -- interface between nn/data/data.c and the readers of files, one for each
 * format.
 *
 * A reader fills one set from the files of the set, in order. If `kind` is open ("libsvm"), the
 * contents of the files fix the canonical kind of the set. If `kind` is fixed, a file that does not
 * have that kind is refused. The error message gives the file, the line or offset, what was found,
 * and what was expected. After an error, *d is empty.
 */
#ifndef NN_DATA_READER_H
#define NN_DATA_READER_H

#include "nn/data/dataset.h"
#include "nn/data/schema.h"
#include "nn/files/file.h"

enum { READER_FILES_MAX = 4096, READER_NOTE_MAX = 400 };

/* Presence of labels in rows. Without labels, `labels` of a set is NULL. */
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
    /* csv with labels that are names: the names, if known before the files are read. The files
     * may lack some of the names, but may have no other name. NULL: not known. Files of a fixed
     * kind must then have all of its names, because the kind has only their hash. */
    const struct labels *names;
    /* csv: types of the columns. All zero: this reader detects the types. Settled: the types of
     * the training set or of a kind. NULL: all columns are numbers without gaps. */
    struct columns *columns;
    /* For csv and libsvm: a label that is not in `kind` is added to it (labels_more()). */
    bool more_labels;
    /* csv: names of the columns. All zero: taken from the first header. Otherwise the names of
     * the training set or of a run, to which each header is matched. NULL: the kind gets no
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

/* Same as the *_read() functions, for files whose bytes are in memory: files[r->n_paths]
 * (nn/data/lines.h). r->paths is not used. */
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

/* Reads images and labels from two files each: images from paths[2 i], labels from paths[2 i +
 * 1]. */
__attribute__((warn_unused_result)) int idx_read(struct dataset *d, const struct reader *r,
                                                 char error[DATA_ERROR_MAX]);

/* Returns true if a file begins like this format. `bytes`: the first n bytes of the file, unpacked.
 * `whole`: the file has no more bytes. */
bool libsvm_looks(const uint8_t *bytes, size_t n, bool whole);
bool csv_looks(const uint8_t *bytes, size_t n, bool whole);
bool text_looks(const uint8_t *bytes, size_t n, bool whole);
bool idx_looks(const uint8_t *bytes, size_t n, bool whole);

#endif
