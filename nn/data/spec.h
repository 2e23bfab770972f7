/* nn/data/spec.h -- parses a data spec.
 *
 *   "csv:/data/a,b.csv,label=class,test=/data/c.csv"
 *    KIND|PATH        |key   value |key  value
 *
 * PATH and the value of test= may contain commas: they end at a comma that is followed by a known
 * key and "=". All other values end at a comma that is followed by any word and "=". The parser
 * does not access files, because a spec may come from another peer.
 */
#ifndef NN_DATA_SPEC_H
#define NN_DATA_SPEC_H

#include "nn/data/dataset.h"

enum {
    DATA_SPEC_MAX = 4096 /* Size of the longest spec in bytes, with the NUL. */
};

struct data_format;

/* A parsed spec. The struct must not be copied, because its strings point into `text`. */
struct data_spec
{
    /* Format that KIND names. NULL: the spec is a PATH without KIND. */
    const struct data_format *format;
    const char *path;         /* PATH of the spec. NULL: the spec is "glyphs", which has no PATH. */
    uint32_t given;           /* Keys in the spec, as bits of enum data_key (nn/data/format.h). */
    const char *test, *label; /* Values of the keys test= and label=. NULL: not given. */
    const char *header;       /* Value of the key header=. "auto": not given. */
    /* Values of the keys holdout= (0: not given), validate= (0: not given) and divide= (default
     * 1). */
    double holdout, validate, divide;
    /* Values of the keys features= (0: not given) and context= (default 128). */
    uint32_t features, context;
    enum columns_scale scale; /* Value of the key scale=. COLUMNS_SCALE_AUTO: not given. */
    char text[DATA_SPEC_MAX];
};

/* Parses "glyphs", "KIND:PATH[,key=value]..." or "PATH[,key=value]...". Returns 0, or -EINVAL with
 * a message. */
__attribute__((warn_unused_result)) int data_spec_parse(struct data_spec *s, const char *text,
                                                        char error[DATA_ERROR_MAX]);

/* Finds the first word between a comma and "=" in a path ("b" in "a,b=c") and writes it to `key`.
 * The word may be a mistyped key: the error message about the missing path then mentions it.
 * Returns false if the path has no such word. */
bool data_spec_stray(const char *path, char key[32]);

/* Writes the keys that a format accepts (NULL: all keys) as a list for a message. */
void data_spec_keys(const struct data_format *f, char list[96]);

/* Returns `out` with the end of a message that refuses a key: ", did you mean test?", or "" if no
 * key is similar. */
enum { DATA_QUESTION_MAX = 40 };
const char *data_spec_question(const struct data_format *f, const char *key,
                               char out[DATA_QUESTION_MAX]);

/* Writes the kind that a data spec implies, without opening a file. "libsvm:DIR" gives the open
 * kind "libsvm", "text:F,context=64" gives "text/64", and the canonical kind "csv/64x10/0" gives
 * itself. A PATH without KIND is refused. Returns 0, or -EINVAL with a message. */
__attribute__((warn_unused_result)) int data_kind(const char *spec, char kind[DATA_KIND_MAX],
                                                  char error[DATA_ERROR_MAX]);

/* Returns whether a spec is a PATH without KIND. data_sniff() then finds the KIND. */
bool data_is_path(const char *spec);

#endif
