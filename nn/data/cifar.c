/* nn/data/cifar.c -- reads CIFAR-10 and CIFAR-100 in their binary form.
 *
 * A file has no header. Only its size and its labels show which of the two sets it belongs to:
 * records of 3,073 bytes (CIFAR-10) or of 3,074 bytes (CIFAR-100).
 */
#include "nn/data/cifar.h"

#include "nn/data/image_set.h"
#include "nn/data/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE = 3 * 32 * 32, RECORDS_AT_ONCE = 64, COARSE_CLASSES = 20 };

/* Layout of a record: one label (CIFAR-10) or two labels (CIFAR-100), then IMAGE bytes. The last
 * label is the class to learn. */
struct record
{
    const char *kind, *other;
    size_t n_labels;
    struct
    {
        const char *name;
        uint8_t n_classes;
    } label[2];
};

static const struct record cifar10 = {"cifar10", "cifar100", 1, {{"label", 10}}};
static const struct record cifar100 = {
    "cifar100", "cifar10", 2, {{"coarse label", COARSE_CLASSES}, {"fine label", 100}}};

static size_t record_size(const struct record *r)
{
    return r->n_labels + IMAGE;
}

/* ---- Recognising the files of CIFAR-10 and CIFAR-100. ---- */

/* Returns whether the first bytes of a record are valid labels. The other bytes are pixels, which
 * may have any value. */
static bool labels_fit(const struct record *r, const uint8_t *record)
{
    for (size_t i = 0; i < r->n_labels; i++)
        if (record[i] >= r->label[i].n_classes)
            return false;
    return true;
}

/* Returns whether all labels in the first bytes of a file are valid. If these bytes are the whole
 * file, their number must also be a multiple of the record size. */
static bool looks_like_records(const struct record *r, const uint8_t *bytes, size_t n, bool whole)
{
    size_t size = record_size(r);
    if (n < size || (whole && n % size != 0))
        return false;
    for (size_t at = 0; at + r->n_labels <= n; at += size)
        if (!labels_fit(r, bytes + at))
            return false;
    return true;
}

bool cifar_looks_10(const uint8_t *bytes, size_t n, bool whole)
{
    return looks_like_records(&cifar10, bytes, n, whole);
}

bool cifar_looks_100(const uint8_t *bytes, size_t n, bool whole)
{
    return looks_like_records(&cifar100, bytes, n, whole);
}

/* ---- Reading the files ---- */

/* State of reading one file. */
struct batch
{
    const struct record *record;
    struct image_set *set;
    const char *path;
    struct file *file;
    uint32_t number; /* Index of this file among the files of the set (training or held-out). */
    uint64_t n;      /* Number of records read so far. */
    uint8_t *bytes;  /* Buffer of RECORDS_AT_ONCE records. */
};

/* Appends n records of the buffer, labels and pixels, to the data set. */
static int store_records(struct batch *b, size_t n, char error[DATA_ERROR_MAX])
{
    struct dataset *d = b->set->d;
    const struct record *r = b->record;
    size_t most = image_set_most(d);
    if (n > most - d->n)
        return file_error(error, b->path, "found more than %zu images, expected no more", most);
    if (image_set_room(b->set, n, most) < 0)
        return file_no_memory(error, b->path);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = b->bytes + i * record_size(r);
        for (size_t k = 0; k < r->n_labels; k++)
            if (p[k] >= r->label[k].n_classes)
                return file_error(error, b->path, "%s of record %llu: found %u, expected 0 to %d",
                                  r->label[k].name, (unsigned long long)(b->n + i), p[k],
                                  r->label[k].n_classes - 1);
        d->labels[d->n + i] = p[r->n_labels - 1];
        memcpy(d->pixels + (d->n + i) * IMAGE, p + r->n_labels, IMAGE);
    }
    image_set_add(b->set, n, b->number);
    b->n += n;
    return 0;
}

/* Checks the size of the file, which must be a whole number of records, when its end is reached.
 * `rest`: number of bytes after the last complete record. */
static int check_size(const struct batch *b, size_t rest, char error[DATA_ERROR_MAX])
{
    const struct record *other = b->record == &cifar10 ? &cifar100 : &cifar10;
    uint64_t size = b->n * record_size(b->record) + rest;
    if (size == 0)
        return file_error(error, b->path, "size: found 0 records, expected at least 1");
    if (rest == 0)
        return 0;
    bool others = size % record_size(other) == 0;
    return file_error(error, b->path, "size: found %llu bytes, expected whole records of %zu: %s%s",
                      (unsigned long long)size, record_size(b->record),
                      others ? "they are those of " : "the file is truncated or has trailing bytes",
                      others ? other->kind : "");
}

/* Checks the size of a plain file before its labels are read. If a file of CIFAR-100 is read as
 * CIFAR-10, the error is then about the size of the file and not about a wrong label in some
 * record. */
static int check_plain(const struct batch *b, char error[DATA_ERROR_MAX])
{
    struct batch all = *b;
    uint64_t size = file_bound(b->file);
    all.n = size / record_size(b->record);
    return check_size(&all, size % record_size(b->record), error);
}

static int read_records(struct batch *b, char error[DATA_ERROR_MAX])
{
    size_t size = record_size(b->record), got;
    int err = file_is_plain(b->file) ? check_plain(b, error) : 0;
    while (err == 0) {
        err = file_get(b->file, b->bytes, RECORDS_AT_ONCE * size, &got, error);
        if (err == 0)
            err = store_records(b, got / size, error);
        if (err == 0 && got < RECORDS_AT_ONCE * size)
            return check_size(b, got % size, error);
    }
    return err;
}

/* Reads one file of a CIFAR set. */
static int read_batch(struct batch *b, const struct reader *r, char error[DATA_ERROR_MAX])
{
    int err = file_open(&b->file, b->path, error);
    if (err < 0)
        return err;
    file_watch(b->file, &r->progress);
    err = read_records(b, error);
    file_close(b->file);
    return err;
}

int cifar_read(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX])
{
    const struct record *record = strcmp(r->kind, "cifar10") == 0 ? &cifar10 : &cifar100;
    assert(strcmp(r->kind, record->kind) == 0 && r->n_paths >= 1);
    memset(d, 0, sizeof *d);
    dataset_kind(d, r->kind);
    assert(dataset_dim(d) == IMAGE);
    struct image_set set = {.d = d, .by_file = r->n_paths > 1};
    uint8_t *bytes = malloc(RECORDS_AT_ONCE * record_size(record));
    int err = bytes != NULL ? 0 : file_no_memory(error, r->paths[0]);
    for (size_t i = 0; i < r->n_paths && err == 0; i++) {
        struct batch b = {.record = record,
                          .set = &set,
                          .path = r->paths[i],
                          .number = (uint32_t)i,
                          .bytes = bytes};
        err = read_batch(&b, r, error);
    }
    free(bytes);
    if (err < 0) {
        dataset_close(d);
        return err;
    }
    image_set_end(&set);
    d->n_files = (uint32_t)r->n_paths;
    return 0;
}
