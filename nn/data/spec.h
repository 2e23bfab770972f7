/* nn/data/spec.h -- parses a data spec.
 *
 *   "csv:/data/a,b.csv,label=class,test=/data/c.csv"
 *    KIND|PATH        |key   value |key  value
 *
 * PATH and the value of test= may contain commas: they end at a comma that is followed by a known key
 * and "=". All other values end at a comma that is followed by any word and "=". The parser does not
 * access files, because a spec may come from another peer.
 */
#ifndef NN_DATA_SPEC_H
#define NN_DATA_SPEC_H

#include "nn/data/dataset.h"

enum {
    DATA_SPEC_MAX = 4096 /* Bytes, with the NUL. */
};

struct data_format;

/* A spec taken apart. Not to be copied: its strings lie in `text`. */
struct data_spec
{
    const struct data_format *format; /* NULL: a PATH alone. */
    const char *path;                 /* NULL: none, as for "glyphs". */
    uint32_t given;                   /* Bits of enum data_key (nn/data/format.h). */
    const char *test, *label;         /* NULL where not given. */
    const char *header;               /* "auto" where not given. */
    double holdout, validate, divide; /* 0, 0 and 1 where not given. */
    uint32_t features, context;       /* 0 and 128 where not given. */
    enum columns_scale scale;         /* COLUMNS_SCALE_AUTO where not given. */
    char text[DATA_SPEC_MAX];
};

/* Take "glyphs", "KIND:PATH[,key=value]...", or "PATH[,key=value]..." apart.
 * 0, or -EINVAL with a sentence. */
__attribute__((warn_unused_result)) int data_spec_parse(struct data_spec *s, const char *text,
                                                        char error[DATA_ERROR_MAX]);

/* Finds the first option in a path whose name is not a key ("a,b=c"), for the error about a
 * missing path. Its name is written to `key`. */
bool data_spec_stray(const char *path, char key[32]);

/* The keys a format takes (NULL: all there are), as a list for a sentence. */
void data_spec_keys(const struct data_format *f, char list[96]);

/* The end of a sentence that refuses a key: ", did you mean test?", or "". Returns out. */
enum { DATA_QUESTION_MAX = 40 };
const char *data_spec_question(const struct data_format *f, const char *key,
                               char out[DATA_QUESTION_MAX]);

/* The kind that a spec of the command line, or a canonical kind, stands for;
 * opens no file: "libsvm:DIR" gives the open kind "libsvm", "text:F,context=64"
 * gives "text/64", "csv/64x10/0" itself. A PATH alone is refused here. 0, or
 * -EINVAL with a sentence. */
__attribute__((warn_unused_result)) int data_kind(const char *spec, char kind[DATA_KIND_MAX],
                                                  char error[DATA_ERROR_MAX]);

/* Is this spec a PATH alone? Then data_sniff() finds its KIND. */
bool data_is_path(const char *spec);

#endif
