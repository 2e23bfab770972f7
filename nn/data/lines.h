/* nn/data/lines.h -- shared by the readers of text files: files in memory, positions for error
 * messages, kinds.
 *
 * Each reader of text files consists of a parser, which is a pure function of bytes in memory
 * (libsvm_parse(), csv_parse(), text_parse() of nn/data/reader.h), and a function that loads the
 * files and calls the parser:
 *
 *   paths --lines_load--> struct lines_file[n_paths] --*_parse--> dataset
 *
 * The parsers of rows make two passes over the bytes: the first checks and counts, and the second
 * fills arrays of exactly the right size. A refused file therefore costs only the memory of its
 * bytes, and no array grows.
 */
#ifndef NN_DATA_LINES_H
#define NN_DATA_LINES_H

#include "nn/data/labels.h"
#include "nn/data/reader.h"

struct lines_file
{
    const char *path;     /* Path of the file. Borrowed. */
    const uint8_t *bytes; /* Contents of the file, n bytes. May be NULL if n is 0. */
    size_t n;
};

/* Reads the files r->paths into memory. *files has r->n_paths entries, to be freed by lines_free().
 * Returns 0, or an error of file_read() or -ENOMEM, with a message. After an error *files is
 * NULL. */
__attribute__((warn_unused_result)) int lines_load(const struct reader *r,
                                                   struct lines_file **files,
                                                   char error[DATA_ERROR_MAX]);
void lines_free(struct lines_file *files, size_t n);

/* Converts n files of lines_load() to UTF-8 with newlines as line ends. `any`: bytes that are not
 * UTF-8 are kept. Otherwise they are read as Windows-1252. Sets *encoding to the encoding of the
 * last file that was not UTF-8, or to NULL if all files were UTF-8. Returns 0, or -ENOMEM with a
 * message. */
__attribute__((warn_unused_result)) int lines_normalise(struct lines_file *files, size_t n,
                                                        bool any, const char **encoding,
                                                        char error[DATA_ERROR_MAX]);

/* Converts the beginning p[0..*n) of a file to UTF-8 with newlines as line ends, but keeps bytes
 * that are not UTF-8. Used to detect the format of the file. If nothing has to change, returns p.
 * Otherwise returns *copy and changes *n. The caller frees *copy in both cases. */
const uint8_t *lines_look(const uint8_t *p, size_t *n, uint8_t **copy);

/* Position of a reader in a file, for error messages. */
struct lines_spot
{
    const char *path;
    uint64_t line; /* Line number, from 1. */
    char *error;   /* Buffer of DATA_ERROR_MAX bytes for a message. */
};

/* Writes the error message "PATH: line 3, WHERE: found "x1", expected WANTED". Returns -EINVAL. */
int lines_refuse(const struct lines_spot *spot, const char *where, const uint8_t *found, size_t n,
                 const char *wanted);

/* Parses r->kind, which must be a kind of the format, such as "csv/64x10/0" for csv, into *kind. If
 * the kind is open (such as "csv"), kind->divide is set to r->divide. A fixed kind already has a
 * number of features and a divisor of the values. Returns 0, or -EINVAL with a message if
 * r->features (unless 0) or r->divide (unless 1) differs from that of the fixed kind. */
__attribute__((warn_unused_result)) int lines_kind(const struct reader *r, const char *format,
                                                   const char *path, struct kind_rows *kind,
                                                   char error[DATA_ERROR_MAX]);

/* Called after a reader's first pass, which has counted the rows. Calls labels_settle(); if this
 * fails, puts the file's name before the error message. `l` NULL: the rows have no labels. Also
 * refuses more rows than a data set may have. Returns 0, -EINVAL or -ENOMEM. */
__attribute__((warn_unused_result)) int lines_settle(struct labels *l, struct kind_rows *kind,
                                                     size_t n_rows, const struct lines_spot *spot);

/* Writes the kind (text that describes the data) of a table or of sparse rows, by
 * kind_rows_print(). Returns 0, or -EINVAL with a message if the text is too long. */
__attribute__((warn_unused_result)) int lines_print_kind(const struct kind_rows *kind,
                                                         const char *format,
                                                         const struct lines_spot *spot,
                                                         char text[DATA_KIND_MAX]);

/* Stores the file that each row is from, if there are several files. rows[i]: number of rows of
 * file i. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int lines_mark_files(struct dataset *d, const size_t *rows,
                                                         size_t n_files);

#endif
