/* nn/data/reader.h -- interface between nn/data/data.c and the readers of files, one reader for
 * each format.
 *
 * A reader fills one set from the files of the set, in order. If `kind` is open ("libsvm"), the
 * reader derives the fixed kind, with all sizes, from the contents of the files. If `kind` is
 * fixed, a file that does not match it is refused. The error message gives the file, the line or
 * offset, what was found, and what was expected. After an error, *d is empty.
 */
#ifndef NN_DATA_READER_H
#define NN_DATA_READER_H

#include "nn/data/dataset.h"
#include "nn/data/schema.h"
#include "nn/files/file.h"

enum { READER_FILES_MAX = 4096, READER_NOTE_MAX = 400 };

/* Whether rows have labels. Without labels, `labels` of the set is NULL. */
enum reader_rows {
    READER_LABELLED,
    /* Either all rows have labels or none. csv: the number of cells in the first file shows whether
     * rows have labels. libsvm: a first row that begins with an entry (index:value) has no
     * label. */
    READER_MAYBE,
    READER_BARE
};

struct reader
{
    const char *const *paths; /* Files to read for one set. n_paths is at least 1. */
    size_t n_paths;
    const char *kind;
    const char *label;  /* csv: value of label= in the spec. NULL: the last column. */
    const char *header; /* csv: value of header= in the spec: "yes", "no" or "auto". */
    double divide;      /* csv, libsvm: divisor of every value, > 0. */
    uint32_t features;  /* libsvm: number of features. 0: the largest index found. */
    uint32_t context;   /* text: number of bytes of a sample. */
    /* csv with names as labels: the names, if known before the files are read. The files may then
     * lack some of the names, but must have no other name. NULL: not known. Files with a fixed kind
     * of data must then have all of its names, because the kind has only their hash. */
    const struct labels *names;
    /* csv: types of the columns. All zero: the reader detects the types and stores them here.
     * `settled` true: the types are given, by the training set or by the kind of the run's data.
     * NULL: all columns are numbers without gaps. */
    struct columns *columns;
    /* csv, libsvm: true if labels that are in the files but not in `kind` (text that describes the
     * data) are added to `kind` (labels_more()). */
    bool more_labels;
    /* csv: names of the columns. All zero: the first header gives them. Otherwise the names of the
     * training set or of a run, to which each header is matched. NULL: the kind (text that
     * describes the data) gets no names. */
    struct schema *schema;
    /* csv: true if `schema` has the label's name. The label's column is then found by that name. A
     * number in label= is ignored, because it counts the columns of the training files. */
    bool label_known;
    /* csv: buffer of READER_NOTE_MAX bytes for notes to the user, "" at first. NULL: no notes. */
    char *note;
    /* csv, libsvm: whether rows have labels. READER_MAYBE and READER_BARE need a fixed kind of data
     * (nn/data/kind.h), which says what the columns and labels mean. */
    enum reader_rows rows;
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

/* Each *_parse() function parses files that are in memory (nn/data/lines.h), and otherwise does the
 * same as the *_read() function. `files` has r->n_paths entries. r->paths is not used. */
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

/* Reads pairs of files: images from paths[2 i] and their labels from paths[2 i + 1]. */
__attribute__((warn_unused_result)) int idx_read(struct dataset *d, const struct reader *r,
                                                 char error[DATA_ERROR_MAX]);

/* Each *_looks() function returns true if a file begins like its format. `bytes`: the first n bytes
 * of the file, unpacked. `whole`: the file has no more bytes. */
bool libsvm_looks(const uint8_t *bytes, size_t n, bool whole);
bool csv_looks(const uint8_t *bytes, size_t n, bool whole);
bool text_looks(const uint8_t *bytes, size_t n, bool whole);
bool idx_looks(const uint8_t *bytes, size_t n, bool whole);

#endif
