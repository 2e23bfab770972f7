/* nn/files/safetensors_header.h -- writes, parses and checks the header of a safetensors file.
 *
 *   N (8 bytes, little-endian) | header (N bytes of JSON, spaces at its end) | data
 *
 * Shared by model files (safetensors.h) and tables of sections (safetensors_table.h). After a
 * header has been accepted, its tensors cover the data exactly: none overlaps another, no byte is
 * left over, and every name is unique.
 */
#ifndef NN_FILES_SAFETENSORS_HEADER_H
#define NN_FILES_SAFETENSORS_HEADER_H

#include "nn/files/file.h"

enum {
    /* Size in bytes of the first field of a file, which gives the length of the header. */
    SAFETENSORS_LENGTH = 8,
    /* Size in bytes of the counter of batches that PyTorch stores with a batch norm. */
    SAFETENSORS_COUNTER = 8,
    SAFETENSORS_DIMS_MAX = 8,   /* Largest number of dimensions of a tensor in a file. */
    SAFETENSORS_META_MAX = 64,  /* Largest number of metadata pairs. */
    SAFETENSORS_HEADER_MIN = 2, /* Size in bytes of the shortest header: "{}". */
    /* The length of a header is a multiple of this number of bytes. Spaces pad it. */
    SAFETENSORS_ALIGN = 8
};

struct json_t; /* JSON value of the library jansson. */

/* One metadata pair. Key and value are UTF-8. */
struct safetensors_meta
{
    const char *key, *value;
};

/* Type of a tensor's elements. */
enum safetensors_dtype {
    SAFETENSORS_F32,
    SAFETENSORS_F16, /* F16, BF16 and F64 are converted to float32. */
    SAFETENSORS_BF16,
    SAFETENSORS_F64,
    SAFETENSORS_U8,
    SAFETENSORS_OTHER, /* Any other dtype. Its name is shown, its values are not read. */
    SAFETENSORS_COUNT  /* A counter of PyTorch's batch norms: one int64, which is skipped. */
};

/* One tensor as the header describes it. */
struct safetensors_tensor
{
    const char *name; /* Name of the tensor, borrowed from the JSON. */
    /* Position in the data: the tensor's first byte, and the byte after its last one. */
    uint64_t begin, end;
    uint32_t n_dims;
    uint64_t dims[SAFETENSORS_DIMS_MAX];
    enum safetensors_dtype dtype;
    /* Number of elements, from the shape. Set when a header is read. Not used when a header is
     * written. */
    uint64_t n;
    /* Name of the dtype, such as "F32", borrowed from the JSON. Set when a header is read. Not used
     * when a header is written. */
    const char *dtype_name;
};

/* Rules for the content of a header. Model files and checkpoints have different rules. */
struct safetensors_rules
{
    /* True: only the dtypes F32 and U8 are accepted. False: every dtype is accepted. */
    bool bytes;
    size_t tensors_max; /* Largest number of tensors. The metadata count as one tensor. */
    size_t header_max;  /* Largest size of a header, in bytes of JSON. */
};

/* JSON text of a header, as it is written to a file. */
struct safetensors_text
{
    char *text; /* The bytes of the JSON text, without a NUL at the end. */
    size_t n;
};

/* A header that has been checked: its tensors cover the data of the file without gaps and
 * overlaps. */
struct safetensors_header
{
    struct json_t *root;
    /* The tensors, sorted by `begin`, and for equal `begin` by `end`. */
    struct safetensors_tensor *tensors;
    size_t n, n_counters;
    /* Number of elements of all tensors together, without the counters of batch norms. */
    uint64_t n_elements;
    uint64_t n_bytes; /* Number of bytes of data after the header. */
};

/* ---- Reading a header ---- */

/* Gets the length of the header from the first bytes of a file of n_file bytes. b[] has the length
 * field and the first byte of the JSON. Returns 0, or -EINVAL with a message if the file cannot
 * have a header of this length. */
__attribute__((warn_unused_result)) int safetensors_header_length(
    const uint8_t b[SAFETENSORS_LENGTH + 1], uint64_t n_file, const struct safetensors_rules *rules,
    uint64_t *n, const char *path, char error[FILE_ERROR_MAX]);

/* Parses and checks the text of a header, which begins with '{' and is followed by n_data bytes of
 * data. Returns 0, -EINVAL or -ENOMEM. After an error *h is empty. */
__attribute__((warn_unused_result)) int safetensors_header_read(
    struct safetensors_header *h, const struct safetensors_rules *rules,
    const struct safetensors_text *text, uint64_t n_data, const char *path,
    char error[FILE_ERROR_MAX]);
void safetensors_header_close(struct safetensors_header *h);

/* Copies the metadata. The caller frees them with safetensors_meta_close(). Returns 0, or -ENOMEM
 * and *n is 0. */
__attribute__((warn_unused_result)) int safetensors_header_meta(const struct safetensors_header *h,
                                                                struct safetensors_meta **meta,
                                                                size_t *n, const char *path,
                                                                char error[FILE_ERROR_MAX]);
/* Returns the value of a metadata key. NULL: the key is missing. */
const char *safetensors_meta_value(const struct safetensors_meta *meta, size_t n, const char *key);
void safetensors_meta_close(struct safetensors_meta *meta, size_t n);

/* ---- Writing a header ---- */

/* Adds the metadata pairs to the JSON. `meta`: pairs, ended by a pair with key NULL; may be NULL.
 * Returns 0; -EINVAL if the pairs are not UTF-8 or too many; or -ENOMEM. */
__attribute__((warn_unused_result)) int safetensors_header_put_meta(
    struct json_t *root, const struct safetensors_meta *meta, const char *path,
    char error[FILE_ERROR_MAX]);

/* Adds the description of one tensor to the JSON. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int safetensors_header_put(
    struct json_t *root, const struct safetensors_tensor *tensor, const char *path,
    char error[FILE_ERROR_MAX]);

/* Writes the first bytes of a file: length, JSON, and spaces up to a multiple of SAFETENSORS_ALIGN.
 * The caller frees text->text. Returns 0; -EINVAL if the JSON is longer than header_max; or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int safetensors_header_text(const struct json_t *root,
                                                                size_t header_max,
                                                                struct safetensors_text *text,
                                                                const char *path,
                                                                char error[FILE_ERROR_MAX]);

#endif
