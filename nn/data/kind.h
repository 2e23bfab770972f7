/* nn/data/kind.h -- canonical kinds: the short text in a run description that says what the data
 * are. Examples, with the meaning of their parts:
 *
 *   glyphs  mnist  cifar10  cifar100     the name alone determines everything
 *   idx/1x28x28/10/0.2860~0.3530         images: channels x height x width/classes/mean~deviation
 *   idx/1x28x28/10                       mean and deviation 0.5, as in runs of older versions
 *   libsvm/123x2/pm   csv/64x10/0/16     rows: features x classes / labels [/ divisor]
 *   csv/4x3/in-0-1.5                     the labels are 0, 1 and 5 (nn/data/label_set.h)
 *   csv/3x2/0/standard:2~.5,=aB3x-9      [/ scale : text of the columns (nn/data/columns.h)]
 *   csv/784x10/0/standard-HASH           [/ scale - hash of the columns], if the text is too long
 *   csv/3x2/0/columns-HASH=TAGS/...      [/ columns - hash of names [= tags] (nn/data/schema.h)]
 *   text/128                             bytes of context
 *   idx  libsvm  csv                     open kinds: the files determine all else
 *
 * A kind is fixed if it determines shapes, number of classes, meaning of labels, and normalisation.
 * Peers may hold different files of one fixed kind. A kind is part of a run. It may come from an
 * untrusted peer and is parsed here without reading a file.
 */
#ifndef NN_DATA_KIND_H
#define NN_DATA_KIND_H

#include "nn/data/columns.h"
#include "nn/data/label_set.h"
#include "nn/data/shape.h"

#include <stdbool.h>

enum {
    /* Largest size of a kind (text that describes data) without its list of labels and its columns,
     * in bytes with the NUL. */
    KIND_BASE_MAX = 64,
    KIND_NAMES_MAX = 25, /* Size of the text "/columns-HASH" in bytes, with the NUL. */
    /* Size of the longest kind (text that describes data) in bytes, with the NUL. */
    DATA_KIND_MAX = KIND_BASE_MAX + LABEL_SET_MAX + KIND_NAMES_MAX + 16 + COLUMNS_TEXT_MAX
};

/* First word of a kind, which is the name of its family. */
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

/* A family: all kinds (texts that describe data) that begin with the same word. */
struct kind_family
{
    const char *name;
    /* Shape of the samples of this family. n_classes is 0 if each kind of the family has its own
     * shape, which follows from the text after the family's name. */
    struct data_shape shape;
    /* Mean and deviation of pixel / 255 for each channel. Images only. A kind such as
     * "idx/1x28x28/10/0.2860~0.3530" has its own values: see kind_normalisation(). */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
};

/* Mean and deviation of pixel / 255 for each channel, as given by a fixed kind of images. */
struct kind_normalisation
{
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
};
struct kind_normalisation kind_normalisation(const char *kind);

/* Writes the kind of IDX images of this shape with this mean and deviation, rounded to four
 * decimals. A deviation that rounds to 0, because all pixels are equal, becomes 1. */
void kind_idx_print(const struct data_shape *shape, double mean, double deviation,
                    char kind[DATA_KIND_MAX]);

extern const struct kind_family kind_families[KIND_NAMES];

/* Returns the family (all kinds with the same first word) that is called name[0..n), or NULL. */
const struct kind_family *kind_family_named(const char *name, size_t n);

/* Returns the family of a canonical kind, or NULL if the kind is invalid. The kind may be fixed
 * ("csv/64x10/0") or open ("csv"). Sets *shape to the shape of a fixed kind. For an open kind, the
 * shape has n_classes 0. */
const struct kind_family *kind_family_of(const char *kind, struct data_shape *shape);

/* Sets *shape to the shape of the data that a fixed kind (not just a name such as "csv") describes.
 * Returns 0, or -EINVAL if the kind is not fixed. */
__attribute__((warn_unused_result)) int data_shape(const char *kind, struct data_shape *shape);

/* data_kind_fixed() returns whether a kind is fixed, that is, not just a name such as "csv".
 * data_kind_agrees() returns whether two kinds are equal, or one is an open kind, such as "csv", of
 * the other's format. */
bool data_kind_fixed(const char *kind);
bool data_kind_agrees(const char *a, const char *b);

/* Scheme of the labels: whether they are numbers or names, and which ones. nn/data/labels.h has the
 * table of schemes. */
enum labels_scheme { LABELS_OPEN, LABELS_PM, LABELS_ZERO, LABELS_ONE, LABELS_NAMES, LABELS_LIST };

/* The kind of a table or of sparse rows, such as "libsvm/123x2/pm/16", in parsed form. */
struct kind_rows
{
    /* False: the kind is open (only a name such as "csv"). `divide` is then 1, and all other fields
     * are 0. */
    bool fixed;
    uint32_t features, n_classes;
    enum labels_scheme scheme;
    uint64_t hash; /* Hash of the sorted label names. Only with LABELS_NAMES. */
    /* Text of the labels (nn/data/label_set.h), if the scheme is LABELS_LIST. Otherwise "". */
    char list[LABEL_SET_MAX];
    double divide; /* Number by which every value in the files is divided. */
    /* Scale of the columns. COLUMNS_SCALE_AUTO: the columns are not scaled, so `columns` and
     * `columns_hash` are unused. */
    enum columns_scale scale;
    /* Text of the columns, borrowed from the parsed kind. NULL: only the hash is known. */
    const char *columns;
    uint64_t columns_hash; /* Hash of the columns if `columns` is NULL. */
    /* named: the columns have names (csv only). names_hash: the hash of the names. */
    bool named;
    uint64_t names_hash;
    /* Tags (short hashes) of the columns' names and of the label's name. Present if they fit into
     * the kind in addition to `columns`. Borrowed from the parsed kind. */
    const char *tags;
    size_t n_tags; /* Length of `tags` in letters. 0: the tags are not known. */
};

/* Parses a kind (text that describes data) of the family "libsvm" or "csv". Returns false if the
 * kind is not valid for the family. */
bool kind_rows_parse(const char *kind, const char *family, struct kind_rows *k);

/* Short form of a kind (text that describes data) for messages: without the text of the columns,
 * and without the hash and tags of the columns' names. */
struct kind_brief
{
    char text[128];
};
struct kind_brief kind_brief(const char *kind);

/* Writes the kind (text that describes data) for the fields of *k. Returns false if the text is too
 * long. */
bool kind_rows_print(const struct kind_rows *k, const char *family, char kind[DATA_KIND_MAX]);

#endif
