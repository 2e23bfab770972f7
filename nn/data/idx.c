/* nn/data/idx.c -- reads IDX files, the format of MNIST, in pairs of images and labels.
 *
 * Headers are not trusted. Both headers are compared with what the files can contain before memory
 * is allocated. The memory then grows with the pixels that are read. Bytes after the end that the
 * header announces are refused, because the header then does not belong to the data.
 */
#include "nn/data/idx.h"

#include "nn/data/image_set.h"
#include "nn/data/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MAGIC_IMAGES = 0x00000803, /* Magic number: unsigned bytes, three dimensions. */
    MAGIC_LABELS = 0x00000801,
    AT_ONCE = 4096 /* Number of labels that one read gets. */
};

/* ---- Recognising the files by names and first bytes. ---- */

/* Returns the position of `what` in a file name that ends in WHAT-REST or WHAT.REST, such as
 * train-images-idx3-ubyte. The ending ".gz" may follow. NULL: the name ends otherwise. */
static const char *find_part(const char *name, const char *what, const char *rest)
{
    size_t len = strlen(name), n_what = strlen(what), n_rest = strlen(rest);
    if (len >= 3 && strcmp(name + len - 3, ".gz") == 0)
        len -= 3;
    if (len < n_what + 1 + n_rest)
        return NULL;
    const char *p = name + len - n_rest - 1 - n_what;
    bool ok = memcmp(p, what, n_what) == 0 && (p[n_what] == '-' || p[n_what] == '.')
              && memcmp(p + n_what + 1, rest, n_rest) == 0;
    return ok ? p : NULL;
}

/* Returns the position of "images" in the name of a file of images. NULL: the name has another
 * form. */
static const char *images_part(const char *name)
{
    return find_part(name, "images", "idx3-ubyte");
}

/* Returns the position of "labels" in the name of a file of labels. NULL: the name has another
 * form. */
static const char *labels_part(const char *name)
{
    return find_part(name, "labels", "idx1-ubyte");
}

bool idx_names_images(const char *name)
{
    return images_part(name) != NULL;
}

bool idx_names_labels(const char *name)
{
    return labels_part(name) != NULL;
}

/* The names of the two files differ in the words "images" and "labels" and in their endings. The
 * character after the word is the same in both names. */
bool idx_partner(const char *name, char partner[IDX_NAME_MAX])
{
    bool images = idx_names_images(name);
    const char *p = images ? images_part(name) : labels_part(name);
    if (p == NULL)
        return false;
    int n = snprintf(partner, IDX_NAME_MAX, "%.*s%s%c%s", (int)(p - name), name,
                     images ? "labels" : "images", p[6], images ? "idx1-ubyte" : "idx3-ubyte");
    return n > 0 && n < IDX_NAME_MAX;
}

/* Reads a big-endian number. */
static uint32_t u32(const uint8_t b[4])
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

bool idx_size(const uint8_t *bytes, size_t n, uint32_t *height, uint32_t *width)
{
    if (n < 16 || u32(bytes) != MAGIC_IMAGES)
        return false;
    *height = u32(bytes + 8);
    *width = u32(bytes + 12);
    return true;
}

/* Only the magic number is checked. If anything else is wrong, idx_read() reports it. */
bool idx_looks(const uint8_t *bytes, size_t n, bool whole)
{
    (void)whole;
    return n >= 8 && (u32(bytes) == MAGIC_IMAGES || u32(bytes) == MAGIC_LABELS);
}

/* ---- Reading the headers of a pair of files ---- */

/* One open file of a pair: the images or the labels. */
struct idx
{
    const char *path;
    struct file *file;
};

/* State of reading one pair of files: images and their labels. */
struct pair
{
    struct idx images, labels;
    struct image_set *set;
    const struct reader *reader;
    /* True: the number of classes is not known yet. The labels in the files determine it. */
    bool open;
    /* Index of this pair of files among the pairs of the set (training or held-out). */
    uint32_t number;
    size_t n; /* Number of images, from the header. */
};

/* Reads a big-endian number of four bytes. */
static int get_u32(struct idx *x, const char *field, uint32_t *v, char error[DATA_ERROR_MAX])
{
    uint8_t b[4];
    size_t got;
    int err = file_get(x->file, b, sizeof b, &got, error);
    if (err < 0)
        return err;
    if (got < sizeof b)
        return file_error(error, x->path, "%s: found %zu bytes, expected 4: the file is truncated",
                          field, got);
    *v = u32(b);
    return 0;
}

