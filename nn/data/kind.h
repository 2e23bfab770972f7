/* nn/data/kind.h -- canonical kinds: the few characters of a run that say what its data are.
 *
 *   glyphs  mnist  cifar10  cifar100     the name alone fixes everything
 *   idx/1x28x28/10/0.2860~0.3530         images: channels x height x width / classes / mean ~ deviation
 *   idx/1x28x28/10                       the same with mean and deviation 0.5, as runs had before
 *   libsvm/123x2/pm   csv/64x10/0/16     rows: features x classes / labels [/ divisor]
 *   csv/4x3/in-0-1.5                     the labels are 0, 1 and 5 (nn/data/label_set.h)
 *   csv/3x2/0/standard:2~.5,=aB3x-9      [/ scale : text of the columns (nn/data/columns.h)]
 *   csv/784x10/0/standard-HASH           [/ scale - hash of the columns], where the text is too long
 *   csv/3x2/0/columns-HASH=TAGS/...      [/ columns - hash of their names [= tags of these] (nn/data/schema.h)]
 *   text/128                             bytes of context
 *   idx  libsvm  csv                     open kinds: the files fix the rest once read
 *
 * A kind is part of a run and alone fixes shapes, number of classes, what labels mean, and
 * normalisation, so that peers may hold different files of one kind. It may come from a
 * stranger and is parsed here without looking at a file.
 */
#ifndef NN_DATA_KIND_H
#define NN_DATA_KIND_H

#include "nn/data/columns.h"
#include "nn/data/label_set.h"
#include "nn/data/shape.h"

#include <stdbool.h>

enum {
    KIND_BASE_MAX =
        64, /* Bytes of a kind without its list of labels and its columns, with the NUL. */
    KIND_NAMES_MAX = 25, /* Bytes of "/columns-HASH". */
    DATA_KIND_MAX = KIND_BASE_MAX + LABEL_SET_MAX + KIND_NAMES_MAX + 16
                    + COLUMNS_TEXT_MAX /* Bytes of any kind. */
};

/* A kind's first word. */
enum kind_name {
    KIND_GLYPHS,
    KIND_MNIST,
    KIND_IDX,
    KIND_CIFAR10,
    KIND_CIFAR100,
    KIND_LIBSVM,
    KIND_CSV,
    KIND_TEXT,
    KIND_NAMES
};

/* All kinds that begin with one word. */
struct kind_family
{
    const char *name;
    struct data_shape shape; /* n_classes 0: what follows the name says more. */
    /* Images only, over pixel / 255. A kind of idx may say others: kind_normalisation(). */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
};

/* Mean and deviation over pixel / 255, a channel each, of a fixed kind of images. */
struct kind_normalisation
{
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
};
struct kind_normalisation kind_normalisation(const char *kind);

/* Write the kind of idx images with this mean and deviation, rounded to four decimals. A deviation
 * that rounds to 0 becomes 1: all pixels are the same. */
void kind_idx_print(const struct data_shape *shape, double mean, double deviation,
                    char kind[DATA_KIND_MAX]);

extern const struct kind_family kind_families[KIND_NAMES];

/* The family whose name is name[0..n); NULL where there is none. */
const struct kind_family *kind_family_named(const char *name, size_t n);

/* The family of a canonical kind, open or fixed; NULL where it is neither. A
 * fixed kind's shape goes to *shape, an open one's n_classes is 0. */
const struct kind_family *kind_family_of(const char *kind, struct data_shape *shape);

/* The shape that a canonical, fixed kind fixes. 0, or -EINVAL for what is none. */
__attribute__((warn_unused_result)) int data_shape(const char *kind, struct data_shape *shape);

/* Is the shape known? Do two kinds agree (equal, or one is the open kind of the
 * other)? */
bool data_kind_fixed(const char *kind);
bool data_kind_agrees(const char *a, const char *b);

/* How files spell labels (nn/data/labels.h has the table). */
enum labels_scheme { LABELS_OPEN, LABELS_PM, LABELS_ZERO, LABELS_ONE, LABELS_NAMES, LABELS_LIST };

/* A kind of rows taken apart: "libsvm/123x2/pm/16". */
struct kind_rows
{
    bool fixed; /* False: the open kind; all below is zero, divide 1. */
    uint32_t features, n_classes;
    enum labels_scheme scheme;
    uint64_t hash;            /* Hash of the sorted label names; LABELS_NAMES only. */
    char list[LABEL_SET_MAX]; /* The labels (nn/data/label_set.h); LABELS_LIST only, else "". */
    double divide;            /* Every value is divided by this. */
    /* How columns become inputs; COLUMNS_SCALE_AUTO: numbers as they are, and nothing else. Then a
     * text, borrowed from the kind that was parsed, or where it is NULL a hash. */
    enum columns_scale scale;
    const char *columns;
    uint64_t columns_hash;
    /* csv: the columns have names, which have this hash. Tags of them and of the label's name, borrowed as the
     * text is, are there where they have room beside the text; n_tags 0: they are not known. */
    bool named;
    uint64_t names_hash;
    const char *tags;
    size_t n_tags; /* Letters. */
};

/* Take apart a kind of this family ("libsvm", "csv"). False where it is none. */
bool kind_rows_parse(const char *kind, const char *family, struct kind_rows *k);

/* A kind for people: without the text of its columns, and the hash and tags of their names. */
struct kind_brief
{
    char text[128];
};
struct kind_brief kind_brief(const char *kind);

/* Write it down. False where it has no room. */
bool kind_rows_print(const struct kind_rows *k, const char *family, char kind[DATA_KIND_MAX]);

#endif
