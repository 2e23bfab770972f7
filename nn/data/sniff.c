/* nn/data/sniff.c -- finds the format of the data at a path. IDX and CIFAR files have known names;
 * other files are recognised by their first bytes. */
#include "nn/data/sniff.h"

#include "nn/data/cifar.h"
#include "nn/data/files.h"
#include "nn/data/idx.h"
#include "nn/math/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MNIST_SIDE = 28, MNIST_CLASSES = 10, IDX_HEADER = 16 };

/* State of detecting the format of the data at one path. */
struct sniff
{
    const char *path;
    const char *kind; /* Format that was detected, such as "csv". NULL: not known yet. */
    /* Format that belongs to the ending of a file's name. The first file with a known ending
     * counts. NULL: no file has a known ending. */
    const char *said;
    uint8_t *head; /* The first FILES_HEAD bytes of a file. */
    size_t n;
    bool whole;
};

/* Reads the beginning of a file. */
static int read_head(struct sniff *s, const char *path, char error[DATA_ERROR_MAX])
{
    return file_head(path, s->head, FILES_HEAD, &s->n, &s->whole, error);
}

/* ---- Recognising images ---- */

/* Finds the largest label of a file. If this label is larger than *most, sets *most to it. Reads
 * the whole file, because labels may be sorted. */
static int largest_label(struct sniff *s, const char *path, uint8_t *most,
                         char error[DATA_ERROR_MAX])
{
    struct file *f;
    uint8_t header[8];
    size_t got;
    int err = file_open(&f, path, error);
    if (err < 0)
        return err;
    err = file_get(f, header, sizeof header, &got, error);
    do {
        if (err == 0)
            err = file_get(f, s->head, FILES_HEAD, &got, error);
        for (size_t i = 0; err == 0 && i < got; i++)
            *most = s->head[i] > *most ? s->head[i] : *most;
    } while (err == 0 && got > 0);
    file_close(f);
    return err;
}

/* Returns true if mean and deviation of the first images are close to MNIST's. For MNIST, the
 * images in the first FILES_HEAD bytes differ by at most 0.015 from the figures of the whole set.
 * For Fashion-MNIST, KMNIST and EMNIST, one of the two figures differs by more than 0.04. */
static bool like_mnist(const uint8_t *p, size_t n)
{
    const struct kind_family *f = &kind_families[KIND_MNIST];
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += p[i] / 255.0;
        squares += p[i] / 255.0 * (p[i] / 255.0);
    }
    double mean = sum / (double)n, deviation = sqrt(fmax(squares / (double)n - mean * mean, 0));
    return n > 0 && fabs(mean - (double)f->mean[0]) < 0.03
           && fabs(deviation - (double)f->std[0]) < 0.04;
}

/* IDX files are taken for MNIST if all images are 28x28 and about as bright as MNIST's, and the
 * largest label of all files is 9. Held-out files count, too: a part of MNIST without the digit 9
 * is recognised if the test images are in the same directory. */
static int sniff_idx(struct sniff *s, char *const *paths, size_t n, char error[DATA_ERROR_MAX])
{
    uint8_t most = 0;
    s->kind = "idx";
    for (size_t i = 0; i < n; i++) {
        uint32_t h = 0, w = 0;
        char labels[DATA_SPEC_MAX];
        if (!idx_names_images(file_base_name(paths[i])))
            continue;
        int err = read_head(s, paths[i], error);
        if (err < 0 || !idx_size(s->head, s->n, &h, &w) || h != MNIST_SIDE || w != MNIST_SIDE
            || !like_mnist(s->head + IDX_HEADER, s->n - IDX_HEADER))
            return err;
        err = files_partner(paths[i], labels, error);
        if (err == 0)
            err = largest_label(s, labels, &most, error);
        if (err < 0)
            return err;
    }
    s->kind = most == MNIST_CLASSES - 1 ? "mnist" : "idx";
    return 0;
}

/* Detects the format of a .bin file (CIFAR-10 or CIFAR-100) by its contents, or by its name if the
 * contents fit both formats or none. */
static int sniff_binary(struct sniff *s, const char *path, char error[DATA_ERROR_MAX])
{
    int err = read_head(s, path, error);
    if (err < 0)
        return err;
    bool ten = cifar_looks_10(s->head, s->n, s->whole);
    bool hundred = cifar_looks_100(s->head, s->n, s->whole);
    if (ten == hundred) {
        ten = strstr(file_base_name(path), "_batch") != NULL;
        hundred = !ten
                  && (strncmp(file_base_name(path), "train.bin", 9) == 0
                      || strncmp(file_base_name(path), "test.bin", 8) == 0);
    }
    s->kind = ten ? "cifar10" : hundred ? "cifar100" : s->kind;
    return 0;
}

