/* nn/data/spec.h -- what a data spec says, and the table of formats it may name.
 *
 *   "csv:/data/a,b.csv,label=class,test=/data/c.csv"
 *    KIND|PATH        |key   value |key  value
 *
 * PATH, and that of test=, end where a comma is followed by a key of the table
 * and "=": they may have commas in them. All other values end where a comma is
 * followed by any word and "=". Nothing here looks at a file: a spec may come
 * from a stranger.
 */
#ifndef NN_DATA_SPEC_H
#define NN_DATA_SPEC_H

#include "nn/data/reader.h"

enum {
    DATA_SPEC_MAX = 4096, /* Bytes, with the NUL. */
    DATA_SIDE_MAX = 1024  /* Height and width of an IDX image. */
};

/* How a format's files lie in a directory. */
enum data_files {
    DATA_FILES_NONE,
    DATA_FILES_IDX,    /* Images and labels, paired by their names. */
    DATA_FILES_BINARY, /* By their names' ending; else by their looks. */
    DATA_FILES_BY_LOOKS
};

/* One KIND. */
struct data_format
{
    const char *name;
    const char *expected; /* How to write it. */
    const char *contents; /* What its files hold, for a sentence. */
    enum data_files files;
    uint32_t keys;           /* Bits of enum data_key: which it takes. */
    struct data_shape shape; /* n_classes 0: its canonical kinds say more. */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
    int (*read)(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX]);
    bool (*looks)(const uint8_t *bytes, size_t n, bool whole);
};

/* All of them; the last has no name. */
extern const struct data_format data_formats[];

/* The format of a canonical kind, open or fixed; NULL where it is neither. A
 * fixed kind's shape goes to *shape, an open one's n_classes is 0. */
const struct data_format *data_format_of(const char *kind, struct data_shape *shape);

enum data_key {
    DATA_KEY_TEST,
    DATA_KEY_HOLDOUT,
    DATA_KEY_LABEL,
    DATA_KEY_HEADER,
    DATA_KEY_DIVIDE,
    DATA_KEY_FEATURES,
    DATA_KEY_CONTEXT,
    DATA_KEYS
};

/* A spec taken apart. Not to be copied: its strings lie in `text`. */
struct data_spec
{
    const struct data_format *format; /* NULL: a PATH alone. */
    const char *path;                 /* NULL: none, as of "glyphs". */
    uint32_t given;                   /* Bits of enum data_key. */
    const char *test, *label;         /* NULL where not given. */
    const char *header;               /* "auto" where not given. */
    double holdout, divide;           /* 0 and 1 where not given. */
    uint32_t features, context;       /* 0 and 128 where not given. */
    char text[DATA_SPEC_MAX];
};

/* Take "glyphs", "KIND:PATH[,key=value]...", or "PATH[,key=value]..." apart.
 * 0, or -EINVAL with a sentence. */
__attribute__((warn_unused_result)) int data_spec_parse(struct data_spec *s, const char *text,
                                                        char error[DATA_ERROR_MAX]);

/* The first option in a path whose key is none of the table's ("a,b=c"), for a
 * sentence about a path that is not there: its name goes to key. */
bool data_spec_stray(const char *path, char key[32]);

/* The keys a format takes (NULL: all there are), as a list for a sentence. */
void data_spec_keys(const struct data_format *f, char list[96]);

#endif
