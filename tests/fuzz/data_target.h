/* tests/fuzz/data_target.h -- shared by the fuzz targets of data files.
 *
 * Provides files in memory, and checks that hold for every data set that was read. */
#ifndef TESTS_FUZZ_DATA_TARGET_H
#define TESTS_FUZZ_DATA_TARGET_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* Makes the headers declare memfd_create(). */
#endif

#include "nn/data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static inline void demand(bool ok)
{
    if (!ok)
        abort();
}

/* A file that is in memory, and has a path. A struct with all bytes zero means that the file is not
 * created yet. */
struct memory_file
{
    char path[32];
    int fd;
};

static inline const char *memory_file_put(struct memory_file *f, const uint8_t *p, size_t n)
{
    if (!f->path[0]) {
        f->fd = memfd_create("fuzz", 0);
        demand(f->fd >= 0);
        snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    }
    demand(ftruncate(f->fd, 0) == 0);
    demand(n == 0 || pwrite(f->fd, p, n, 0) == (ssize_t)n);
    return f->path;
}

static inline void check_sparse(const struct dataset *d)
{
    demand(d->start[0] == 0);
    for (size_t i = 0; i < d->n; i++) {
        demand(d->start[i] <= d->start[i + 1] && d->start[i + 1] - d->start[i] <= d->longest);
        for (size_t k = d->start[i]; k < d->start[i + 1]; k++) {
            demand(d->column[k] < d->shape.channels && isfinite(d->entry[k]));
            demand(k == d->start[i] || d->column[k] > d->column[k - 1]);
        }
    }
}

/* Returns the number of bytes in the arrays of a data set. */
static inline size_t bytes_of(const struct dataset *d)
{
    size_t dim = (size_t)d->shape.channels * d->shape.height * d->shape.width;
    size_t n = (d->labels ? d->n * sizeof *d->labels : 0) + (d->file ? d->n * sizeof *d->file : 0);
    n += d->pixels ? d->n * dim : 0;
    n += d->rows ? d->n * d->stride * sizeof *d->rows : 0;
    n += d->text ? d->n * dim + 1 : 0;
    n += d->start ? (d->n + 1) * sizeof *d->start : 0;
    n += d->start ? d->start[d->n] * (sizeof *d->column + sizeof *d->entry) : 0;
    return n;
}

/* Checks the properties of a data set that was read from `n_bytes` bytes of files, and closes
 * it. Reads every value, so that sanitizers check each byte. */
static inline void check_and_close(struct dataset *d, size_t n_bytes)
{
    size_t dim = (size_t)d->shape.channels * d->shape.height * d->shape.width;
    demand(d->n >= 1 && d->n_files >= 1 && dim >= 1 && data_kind_fixed(d->kind));
    demand(bytes_of(d) <= DATA_MEMORY_FACTOR * n_bytes + 64);
    for (size_t i = 0; d->labels && i < d->n; i++)
        demand(d->labels[i] < d->shape.n_classes);
    for (size_t i = 0; d->file && i < d->n; i++)
        demand(d->file[i] < d->n_files);
    if (d->shape.form == DATA_SPARSE)
        check_sparse(d);
    for (size_t i = 0; d->rows && i < d->n * d->stride; i++)
        demand(isfinite(d->rows[i]));
    size_t sum = 0;
    for (size_t i = 0; d->pixels && i < d->n * dim; i++)
        sum += d->pixels[i];
    for (size_t i = 0; d->text && i < d->n * dim + 1; i++)
        sum += d->text[i];
    demand(sum < SIZE_MAX);
    dataset_close(d);
}

/* Checks a refused input: the error is one printable line, and the data set is empty. */
static inline void check_refused(const struct dataset *d, const char *error)
{
    static const struct dataset empty;
    demand(memcmp(d, &empty, sizeof empty) == 0);
    demand(strlen(error) > 8 && strlen(error) < DATA_ERROR_MAX);
    for (; *error; error++)
        demand((unsigned char)*error >= 0x20 && *error != 0x7f);
}

#endif
