/* nn/files/safetensors.h -- reads and writes a model as a safetensors file, the format of the
 * Python package.
 *
 *   N (8 bytes, little-endian) | header (N bytes of JSON) | data
 *
 *   header  {"__metadata__": {"run": "..."},
 *            "conv1.weight": {"dtype": "F32", "shape": [6, 1, 5, 5],
 *                             "data_offsets": [0, 600]}, ...}
 *   data    float32, little-endian, tensor after tensor, no gaps
 *
 * Writing is atomic and durable: a temporary file in the same directory is synced and renamed, then
 * the directory is synced. Reading checks the whole file before anything changes: sizes, JSON
 * types, names, shapes against the segment table, offsets that cover the data without gaps, finite
 * values. F16, BF16 and F64 are converted to float32. For other dtypes the error message names the
 * dtype. Each error message begins with the path.
 *
 * A state_dict of PyTorch has counters of batch norms ("num_batches_tracked", one int64). Reading
 * skips them.
 */
#ifndef NN_FILES_SAFETENSORS_H
#define NN_FILES_SAFETENSORS_H

#include "nn/files/file.h"
#include "nn/files/safetensors_header.h"
#include "nn/math/vec.h"

enum {
    /* Largest header in bytes, as in the safetensors format. */
    SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000,
    SAFETENSORS_TENSORS_MAX = 1 << 20
};

/* Writes x, which consists of the n segments s[], with metadata. `meta`: pairs, ended by a pair
 * with key NULL; may be NULL. Returns 0; -EINVAL if the metadata are not UTF-8 or too long; or
 * another negative errno. After any result, `path` has either its complete old or its complete new
 * contents. */
__attribute__((warn_unused_result)) int safetensors_write(const char *path, const float *x,
                                                          const struct segment *s, size_t n,
                                                          const struct safetensors_meta *meta,
                                                          char error[FILE_ERROR_MAX]);

/* Reads a file that has exactly the tensors of s[], in any order, into x. Returns 0, -EINVAL if the
 * contents are wrong, or another negative errno. After an error x is unchanged. */
__attribute__((warn_unused_result)) int safetensors_read(const char *path, const struct segment *s,
                                                         size_t n, float *x,
                                                         char error[FILE_ERROR_MAX]);

/* Reads a file as safetensors_read() does, but this process may later overwrite the file
 * (nn/files/replace.h). Used for a model that an earlier process has stored and that this process
 * may replace. */
__attribute__((warn_unused_result)) int safetensors_read_no_input(const char *path,
                                                                  const struct segment *s, size_t n,
                                                                  float *x,
                                                                  char error[FILE_ERROR_MAX]);

/* Contents of a model file that can be read without knowing the model. */
struct safetensors_info
{
    /* n_meta: number of metadata pairs. n_tensors: number of tensors, without the counters of batch
     * norms. */
    size_t n_meta, n_tensors;
    /* Number of elements of all tensors together, without the counters of batch norms. */
    uint64_t n_floats;
    struct safetensors_meta *meta; /* The n_meta metadata pairs, owned by the struct. */
};

/* Checks a file's header and reads its metadata. Unlike safetensors_read(), lets the program
 * overwrite the file later (nn/files/replace.h). Returns 0, -EINVAL or another negative errno.
 * After an error *info is empty. */
__attribute__((warn_unused_result)) int safetensors_info(const char *path,
                                                         struct safetensors_info *info,
                                                         char error[FILE_ERROR_MAX]);

/* Reads a file tensor by tensor, in the order of the data. take() gets the values of each tensor in
 * pieces of bounded size, at least one piece per tensor. Values that are NaN are passed to take(),
 * too. A tensor that is not F32, F16, BF16 or F64 gives one piece with x NULL and n 0. `t` and `x`
 * are borrowed for the call. Returns 0, -EINVAL or another negative errno. If an error occurs,
 * take() may have been called for some pieces before. */
struct safetensors_walker
{
    void (*take)(void *self, const struct safetensors_tensor *t, const double *x, size_t n);
    void *self;
};
__attribute__((warn_unused_result)) int safetensors_walk(const char *path,
                                                         const struct safetensors_walker *w,
                                                         char error[FILE_ERROR_MAX]);

/* Returns the value of a metadata key. NULL: the file has no such key. */
const char *safetensors_value(const struct safetensors_info *info, const char *key);
void safetensors_info_close(struct safetensors_info *info);

#endif
