/* nn/data/lines.h -- shared by the readers of text files: files in memory, positions for error messages, kinds.
 *
 * Each reader of text is a pure function of bytes in memory (libsvm_parse(),
 * csv_parse(), text_parse() of nn/data/reader.h) behind one that reads the files:
 *
 *   paths --lines_load--> struct lines_file[n_paths] --*_parse--> dataset
 *
 * Each reader makes two passes over the bytes: the first checks and counts, and the second fills arrays
 * of exactly the right size. A refused file therefore costs only the memory of its bytes, and no array
 * grows.
 */
#ifndef NN_DATA_LINES_H
#define NN_DATA_LINES_H

#include "nn/data/labels.h"
#include "nn/data/reader.h"

struct lines_file
{
    const char *path;     /* Borrowed. */
    const uint8_t *bytes; /* n of them; may be NULL where n is 0. */
    size_t n;
};

/* Read all files of r into memory: *files has r->n_paths, for lines_free(). 0,
 * or what file_read() or memory says, with a sentence: then *files is NULL. */
__attribute__((warn_unused_result)) int lines_load(const struct reader *r,
                                                   struct lines_file **files,
                                                   char error[DATA_ERROR_MAX]);
void lines_free(struct lines_file *files, size_t n);

/* Converts n files, loaded by lines_load(), to UTF-8 with newlines as line ends (`any`: see
 * nn/data/encoding.h). Sets *encoding to the encoding of the last file that was not UTF-8, or to
 * NULL if all were. Returns 0, or -ENOMEM with a message. */
__attribute__((warn_unused_result)) int lines_normalise(struct lines_file *files, size_t n,
                                                        bool any, const char **encoding,
                                                        char error[DATA_ERROR_MAX]);

/* Returns the beginning p[0..*n) of a file, for inspection, normalised as by lines_normalise() with
 * `any`. Returns p if nothing had to change. Otherwise returns *copy and sets *n. The caller frees
 * *copy. */
const uint8_t *lines_look(const uint8_t *p, size_t *n, uint8_t **copy);

/* Position of a reader in a file. */
struct lines_spot
{
    const char *path;
    uint64_t line; /* From 1. */
    char *error;   /* DATA_ERROR_MAX bytes. */
};

/* Refuse: "PATH: line 3, WHERE: found "x1", expected WANTED". Returns
 * -EINVAL. */
int lines_refuse(const struct lines_spot *spot, const char *where, const uint8_t *found, size_t n,
                 const char *wanted);

/* r->kind, which must be one of `format`; an open one takes r's divisor. 0, or
 * -EINVAL where r asks for other features or another divisor than it has. */
__attribute__((warn_unused_result)) int lines_kind(const struct reader *r, const char *format,
                                                   const char *path, struct kind_rows *kind,
                                                   char error[DATA_ERROR_MAX]);

/* The first pass is over, n_rows have been read: labels_settle(), with the
 * file's name before what it says; NULL: rows have none. Too many rows are refused, too. */
__attribute__((warn_unused_result)) int lines_settle(struct labels *l, struct kind_rows *kind,
                                                     size_t n_rows, const struct lines_spot *spot);

/* kind_rows_print(), with a sentence where it does not fit. */
__attribute__((warn_unused_result)) int lines_print_kind(const struct kind_rows *kind,
                                                         const char *format,
                                                         const struct lines_spot *spot,
                                                         char text[DATA_KIND_MAX]);

/* Note which file each row is from, where there are several: rows[i] of them
 * are from file i. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int lines_mark_files(struct dataset *d, const size_t *rows,
                                                         size_t n_files);

#endif