/* Returns whether the name ends in .bin or .bin.gz. */
static bool is_binary(const char *path)
{
    size_t n = strlen(path);
    return (n > 4 && strcmp(path + n - 4, ".bin") == 0)
           || (n > 7 && strcmp(path + n - 7, ".bin.gz") == 0);
}

/* ---- Files of any format. ---- */

/* Returns the format of a file by its first bytes. Called if the name of the file does not show the
 * format. Formats with strict rules are tried first, because a table or a libsvm file is also valid
 * text. */
static const char *looks_like(const struct sniff *s)
{
    static const enum kind_name order[] = {KIND_IDX,    KIND_CIFAR10, KIND_CIFAR100,
                                           KIND_LIBSVM, KIND_CSV,     KIND_TEXT};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (data_formats[order[i]].looks(s->head, s->n, s->whole))
            return kind_families[order[i]].name;
    return NULL;
}

/* Returns the format that belongs to the ending of a file name, such as "csv" for ".csv". */
static const char *named(const char *path)
{
    for (size_t i = 0; i < KIND_NAMES; i++)
        if (files_named(file_base_name(path), &data_formats[i]))
            return kind_families[i].name;
    return NULL;
}

/* Returns whether the format `kind` is chosen over the format `other` if files of one directory
 * look like both. Every format is chosen over text: a directory of tables often contains a README,
 * but a directory of texts seldom contains a table. */
static bool outdoes(const char *kind, const char *other)
{
    return kind != NULL
           && (other == NULL || (strcmp(other, "text") == 0 && strcmp(kind, "text") != 0));
}

/* Detects the format by the names of the files. The first file with the name of an IDX or .bin file
 * decides for the directory. */
static int sniff_names(struct sniff *s, char *const *paths, size_t n, char error[DATA_ERROR_MAX])
{
    for (size_t i = 0; i < n && s->kind == NULL; i++) {
        int err = 0;
        if (idx_names_images(file_base_name(paths[i])))
            err = sniff_idx(s, paths + i, n - i, error);
        else if (is_binary(paths[i]))
            err = sniff_binary(s, paths[i], error);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Detects the format by the first bytes of all files. The first file that does not look like text
 * decides. If all files look like text, the ending of a name decides. Example: a table with "?" in
 * its cells looks like text, but its name ends in .csv. */
static int sniff_contents(struct sniff *s, char *const *paths, size_t n, char error[DATA_ERROR_MAX])
{
    for (size_t i = 0; i < n; i++) {
        int err = read_head(s, paths[i], error);
        if (err < 0)
            return err;
        const char *kind = looks_like(s);
        s->kind = outdoes(kind, s->kind) ? kind : s->kind;
        s->said = s->said != NULL ? s->said : named(paths[i]);
    }
    s->kind = outdoes(s->said, s->kind) ? s->said : s->kind;
    return 0;
}

static int sniff_files(struct sniff *s, char *const *paths, size_t n, char error[DATA_ERROR_MAX])
{
    int err = sniff_names(s, paths, n, error);
    if (err == 0 && s->kind == NULL)
        err = sniff_contents(s, paths, n, error);
    if (err < 0 || s->kind != NULL)
        return err;
    return file_error(error, s->path,
                      "found %zu file%s of an unknown kind, expected IDX, CIFAR, libsvm, csv or "
                      "text (or KIND:PATH)",
                      n, number_plural(n));
}

int data_sniff(const char *path, char kind[DATA_KIND_MAX], char error[DATA_ERROR_MAX])
{
    struct data_spec spec;
    int err = data_spec_parse(&spec, path, error);
    if (err < 0)
        return err;
    if (spec.format != NULL) {
        snprintf(kind, DATA_KIND_MAX, "%s", spec.format->family->name);
        return 0;
    }
    struct files all;
    struct sniff s = {.path = spec.path, .head = malloc(FILES_HEAD)};
    err = files_all(&all, spec.path, error);
    if (err == 0 && s.head == NULL) {
        err = file_no_memory(error, spec.path);
    }
    if (err == 0)
        err = sniff_files(&s, all.path, all.n, error);
    if (err == 0)
        snprintf(kind, DATA_KIND_MAX, "%s", s.kind);
    files_close(&all);
    free(s.head);
    return err;
}
