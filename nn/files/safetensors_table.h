/* nn/files/safetensors_table.h -- a table of sections as the header of a safetensors file, and back.
 *
 *   sections   "edge.0" 45 bytes, "edge.0.b" 5 floats
 *   header     {"__metadata__": {...},
 *               "edge.0":   {"dtype": "U8",  "shape": [45], "data_offsets": [0, 45]},
 *               "edge.0.b": {"dtype": "F32", "shape": [5],  "data_offsets": [45, 65]}}
 *
 * The sections' bytes are never looked at here: one behind the other, without gaps, they are
 * the data. Reading trusts nothing and looks at nothing behind the file's last byte.
 */
#ifndef NN_FILES_SAFETENSORS_TABLE_H
#define NN_FILES_SAFETENSORS_TABLE_H

#include "nn/files/safetensors_header.h"
#include "nn/math/state.h"

enum {
    SAFETENSORS_TABLE_MAX = STATE_SECTIONS_MAX + 1, /* Sections of a file. */
    SAFETENSORS_TABLE_HEADER_MAX = 2 << 20          /* Bytes of JSON. */
};

/* Writes the first bytes of a file whose data are the sections in order (`at` is ignored):
 * everything before the data. The caller frees `head`. Returns 0; -EINVAL for names that are
 * empty, repeated or not UTF-8, for too many names, or for sections that are not whole floats;
 * or -ENOMEM. */
__attribute__((warn_unused_result)) int safetensors_table_head(
    const struct state_section *s, size_t n, const struct safetensors_meta *meta,
    struct safetensors_text *head, const char *path, char error[FILE_ERROR_MAX]);

/* Contents of a file's header. */
struct safetensors_table
{
    struct state_section *section; /* In the order of the file; `at` counts from the data. */
    size_t n;
    size_t n_head; /* The data begin there. */
    struct safetensors_meta *meta;
    size_t n_meta;
};

/* Read it from a file's bytes. 0; -EINVAL; or -ENOMEM: then *t is empty. Takes memory for no
 * more than the header has. */
__attribute__((warn_unused_result)) int safetensors_table_read(struct safetensors_table *t,
                                                               const uint8_t *bytes, size_t n,
                                                               const char *path,
                                                               char error[FILE_ERROR_MAX]);
void safetensors_table_close(struct safetensors_table *t);

#endif
