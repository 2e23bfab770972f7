/* nn/data/format.h -- the table of formats: how the files of each format are named, found and
 * read. */
#ifndef NN_DATA_FORMAT_H
#define NN_DATA_FORMAT_H

#include "nn/data/kind.h"
#include "nn/data/reader.h"

/* How the files of a format are found in a directory. */
enum data_files {
    DATA_FILES_NONE, /* No files: the program generates the samples. */
    DATA_FILES_IDX, /* Pairs of a file of images and a file of labels, recognised by their names. */
    /* Files whose names end in .bin. If there are none: files that begin like the format. */
    DATA_FILES_BINARY,
    DATA_FILES_BY_LOOKS
};

/* The keys that may follow a PATH in a data spec. */
enum data_key {
    DATA_KEY_TEST,
    DATA_KEY_HOLDOUT,
    DATA_KEY_VALIDATE,
    DATA_KEY_LABEL,
    DATA_KEY_HEADER,
    DATA_KEY_DIVIDE,
    DATA_KEY_FEATURES,
    DATA_KEY_CONTEXT,
    DATA_KEY_SCALE,
    DATA_KEYS
};

enum { DATA_ENDINGS = 5 };

struct data_format
{
    const struct kind_family *family;
    const char *expected; /* Form of a spec with this format, for error messages. */
    /* Description of the contents of a file in this format, for error messages. */
    const char *contents;
    enum data_files files;
    /* Endings of file names that belong to the format. NULL ends the list. */
    const char *ending[DATA_ENDINGS];
    /* Options (KEY=VALUE) that a spec with this format may have, as bits of enum data_key. */
    uint32_t keys;
    int (*read)(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX]);
    bool (*looks)(const uint8_t *bytes, size_t n, bool whole);
};

extern const struct data_format data_formats[KIND_NAMES];

/* Returns the format with the name name[0..n). NULL: no format has this name. */
const struct data_format *data_format_named(const char *name, size_t n);

#endif
