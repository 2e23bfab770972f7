#include "nn/cifar.h"

#include "nn/file.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGE = 3 * 32 * 32,
    RECORD = 1 + IMAGE,
    RECORDS_MAX = 100000, /* Of one file; the real ones have 10,000. */
    BATCHES = 5
};

/* One file's records, as they lie in it. */
struct batch
{
    uint8_t *bytes;
    size_t n; /* Records. */
};

/* DIR/NAME or DIR/NAME.gz into path[]. False where there is neither. */
static bool find(char path[PATH_MAX], const char *dir, const char *name)
{
    static const char *const endings[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(path, PATH_MAX, "%s/%s%s", dir, name, endings[i]);
        if (n > 0 && n < PATH_MAX && file_exists(path))
            return true;
    }
    return false;
}

static int check(const struct batch *b, size_t n_bytes, const char *path,
                 char error[DATA_ERROR_MAX])
{
    if (n_bytes % RECORD != 0)
        return file_error(error, path,
                          "size: found %zu bytes, expected whole records of %d: the "
                          "file is truncated or has trailing bytes",
                          n_bytes, RECORD);
    if (b->n == 0)
        return file_error(error, path, "size: found 0 records, expected at least 1");
    for (size_t i = 0; i < b->n; i++)
        if (b->bytes[i * RECORD] >= 10)
            return file_error(error, path,
                              "label of record %zu: found %u, expected 0 to 9", i,
                              b->bytes[i * RECORD]);
    return 0;
}

static int read_batch(struct batch *b, const char *path,
                      char error[DATA_ERROR_MAX])
{
    size_t n_bytes;
    int rc = file_read(path, (size_t)RECORDS_MAX * RECORD, &b->bytes, &n_bytes,
                       error);
    if (rc < 0)
        return rc;
    b->n = n_bytes / RECORD;
    rc = check(b, n_bytes, path, error);
    if (rc < 0) {
        free(b->bytes);
        *b = (struct batch){0};
    }
    return rc;
}

/* Part the labels from the pixels, batch after batch. */
static int join(struct dataset *d, const struct batch *b, size_t n_batches,
                const char *dir, char error[DATA_ERROR_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < n_batches; i++)
        n += b[i].n;
    int rc = dataset_init(d, "cifar10", n);
    if (rc < 0) {
        file_error(error, dir, "no memory for %zu images", n);
        return rc;
    }
    assert(dataset_dim(d) == IMAGE);
    size_t at = 0;
    for (size_t i = 0; i < n_batches; i++)
        for (size_t j = 0; j < b[i].n; j++, at++) {
            const uint8_t *record = b[i].bytes + j * RECORD;
            d->labels[at] = record[0];
            memcpy(d->pixels + at * IMAGE, record + 1, IMAGE);
        }
    return 0;
}

static int read_train(struct dataset *d, const char *dir,
                      char error[DATA_ERROR_MAX])
{
    struct batch b[BATCHES] = {{0}};
    size_t n = 0;
    int rc = 0;
    for (int i = 1; i <= BATCHES && rc == 0; i++) {
        char name[32], path[PATH_MAX];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        if (find(path, dir, name))
            rc = read_batch(&b[n++], path, error);
    }
    if (n == 0) {
        file_error(error, dir,
                   "found no data_batch_1.bin to data_batch_5.bin, expected at least "
                   "one, plain or with .gz");
        rc = -ENOENT;
    }
    if (rc == 0)
        rc = join(d, b, n, dir, error);
    for (size_t i = 0; i < BATCHES; i++)
        free(b[i].bytes);
    return rc;
}

static int read_test(struct dataset *d, const char *dir,
                     char error[DATA_ERROR_MAX])
{
    char path[PATH_MAX];
    if (!find(path, dir, "test_batch.bin")) {
        file_error(error, dir,
                   "found no test_batch.bin, expected it plain or with .gz");
        return -ENOENT;
    }
    struct batch b;
    int rc = read_batch(&b, path, error);
    if (rc < 0)
        return rc;
    rc = join(d, &b, 1, dir, error);
    free(b.bytes);
    return rc;
}

int cifar_read(struct data *d, const char *dir, char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    int rc = read_train(&d->train, dir, error);
    if (rc == 0)
        rc = read_test(&d->test, dir, error);
    if (rc < 0)
        data_close(d);
    return rc;
}