static int get_magic(struct idx *x, uint32_t expected, char error[DATA_ERROR_MAX])
{
    uint32_t v = 0;
    int err = get_u32(x, "magic number", &v, error);
    if (err < 0 || v == expected)
        return err;
    return file_error(error, x->path, "magic number: found 0x%08x, expected 0x%08x", v, expected);
}

/* Reads the height or width of the images. If *side is not 0 (the size of earlier files), the value
 * must be equal to it. If *side is 0, it is set to the value. */
static int get_side(struct idx *x, const char *field, uint32_t *side, char error[DATA_ERROR_MAX])
{
    uint32_t v = 0;
    int err = get_u32(x, field, &v, error);
    if (err < 0)
        return err;
    if (*side > 0 && v != *side)
        return file_error(error, x->path, "%s: found %u, expected %u", field, v, *side);
    if (v == 0 || v > DATA_SIDE_MAX)
        return file_error(error, x->path, "%s: found %u, expected 1 to %d", field, v,
                          DATA_SIDE_MAX);
    *side = v;
    return 0;
}

/* Checks that both files are large enough for what their headers announce, and that the images do
 * not exceed the limit of a set. */
static int check_counts(const struct pair *p, uint32_t n_images, uint32_t n_labels,
                        char error[DATA_ERROR_MAX])
{
    const struct dataset *d = p->set->d;
    uint64_t bytes = (uint64_t)n_images * dataset_dim(d);
    if (n_images == 0)
        return file_error(error, p->images.path, "number of images: found 0, expected at least 1");
    if (n_labels != n_images)
        return file_error(error, p->labels.path,
                          "number of labels: found %u, expected %u, the number of images", n_labels,
                          n_images);
    if (bytes > file_bound(p->images.file))
        return file_error(error, p->images.path,
                          "number of images: found %u, expected no more than the file "
                          "can hold (%llu bytes): it is truncated",
                          n_images, (unsigned long long)file_bound(p->images.file));
    if (n_labels > file_bound(p->labels.file))
        return file_error(error, p->labels.path,
                          "number of labels: found %u, expected no more than the file "
                          "can hold (%llu bytes): it is truncated",
                          n_labels, (unsigned long long)file_bound(p->labels.file));
    if (n_images > image_set_most(d) - d->n)
        return file_error(error, p->images.path,
                          "number of images: found %u, expected at most %zu in all files", n_images,
                          image_set_most(d));
    return 0;
}

/* Reads both headers before any pixel, so that two files that do not match are refused at once.
 * The first pair fixes the size of the images. */
static int get_headers(struct pair *p, char error[DATA_ERROR_MAX])
{
    struct data_shape *shape = &p->set->d->shape;
    uint32_t n_images = 0, n_labels = 0;
    int err = get_magic(&p->images, MAGIC_IMAGES, error);
    if (err == 0)
        err = get_u32(&p->images, "number of images", &n_images, error);
    if (err == 0)
        err = get_side(&p->images, "height", &shape->height, error);
    if (err == 0)
        err = get_side(&p->images, "width", &shape->width, error);
    if (err == 0)
        err = get_magic(&p->labels, MAGIC_LABELS, error);
    if (err == 0)
        err = get_u32(&p->labels, "number of labels", &n_labels, error);
    if (err == 0)
        err = check_counts(p, n_images, n_labels, error);
    p->n = n_images;
    return err;
}

/* ---- Reading the images and labels ---- */

static int truncated(const struct idx *x, uint64_t got, uint64_t expected,
                     char error[DATA_ERROR_MAX])
{
    return file_error(error, x->path,
                      "data: found %llu bytes, expected %llu: the file is truncated",
                      (unsigned long long)got, (unsigned long long)expected);
}

/* Checks that the file ends after the n bytes of data that its header announces. */
static int get_end(struct idx *x, uint64_t n, char error[DATA_ERROR_MAX])
{
    uint8_t more;
    size_t got;
    int err = file_get(x->file, &more, 1, &got, error);
    if (err < 0 || got == 0)
        return err;
    return file_error(error, x->path, "data: found trailing bytes, expected %llu bytes in total",
                      (unsigned long long)n);
}

/* Reads the pixels in several steps, so that the memory grows with the pixels that have been read,
 * whatever the header announces. */
