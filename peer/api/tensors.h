/* peer/api/tensors.h -- table of the caller's tensors, and copies between the tensors and one flat
 * vector x.
 *
 *   tensors_add()  -->  tensors_lay()   segments in the order of x: trained tensors first
 *                           |
 *        gather: tensors -> x        scatter: x -> tensors
 *
 * If all tensors are float32 and contiguous in the order of x, then x is the caller's memory
 * itself, and gather and scatter do nothing. Otherwise x is a copy. A tensor of 16-bit elements is
 * the rounded copy of its section of x (nn/math/half.h). Gather adds the caller's changes of such a
 * tensor to x instead of overwriting x. Small corrections by mixing, which rounding to 16 bits
 * would lose, therefore stay in x. Each segment records the number format of its tensor. Figures
 * such as the consensus distance are computed from x rounded to that format, so they describe the
 * values that the caller has.
 */
#ifndef PEER_API_TENSORS_H
#define PEER_API_TENSORS_H

#include "nn/math/vec.h"
#include "peer/api/hearsay.h"

/* TENSORS_MAX: largest number of tensors. TENSORS_ERROR_MAX: size of an error message in bytes,
 * with the NUL. */
enum { TENSORS_MAX = 65536, TENSORS_ERROR_MAX = 384 };

/* One tensor of the caller. */
struct tensor
{
    char name[HEARSAY_NAME_MAX + 1];
    void *data; /* Elements of the tensor, in the caller's memory. */
    enum hearsay_type type;
    enum hearsay_role role;
    uint32_t n_dims, dims[HEARSAY_DIMS_MAX];
    size_t n;      /* Number of elements of the tensor. */
    size_t offset; /* Offset in the flat vector x, in floats. Set by tensors_lay(). */
};

/* All tensors of a handle. All zeros: no tensors. */
struct tensors
{
    /* Tensors in the order in which they were added. */
    struct tensor *tensor;
    size_t n, cap;
    /* Segments of the `n` tensors in the order of the flat vector x. NULL before tensors_lay(). */
    struct segment *segment;
    /* n_floats: length of the flat vector x. dim: length of the trained part of x. */
    size_t n_floats, dim;
    /* Start of the caller's tensors, if their memory is used as the vector x. NULL: x is a copy. */
    float *flat;
    /* Bytes copied between the tensors and the flat vector so far. */
    uint64_t bytes_copied;
};

/* Frees the table and makes it empty. The caller's memory is not touched. */
void tensors_close(struct tensors *t);

/* Adds a tensor to the table, as hearsay_tensor() describes. Returns 0; -EINVAL with a message; or
 * -ENOMEM. On failure the table is unchanged. */
int tensors_add(struct tensors *t, const struct tensor *one, char error[TENSORS_ERROR_MAX]);

/* Determines the order of the tensors in the flat vector x: trained tensors, then statistics, then
 * opaque tensors. Within each of these groups, tensors have the order of tensors_add(). Returns 0;
 * -EINVAL with a message if no tensor is trained or two tensors overlap; or -ENOMEM. */
int tensors_lay(struct tensors *t, char error[TENSORS_ERROR_MAX]);

/* Gives the flat vector x the order of the `n` segments `s` of a model. The tensors must have
 * exactly the names and shapes of these segments. Returns 0; -EINVAL with a message; or -ENOMEM. */
int tensors_lay_as(struct tensors *t, const struct segment *s, size_t n,
                   char error[TENSORS_ERROR_MAX]);

/* Returns a 64-bit hash of the names, shapes, types and roles of all tensors. All peers of one run
 * have the same hash. */
uint64_t tensors_layout(const struct tensors *t);

/* Writes the outline: a short hash of each of the first TENSORS_OUTLINED tensors, with two
 * hexadecimal digits per tensor. The first difference between two outlines shows the first tensor
 * that differs. A hash of 8 bits misses 1 of 256 differences; a later tensor is then found
 * instead. */
enum { TENSORS_OUTLINED = 96, TENSORS_OUTLINE = 2 * TENSORS_OUTLINED + 1 };
void tensors_outline(const struct tensors *t, char out[TENSORS_OUTLINE]);

/* Describes tensor number `i` in the order of the flat vector x, for example "fc.weight (float32 of
 * 10x84, trained)". */
void tensors_describe(const struct tensors *t, size_t i, char out[TENSORS_ERROR_MAX]);

/* Guesses which tensor the run has in place of this peer's tensor number `i`. `digits`: two-digit
 * hash of the run's tensor. Tries at most 6 variants of this peer's tensor: another type, another
 * role, dimensions in reverse order. If exactly one variant has the hash `digits`, describes it in
 * `out`, for example "float32 of 10x84, trained", and returns true. If the run's tensor is none of
 * the variants, a false guess has a probability of at most 1 in 40. */
bool tensors_guess(const struct tensors *t, size_t i, const char *digits,
                   char out[TENSORS_ERROR_MAX]);

/* Sets *i to the number of the first tensor in which `a` and `b` differ. tensors_lay() or
 * tensors_lay_as() must have been called on both. If the shorter table agrees with the beginning of
 * the longer one, *i is the number of tensors of the shorter table. Returns false if all tensors
 * agree. */
bool tensors_first_difference(const struct tensors *a, const struct tensors *b, size_t *i);

/* Returns the first tensor with a value that is not finite. NULL: all values are finite.
 * O(n_floats). */
const struct tensor *tensors_first_not_finite(const struct tensors *t);

/* Functions that copy between the tensors and x[0..n_floats). tensors_read() sets x from the
 * tensors. tensors_scatter() sets the tensors from x. tensors_gather() adds to x what the caller
 * has changed in the tensors since tensors_scatter(). */
void tensors_read(struct tensors *t, float *x);
void tensors_gather(struct tensors *t, float *x);
void tensors_scatter(struct tensors *t, const float *x);

#endif
