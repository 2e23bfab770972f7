/* nn/files/safetensors.h -- reads and writes a model as a safetensors file, as Python does.
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
 * types, names, shapes against the segment table, offsets that tile the data exactly, finite
 * values. F16, BF16 and F64 are converted to float32, other dtypes are refused by name. Each error
 * message begins with the path.
 *
 * A state_dict of PyTorch has counters of batch norms ("num_batches_tracked", one int64), which are
 * skipped.
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

/* Writes x, divided into the n segments s[] with their dims, and metadata pairs up to the one
 * whose key is NULL (meta may be NULL). Returns 0; -EINVAL for metadata that are not UTF-8 or
 * too long; or another negative errno. After any result, `path` is the complete old file or the
 * complete new one. */
__attribute__((warn_unused_result)) int safetensors_write(const char *path, const float *x,
                                                          const struct segment *s, size_t n,
                                                          const struct safetensors_meta *meta,
                                                          char error[FILE_ERROR_MAX]);

/* Read a file that has exactly the tensors of s[], in any order, into x. 0,
 * -EINVAL (what the file says) or a negative errno: then x is as it was. */
__attribute__((warn_unused_result)) int safetensors_read(const char *path, const struct segment *s,
                                                         size_t n, float *x,
                                                         char error[FILE_ERROR_MAX]);

/* Contents of a model file that can be read without knowing the model. */
struct safetensors_info
{
    size_t n_meta, n_tensors;      /* Numbers of metadata pairs and of tensors without counters. */
    uint64_t n_floats;             /* Elements of all tensors, without counters. */
    struct safetensors_meta *meta; /* n_meta pairs, owned by the struct. */
};

/* Check a file's layout and read its metadata. 0, -EINVAL or a negative errno:
 * then *info is empty. */
__attribute__((warn_unused_result)) int safetensors_info(const char *path,
                                                         struct safetensors_info *info,
                                                         char error[FILE_ERROR_MAX]);

/* Reads a file tensor by tensor, in the order of the data. take() gets the values of each tensor in
 * pieces of bounded size, with at least one piece for each tensor. NaN is passed on. A tensor that
 * is not F32, F16, BF16 or F64 gives one piece with x == NULL and n == 0. Tensor and values are
 * borrowed for the call. Returns 0, -EINVAL or another negative errno; after an error, take() may
 * have been called for some pieces. */
struct safetensors_walker
{
    void (*take)(void *self, const struct safetensors_tensor *t, const double *x, size_t n);
    void *self;
};
__attribute__((warn_unused_result)) int safetensors_walk(const char *path,
                                                         const struct safetensors_walker *w,
                                                         char error[FILE_ERROR_MAX]);

/* Returns the value of a key. NULL: there is none. */
const char *safetensors_value(const struct safetensors_info *info, const char *key);
void safetensors_info_close(struct safetensors_info *info);

#endif
