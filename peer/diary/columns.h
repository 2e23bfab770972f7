/* peer/diary/columns.h -- the names of a table's columns among the metadata of a model file.
 *
 *   "columns"   a JSON array of the names, in the order of the model's inputs
 *   "label"     the name of the label's column
 */
#ifndef PEER_DIARY_COLUMNS_H
#define PEER_DIARY_COLUMNS_H

#include "nn/data/schema.h"
#include "nn/files/safetensors.h"

enum { DIARY_COLUMNS_MAX = 1 << 19 /* Bytes of the array. A longer one is not written. */ };

/* The array, for the caller to free; NULL where names are not known, are too many, or without memory.
 * `label` borrows from the schema, NULL where it is not known. `s` may be NULL. */
char *diary_columns_text(const struct schema *s, const char **label);

/* The names in a file's metadata; *s is zeros where there are none. 0; -EINVAL for what is no array of
 * names that differ; or -ENOMEM. */
__attribute__((warn_unused_result)) int diary_columns_read(const struct safetensors_info *info,
                                                           struct schema *s);

#endif
