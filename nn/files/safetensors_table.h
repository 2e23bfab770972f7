/* nn/files/safetensors_table.h -- a table of named sections (nn/math/state.h) as the header of a
 * safetensors file, and back.
 *
 *   sections   "edge.0" 45 bytes, "edge.0.b" 5 floats
 *   header     {"__metadata__": {...},
 *               "edge.0":   {"dtype": "U8",  "shape": [45], "data_offsets": [0, 45]},
 *               "edge.0.b": {"dtype": "F32", "shape": [5],  "data_offsets": [45, 65]}}
 *
 * The data of the file are the bytes of the sections, one after the other and without gaps. The
 * functions here do not use the data. Parsing does not trust the bytes of the header and never
 * reads beyond the end of the file.
 */
#ifndef NN_FILES_SAFETENSORS_TABLE_H
#define NN_FILES_SAFETENSORS_TABLE_H

#include "nn/files/safetensors_header.h"
#include "nn/math/state.h"

enum {
    SAFETENSORS_TABLE_MAX = STATE_SECTIONS_MAX + 1, /* Largest number of sections of a file. */
    /* Largest size of the JSON header that lists the sections, in bytes. */
    SAFETENSORS_TABLE_HEADER_MAX = 2 << 20
};

/* Writes everything that precedes the data in a file whose data are the bytes of the sections, in
 * order. `at` of the sections is ignored. The caller frees `head`. Returns 0; -ENOMEM; or -EINVAL
 * if a name is empty, repeated or not UTF-8, if there are too many sections, or if the size of a
 * section of floats is not a multiple of 4 bytes. */
__attribute__((warn_unused_result)) int safetensors_table_head(
    const struct state_section *s, size_t n, const struct safetensors_meta *meta,
    struct safetensors_text *head, const char *path, char error[FILE_ERROR_MAX]);

/* Contents of a file's header. */
struct safetensors_table
{
    /* Sections in the order of the file. `at` is the offset from the start of the data. */
    struct state_section *section;
    size_t n;
    size_t n_head; /* Offset in the file at which the data begin. */
    struct safetensors_meta *meta;
    size_t n_meta;
};

/* Parses the header from the bytes of a file. Returns 0, -EINVAL or -ENOMEM. After an error *t is
 * empty. The memory is proportional to the size of the header. */
__attribute__((warn_unused_result)) int safetensors_table_read(struct safetensors_table *t,
                                                               const uint8_t *bytes, size_t n,
                                                               const char *path,
                                                               char error[FILE_ERROR_MAX]);
void safetensors_table_close(struct safetensors_table *t);

#endif
