/* nn/data/lines.c -- functions shared by the readers of text files. */
#include "nn/data/lines.h"

#include "nn/data/encoding.h"
#include "nn/data/quote.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest total size of the files of a set. All files are in memory at the same time, together with
 * the arrays that are made from them. */
#define FILE_LIMIT (SIZE_MAX / (2 * DATA_MEMORY_FACTOR))

/* `bytes` points to allocated memory. The pointer is const only to protect the bytes from the
 * readers, so the cast is safe. */
void lines_free(struct lines_file *files, size_t n)
{
    for (size_t i = 0; files != NULL && i < n; i++)
        free((uint8_t *)files[i].bytes);
    free(files);
}

int lines_load(const struct reader *r, struct lines_file **files, char error[DATA_ERROR_MAX])
{
    assert(r->n_paths >= 1 && r->n_paths <= READER_FILES_MAX);
    int err = 0;
    struct lines_file *f = calloc(r->n_paths, sizeof *f);
    *files = NULL;
    if (f == NULL)
        return file_no_memory(error, r->paths[0]);
    for (size_t i = 0; i < r->n_paths && err == 0; i++) {
        uint8_t *bytes = NULL;
        f[i].path = r->paths[i];
        err = file_read(f[i].path, FILE_LIMIT, &r->progress, &bytes, &f[i].n, error);
        f[i].bytes = bytes;
    }
    if (err == 0)
        *files = f;
    else
        lines_free(f, r->n_paths);
    return err;
}

int lines_normalise(struct lines_file *files, size_t n, bool any, const char **encoding,
                    char error[DATA_ERROR_MAX])
{
    *encoding = NULL;
    for (size_t i = 0; i < n; i++) {
        uint8_t *bytes = (uint8_t *)files[i].bytes;
        int is = encoding_normalise(&bytes, &files[i].n, any);
        if (is < 0)
            return file_no_memory(error, files[i].path);
        files[i].bytes = bytes;
        if (is != ENCODING_UTF8)
            *encoding = encoding_name[is];
    }
    return 0;
}

const uint8_t *lines_look(const uint8_t *p, size_t *n, uint8_t **copy)
{
    *copy = encoding_is_odd(p, *n) ? malloc(*n) : NULL;
    if (*copy == NULL)
        return p;
    memcpy(*copy, p, *n);
    return encoding_normalise(copy, n, true) < 0 ? p : *copy;
}

int lines_refuse(const struct lines_spot *spot, const char *where, const uint8_t *found, size_t n,
                 const char *wanted)
{
    return file_error(spot->error, spot->path, "line %llu, %s: found %s, expected %s",
                      (unsigned long long)spot->line, where, quote_bytes(found, n).text, wanted);
}

/* Storing the file of each row takes four bytes per row. If there is only one file, nothing is
 * stored. */
int lines_mark_files(struct dataset *d, const size_t *rows, size_t n_files)
{
    d->n_files = (uint32_t)n_files;
    if (n_files > 1 && d->file == NULL && (d->file = malloc(d->n * sizeof *d->file)) == NULL)
        return -ENOMEM;
    size_t at = 0;
    for (size_t i = 0; d->file != NULL && i < n_files; i++)
        for (size_t k = 0; k < rows[i]; k++)
            d->file[at++] = (uint32_t)i;
    assert(!d->file || at == d->n);
    return 0;
}

/* ---- The data kind of tables and sparse rows ---- */

/* Returns whether two numbers, parsed from texts in the same way, are exactly equal. A comparison
 * with == would cause a compiler warning. */
static bool equal(double a, double b)
{
    return a >= b && a <= b;
}

/* A fixed kind of data, such as "libsvm/123x2/pm", has a number of features and a divisor. If the
 * data spec states the number or the divisor, too, the values must be equal. r->divide is 1 if the
 * spec states no divisor. */
int lines_kind(const struct reader *r, const char *format, const char *path, struct kind_rows *kind,
               char error[DATA_ERROR_MAX])
{
    bool known = kind_rows_parse(r->kind, format, kind);
    assert(known && r->divide > 0 && isfinite(r->divide) && r->n_paths >= 1);
    if (!kind->fixed)
        kind->divide = r->divide;
    else if (r->features != 0 && r->features != kind->features)
        return file_error(error, path, "found features=%u, expected %u (%s)", r->features,
                          kind->features, r->kind);
    else if (!equal(r->divide, 1) && !equal(r->divide, kind->divide))
        return file_error(error, path, "found divide=%g, expected %g (%s)", r->divide, kind->divide,
                          r->kind);
    return 0;
}

/* The number of rows is limited, because splits and shards number samples in 32 bits. */
int lines_settle(struct labels *l, struct kind_rows *kind, size_t n_rows,
                 const struct lines_spot *spot)
{
    char why[LABELS_WHY_MAX];
    int err = l != NULL ? labels_settle(l, kind, why) : 0;
    if (err == -ENOMEM)
        return file_no_memory(spot->error, spot->path);
    if (err < 0)
        return file_error(spot->error, spot->path, "labels: %s", why);
    if (n_rows >= UINT32_MAX)
        return file_error(spot->error, spot->path, "found %zu rows, expected at most %u", n_rows,
                          UINT32_MAX - 1);
    return 0;
}

int lines_print_kind(const struct kind_rows *kind, const char *format,
                     const struct lines_spot *spot, char text[DATA_KIND_MAX])
{
    if (kind_rows_print(kind, format, text))
        return 0;
    return file_error(spot->error, spot->path,
                      "found divide=%g, expected a number with fewer "
                      "digits",
                      kind->divide);
}
