/* peer/diary/columns.h -- the names of a table's columns in the metadata of a model file.
 *
 *   "columns"   a JSON array of the names, in the order of the model's inputs
 *   "label"     the name of the label's column
 */
#ifndef PEER_DIARY_COLUMNS_H
#define PEER_DIARY_COLUMNS_H

#include "nn/data/schema.h"
#include "nn/files/safetensors.h"

enum { DIARY_COLUMNS_MAX = 1 << 19 /* Maximum length in bytes. A longer array is not written. */ };

/* Returns the JSON array of column names, which the caller frees. NULL: no names are known, the
 * array would be longer than DIARY_COLUMNS_MAX, or memory is short. *label is the name of the
 * label's column, borrowed from the schema; NULL: not known. `s` may be NULL. */
char *diary_columns_text(const struct schema *s, const char **label);

/* Reads the names from a file's metadata. *s becomes zeros if the file has no names. Returns 0;
 * -EINVAL if the metadata is not an array of distinct names; or -ENOMEM. */
__attribute__((warn_unused_result)) int diary_columns_read(const struct safetensors_info *info,
                                                           struct schema *s);

#endif
