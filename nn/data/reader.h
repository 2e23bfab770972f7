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
    READER_MAYBE, /* Told by the cells of the first file (csv), or the first row (libsvm). */
    READER_BARE
};

struct reader
{
    const char *const *paths; /* n_paths >= 1 files. */
    size_t n_paths;
    const char *kind;
    const char *label;  /* csv: as given, or NULL: the last column. */
    const char *header; /* csv: "yes", "no", "auto". */
    double divide;      /* csv, libsvm: > 0. */
    uint32_t features;  /* libsvm: 0, or how many. */
    uint32_t context;   /* text: bytes of a sample. */
    /* csv with labels that are names: those of the training set, when the held-out
     * files are read. They may then have any of these names and no other. NULL when
     * there is no such list: files of a fixed kind must then have all of its names,
     * since only their hash is known. */
    const struct labels *names;
    /* csv: how columns are told apart. Zeros: to be found out, here. Settled: those of the training
     * set or of a kind. NULL: all are numbers, and there are no gaps. */
    struct columns *columns;
    bool more_labels; /* csv, libsvm: labels that `kind` lacks join it (labels_more()). */
    /* csv: what columns are called. Zeros: to be found out, here. Else that of the training set or of a
     * run: each table with a header is matched to it. NULL: kinds say nothing of names. */
    struct schema *schema;
    bool
        label_known; /* csv: label= was about the training files; the schema has the label's name. */
    char *note; /* csv: READER_NOTE_MAX bytes for what people should know, "" at first; or NULL. */
    enum reader_rows rows; /* csv, libsvm: of a fixed kind only, but for READER_LABELLED. */
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
