/* nn/data/split.c -- moves a share of a set's samples to another set. All peers choose the same
 * samples. The first pass counts the memory that the held-out samples need. The second pass makes
 * the same choices, moves these samples, and closes the gaps in place. */
#include "nn/data/split.h"

#include "nn/data/labels.h"
#include "nn/files/file.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Seed of the choice of held-out samples. The seed must never change, because it determines which
 * samples existing models were trained on. */
#define SPLIT_KEY UINT64_C(0x68656c646f757421)

/* State of Knuth's algorithm S, which is called for the samples 0, 1, ... in turn. */
struct choice
{
    size_t n, k; /* Number of samples, and how many of them to hold out. */
    /* at: number of samples decided so far. taken: how many of them are held out. */
    size_t at, taken;
};

/* Returns whether the next sample is held out. The choice is random, but when all n samples have
 * been decided, exactly k are held out. */
static bool choose(struct choice *c)
{
    double u = (double)(rng_at(SPLIT_KEY, c->at) >> 11) * 0x1p-53;
    bool yes = u * (double)(c->n - c->at) < (double)(c->k - c->taken);
    c->at++;
    c->taken += yes;
    return yes;
}

/* Returns the number of entries of a sparse row. */
static size_t entries_of(const struct dataset *d, size_t i)
{
    return d->start[i + 1] - d->start[i];
}

/* Returns the argument `entries` of dataset_init() for the held-out set. For sparse rows this is
 * the number of entries of all held-out rows, for dense rows the floats of one row. */
static size_t count_entries(const struct dataset *d, struct choice c)
{
    size_t n = d->shape.form == DATA_ROWS ? d->stride : 0;
    for (size_t i = 0; d->shape.form == DATA_SPARSE && i < d->n; i++)
        n += choose(&c) ? entries_of(d, i) : 0;
    return n;
}

static void move_row(struct dataset *to, size_t j, const struct dataset *from, size_t i)
{
    size_t n = entries_of(from, i), begin = from->start[i], at = to->start[j];
    memmove(to->column + at, from->column + begin, n * sizeof *to->column);
    memmove(to->entry + at, from->entry + begin, n * sizeof *to->entry);
    to->start[j + 1] = at + n;
    to->longest = n > to->longest ? n : to->longest;
}

/* Copies sample i of `from` to sample j of `to`. If both are the same set, j <= i. */
static void move_sample(struct dataset *to, size_t j, const struct dataset *from, size_t i)
{
    size_t dim = dataset_dim(from);
    to->labels[j] = from->labels[i];
    if (from->file != NULL)
        to->file[j] = from->file[i];
    if (from->pixels != NULL)
        memmove(to->pixels + j * dim, from->pixels + i * dim, dim);
    if (from->rows != NULL)
        memmove(to->rows + j * from->stride, from->rows + i * from->stride,
                from->stride * sizeof *to->rows);
    if (from->start != NULL)
        move_row(to, j, from, i);
}

/* Shrinks an allocation to n_bytes. If that fails, returns the larger allocation unchanged. */
static void *shrunk(void *p, size_t n_bytes)
{
    void *q = p != NULL && n_bytes > 0 ? realloc(p, n_bytes) : NULL;
    return q != NULL ? q : p;
}

/* Shrinks the arrays of a set to what it needs after samples were moved to the held-out set. */
static void shrink(struct dataset *d)
{
    size_t n = d->n, dim = dataset_dim(d);
    d->labels = shrunk(d->labels, n * sizeof *d->labels);
    d->file = shrunk(d->file, n * sizeof *d->file);
    d->pixels = shrunk(d->pixels, n * dim);
    d->rows = shrunk(d->rows, n * d->stride * sizeof *d->rows);
    d->text = shrunk(d->text, n * dim + 1);
    if (d->start != NULL) {
        size_t entries = d->start[n];
        d->start = shrunk(d->start, (n + 1) * sizeof *d->start);
        d->column = shrunk(d->column, entries * sizeof *d->column);
        d->entry = shrunk(d->entry, entries * sizeof *d->entry);
    }
}

/* Divides the samples between the training set and the held-out set. j and k are the numbers of
 * samples that the training set and the held-out set have so far. */
static void part_samples(struct dataset *train, struct dataset *test, struct choice c)
{
    size_t j = 0, k = 0;
    train->longest = 0;
    if (train->start != NULL)
        test->start[0] = 0;
    for (size_t i = 0; i < train->n; i++) {
        if (choose(&c))
            move_sample(test, k++, train, i);
        else
            move_sample(train, j++, train, i);
    }
    assert(k == test->n && j + k == train->n);
    train->n = j;
}

/* Moves the end of a text to the held-out set: the last test->n samples, and one byte more, which
 * is the label of the last byte. */
static void part_text(struct dataset *train, struct dataset *test)
{
    size_t dim = dataset_dim(train), left = train->n - test->n;
    memcpy(test->text, train->text + left * dim, test->n * dim + 1);
    if (train->file != NULL)
        memcpy(test->file, train->file + left, test->n * sizeof *test->file);
    train->n = left;
}

/* Allocates a set for k samples of the same kind as `train`. */
static int open_like(struct dataset *test, const struct dataset *train, size_t k, size_t entries)
{
    int err = dataset_init(test, train->kind, k, entries);
    if (err < 0)
        return err;
    test->n_files = train->n_files;
    if (train->file != NULL)
        test->file = malloc(k * sizeof *test->file);
    struct kind_rows names;
    if (train->names != NULL
        && (kind_rows_parse(train->kind, "csv", &names)
            || kind_rows_parse(train->kind, "libsvm", &names)))
        test->names = labels_open(&names, train->names, false);
    if ((train->file == NULL || test->file != NULL)
        && (train->names == NULL || test->names != NULL))
        return 0;
    dataset_close(test);
    return -ENOMEM;
}

/* The share is rounded to a whole number of samples. Each set gets at least one. */
int data_split(struct dataset *train, struct dataset *test, double share, const char *path,
               char error[DATA_ERROR_MAX])
{
    assert(share > 0 && share < 1 && train->n >= 1);
    size_t n = train->n, k = (size_t)(share * (double)n + 0.5);
    memset(test, 0, sizeof *test);
    if (n < 2)
        return file_error(error, path,
                          "found 1 sample, expected at least 2: one to train on, one held out");
    k = k < 1 ? 1 : k > n - 1 ? n - 1 : k;
    struct choice c = {.n = n, .k = k};
    int err = open_like(test, train, k, count_entries(train, c));
    if (err < 0) {
        file_error(error, path, "no memory to hold out %zu samples", k);
        return err;
    }
    if (train->shape.form == DATA_TEXT)
        part_text(train, test);
    else
        part_samples(train, test, c);
    shrink(train);
    return 0;
}
