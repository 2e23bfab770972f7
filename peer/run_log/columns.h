/* peer/run_log/columns.h -- stores the column names of a table in the metadata of a model file, and
 * reads them back.
 *
 *   "columns"   JSON array of the names, in the order of the model's inputs
 *   "label"     name of the label column
 */
#ifndef PEER_RUN_LOG_COLUMNS_H
#define PEER_RUN_LOG_COLUMNS_H

#include "nn/data/schema.h"
#include "nn/files/safetensors.h"

enum { DIARY_COLUMNS_MAX = 1 << 19 /* Longest array that is written, in bytes. */ };

/* Returns the column names of the schema `s` as a JSON array, which the caller frees. NULL: no
 * names are known, the array would be longer than DIARY_COLUMNS_MAX, or memory is short. `*label`
 * becomes the name of the label column, borrowed from `s`; NULL: not known. `s` may be NULL. */
char *diary_columns_text(const struct schema *s, const char **label);

/* Reads the column names from the metadata of a model file into `*s`. `*s` is set to zeros if the
 * file has no names. Returns 0; -EINVAL if the metadata is not an array of distinct names; or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int diary_columns_read(const struct safetensors_info *info,
                                                           struct schema *s);

#endif
