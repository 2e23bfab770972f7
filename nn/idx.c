#include "nn/idx.h"

#include "nn/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    MAGIC_IMAGES = 0x00000803, /* Unsigned bytes, three dimensions. */
    MAGIC_LABELS = 0x00000801
};

/* One of the two files, opened and its magic number checked. */
struct idx
{
    char path[PATH_MAX];
    struct file *file;
};

/* The next four bytes, big-endian. */
static int get_u32(struct idx *x, const char *field, uint32_t *v,
                   char error[DATA_ERROR_MAX])
{
    uint8_t b[4];
    size_t got;
    int rc = file_get(x->file, b, sizeof b, &got, error);
    if (rc < 0)
        return rc;
    if (got < sizeof b)
        return file_error(error, x->path,
                          "%s: found %zu bytes, expected 4: the file is truncated",
                          field, got);
    *v = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return 0;
}

/* Read a number that can have one value only. */
static int get_exactly(struct idx *x, const char *field, const char *format,
                       uint32_t expected, char error[DATA_ERROR_MAX])
{
    uint32_t v = 0;
    int rc = get_u32(x, field, &v, error);
    if (rc < 0 || v == expected)
        return rc;
    char found[16], wanted[16];
    if (strcmp(format, "hex") == 0) {
        snprintf(found, sizeof found, "0x%08x", v);
        snprintf(wanted, sizeof wanted, "0x%08x", expected);
    } else {
        snprintf(found, sizeof found, "%u", v);
        snprintf(wanted, sizeof wanted, "%u", expected);
    }
    return file_error(error, x->path, "%s: found %s, expected %s", field, found,
                      wanted);
}

/* Find the file, plain before .gz, and open it. */
static int idx_open(struct idx *x, const char *dir, const char *prefix,
                    const char *rest, char error[DATA_ERROR_MAX])
{
    static const char *const endings[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(x->path, sizeof x->path, "%s/%s-%s%s", dir, prefix, rest,
                         endings[i]);
        if (n < 0 || (size_t)n >= sizeof x->path) {
            file_error(error, dir, "the path is too long");
            return -ENAMETOOLONG;
        }
        if (file_exists(x->path))
            return file_open(&x->file, x->path, error);
    }
    file_error(error, dir, "found no %s-%s, expected it plain or with .gz", prefix,
               rest);
    return -ENOENT;
}

/* Read the n bytes that must be left, no fewer and no more. */
static int get_rest(struct idx *x, uint8_t *dst, size_t n,
                    char error[DATA_ERROR_MAX])
{
    size_t got;
    int rc = file_get(x->file, dst, n, &got, error);
    if (rc < 0)
        return rc;
    if (got < n)
        return file_error(error, x->path,
                          "data: found %zu bytes, expected %zu: the file is truncated",
                          got, n);
    uint8_t more;
    rc = file_get(x->file, &more, 1, &got, error);
    if (rc < 0)
        return rc;
    return got == 0 ? 0
                    : file_error(error, x->path,
                                 "data: found trailing bytes, expected %zu in all", n);
}

/* Both headers; *n is the number of samples that they agree on. */
static int get_headers(struct idx *images, struct idx *labels, const char *kind,
                       size_t *n, char error[DATA_ERROR_MAX])
{
    uint32_t n_images = 0, n_labels = 0, channels, height, width, n_classes;
    int rc = data_shape(kind, &channels, &height, &width, &n_classes);
    if (rc == 0)
        rc = get_exactly(images, "magic number", "hex", MAGIC_IMAGES, error);
    if (rc == 0)
        rc = get_u32(images, "number of images", &n_images, error);
    if (rc == 0)
        rc = get_exactly(images, "height", "decimal", height, error);
    if (rc == 0)
        rc = get_exactly(images, "width", "decimal", width, error);
    if (rc == 0)
        rc = get_exactly(labels, "magic number", "hex", MAGIC_LABELS, error);
    if (rc == 0)
        rc = get_u32(labels, "number of labels", &n_labels, error);
    if (rc < 0)
        return rc;
    if (n_images == 0)
        return file_error(error, images->path,
                          "number of images: found 0, expected at least 1");
    if (n_labels != n_images)
        return file_error(error, labels->path,
                          "number of labels: found %u, expected %u as there are images",
                          n_labels, n_images);
    uint64_t bytes = (uint64_t)n_images * height * width;
    if (bytes > file_bound(images->file))
        return file_error(error, images->path,
                          "number of images: found %u, expected no more than the file "
                          "can hold (%llu bytes): it is truncated",
                          n_images, (unsigned long long)file_bound(images->file));
    if (n_labels > file_bound(labels->file))
        return file_error(error, labels->path,
                          "number of labels: found %u, expected no more than the file "
                          "can hold (%llu bytes): it is truncated",
                          n_labels, (unsigned long long)file_bound(labels->file));
    *n = n_images;
    return 0;
}

static int check_labels(const struct dataset *d, const char *path,
                        char error[DATA_ERROR_MAX])
{
    for (size_t i = 0; i < d->n; i++)
        if (d->labels[i] >= d->n_classes)
            return file_error(error, path,
                              "label of sample %zu: found %u, expected 0 to %u", i,
                              d->labels[i], d->n_classes - 1);
    return 0;
}

/* Both files are open: fill *d from them. */
static int read_pair(struct dataset *d, const char *kind, struct idx *images,
                     struct idx *labels, char error[DATA_ERROR_MAX])
{
    size_t n = 0;
    int rc = get_headers(images, labels, kind, &n, error);
    if (rc < 0)
        return rc;
    rc = dataset_init(d, kind, n);
    if (rc < 0) {
        file_error(error, images->path, "no memory for %zu images", n);
        return rc;
    }
    rc = get_rest(images, d->pixels, n * dataset_dim(d), error);
    if (rc == 0)
        rc = get_rest(labels, d->labels, n, error);
    if (rc == 0)
        rc = check_labels(d, labels->path, error);
    if (rc < 0)
        dataset_close(d);
    return rc;
}

int idx_read(struct dataset *d, const char *kind, const char *dir,
             const char *prefix, char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct idx images = {.file = NULL}, labels = {.file = NULL};
    int rc = idx_open(&images, dir, prefix, "images-idx3-ubyte", error);
    if (rc == 0)
        rc = idx_open(&labels, dir, prefix, "labels-idx1-ubyte", error);
    if (rc == 0)
        rc = read_pair(d, kind, &images, &labels, error);
    file_close(images.file);
    file_close(labels.file);
    return rc;
}