static int get_pixels(struct pair *p, char error[DATA_ERROR_MAX])
{
    struct dataset *d = p->set->d;
    size_t size = dataset_dim(d), step = image_set_step(d), got;
    for (size_t i = 0; i < p->n;) {
        size_t k = p->n - i < step ? p->n - i : step;
        if (image_set_room(p->set, i + k, d->n + p->n) < 0)
            return file_no_memory(error, p->images.path);
        int err = file_get(p->images.file, d->pixels + (d->n + i) * size, k * size, &got, error);
        if (err < 0)
            return err;
        if (got < k * size)
            return truncated(&p->images, (uint64_t)i * size + got, (uint64_t)p->n * size, error);
        i += k;
    }
    return get_end(&p->images, (uint64_t)p->n * size, error);
}

/* Returns the largest valid label: 255 if the number of classes is not known yet. */
static uint32_t label_most(const struct pair *p)
{
    uint32_t n = p->open ? 256 : p->set->d->shape.n_classes;
    return n - 1;
}

/* Reads and checks the labels, AT_ONCE at a time. */
static int get_labels(struct pair *p, char error[DATA_ERROR_MAX])
{
    struct dataset *d = p->set->d;
    uint8_t bytes[AT_ONCE];
    for (size_t i = 0, got; i < p->n; i += got) {
        size_t k = p->n - i < sizeof bytes ? p->n - i : sizeof bytes;
        int err = file_get(p->labels.file, bytes, k, &got, error);
        if (err < 0)
            return err;
        if (got < k)
            return truncated(&p->labels, i + got, p->n, error);
        for (size_t j = 0; j < k; j++) {
            if (bytes[j] > label_most(p))
                return file_error(error, p->labels.path,
                                  "label of sample %zu: found %u, expected 0 to %u", i + j,
                                  bytes[j], label_most(p));
            d->labels[d->n + i + j] = bytes[j];
        }
    }
    return get_end(&p->labels, p->n, error);
}

static int open_file(struct idx *x, const struct reader *r, char error[DATA_ERROR_MAX])
{
    int err = file_open(&x->file, x->path, error);
    if (err == 0)
        file_watch(x->file, &r->progress);
    return err;
}

/* Reads one pair of files. The images are added to the set only after their labels have been
 * read. */
static int read_pair(struct pair *p, char error[DATA_ERROR_MAX])
{
    int err = open_file(&p->images, p->reader, error);
    if (err == 0)
        err = open_file(&p->labels, p->reader, error);
    if (err == 0)
        err = get_headers(p, error);
    if (err == 0)
        err = get_pixels(p, error);
    if (err == 0)
        err = get_labels(p, error);
    if (err == 0)
        image_set_add(p->set, p->n, p->number);
    file_close(p->images.file);
    file_close(p->labels.file);
    return err;
}

/* Completes the kind (nn/data/kind.h) with the labels that were found: the number of classes is the
 * largest label plus 1, and at least 2. */
static void kind_from_labels(struct dataset *d)
{
    uint32_t n = 2;
    for (size_t i = 0; i < d->n; i++)
        n = d->labels[i] >= n ? d->labels[i] + 1u : n;
    char kind[DATA_KIND_MAX];
    snprintf(kind, sizeof kind, "idx/1x%ux%u/%u", d->shape.height, d->shape.width, n);
    dataset_kind(d, kind);
}

/* Reads the pairs in order. If the kind is open ("idx" without sizes), the first pair determines
 * height and width, and all labels together determine the number of classes. */
int idx_read(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX])
{
    assert(r->n_paths >= 2 && r->n_paths % 2 == 0);
    bool open = !data_kind_fixed(r->kind);
    memset(d, 0, sizeof *d);
    if (open)
        d->shape = (struct data_shape){.form = DATA_IMAGES, .channels = 1};
    else
        dataset_kind(d, r->kind);
    assert(d->shape.form == DATA_IMAGES && d->shape.channels == 1);
    struct image_set set = {.d = d, .by_file = r->n_paths > 2};
    int err = 0;
    for (size_t i = 0; i < r->n_paths && err == 0; i += 2) {
        struct pair p = {.images = {.path = r->paths[i]},
                         .labels = {.path = r->paths[i + 1]},
                         .set = &set,
                         .reader = r,
                         .open = open,
                         .number = (uint32_t)(i / 2)};
        err = read_pair(&p, error);
    }
    if (err < 0) {
        dataset_close(d);
        return err;
    }
    image_set_end(&set);
    if (open)
        kind_from_labels(d);
    d->n_files = (uint32_t)(r->n_paths / 2);
    return 0;
}
