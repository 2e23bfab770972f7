/* nn/data/format.c -- the table of formats, with one row for each KIND of a data spec, such as
 * csv. */
#include "nn/data/format.h"

#include "nn/data/cifar.h"

#define BIT(key) (UINT32_C(1) << DATA_KEY_##key)

enum { SPLIT_KEYS = BIT(TEST) | BIT(HOLDOUT) | BIT(VALIDATE) };

/* mnist is the format idx with a fixed image size and the established normalisation. It has its own
 * row in this table, but the same reader. */
const struct data_format data_formats[KIND_NAMES] = {
    [KIND_GLYPHS] = {.family = &kind_families[KIND_GLYPHS],
                     .expected = "glyphs",
                     .keys = BIT(VALIDATE)},
    [KIND_MNIST] = {.family = &kind_families[KIND_MNIST],
                    .expected = "mnist:DIR",
                    .contents = "train-images-idx3-ubyte and its labels",
                    .files = DATA_FILES_IDX,
                    .keys = SPLIT_KEYS,
                    .read = idx_read,
                    .looks = idx_looks},
    [KIND_IDX] = {.family = &kind_families[KIND_IDX],
                  .expected = "idx:DIR",
                  .contents = "train-images-idx3-ubyte and its labels",
                  .files = DATA_FILES_IDX,
                  .keys = SPLIT_KEYS,
                  .read = idx_read,
                  .looks = idx_looks},
    [KIND_CIFAR10] = {.family = &kind_families[KIND_CIFAR10],
                      .expected = "cifar10:DIR",
                      .contents = "data_batch_1.bin or other files of 3073-byte records",
                      .files = DATA_FILES_BINARY,
                      .keys = SPLIT_KEYS,
                      .read = cifar_read,
                      .looks = cifar_looks_10},
    [KIND_CIFAR100] = {.family = &kind_families[KIND_CIFAR100],
                       .expected = "cifar100:DIR",
                       .contents = "train.bin or other files of 3074-byte records",
                       .files = DATA_FILES_BINARY,
                       .keys = SPLIT_KEYS,
                       .read = cifar_read,
                       .looks = cifar_looks_100},
    [KIND_LIBSVM] = {.family = &kind_families[KIND_LIBSVM],
                     .expected = "libsvm:PATH",
                     .contents = "rows \"label index:value ...\"",
                     .files = DATA_FILES_BY_LOOKS,
                     .ending = {".libsvm", ".svm"},
                     .keys = SPLIT_KEYS | BIT(DIVIDE) | BIT(FEATURES) | BIT(SCALE),
                     .read = libsvm_read,
                     .looks = libsvm_looks},
    [KIND_CSV] = {.family = &kind_families[KIND_CSV],
                  .expected = "csv:PATH",
                  .contents = "a table of numbers with a label",
                  .files = DATA_FILES_BY_LOOKS,
                  .ending = {".csv", ".tsv", ".data", ".tra", ".tes"},
                  .keys = SPLIT_KEYS | BIT(LABEL) | BIT(HEADER) | BIT(DIVIDE) | BIT(SCALE),
                  .read = csv_read,
                  .looks = csv_looks},
    [KIND_TEXT] = {.family = &kind_families[KIND_TEXT],
                   .expected = "text:PATH",
                   .contents = "plain text",
                   .files = DATA_FILES_BY_LOOKS,
                   .keys = SPLIT_KEYS | BIT(CONTEXT),
                   .read = text_read,
                   .looks = text_looks},
};

const struct data_format *data_format_named(const char *name, size_t n)
{
    const struct kind_family *family = kind_family_named(name, n);
    return family != NULL ? &data_formats[family - kind_families] : NULL;
}
