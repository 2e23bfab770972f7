/* peer/api/tensors.h -- the caller's tensors: their names and shapes, and the way to one flat
 * vector and back.
 *
 *   add, add, ...  -->  lay   segments in the order of the flat vector x: trained ones first
 *                         |
 *        gather: tensors -> x        scatter: x -> tensors
 *
 * If all tensors are float32 and contiguous in the order of x, then x is the caller's memory
 * itself, and gather and scatter do nothing. A tensor of 16 bits is the rounded image of its part
 * of x (nn/math/half.h). Gather adds the caller's changes to x, so that the digits that mixing
 * added below the precision of 16 bits are kept. Segments have the types of the tensors, so figures
 * describe the rounded images.
 */
#ifndef PEER_API_TENSORS_H
#define PEER_API_TENSORS_H

#include "nn/math/vec.h"
#include "peer/api/hearsay.h"

enum { TENSORS_MAX = 65536, TENSORS_ERROR_MAX = 384 };

struct tensor
{
    char name[HEARSAY_NAME_MAX + 1];
    void *data; /* The caller's. */
    enum hearsay_type type;
    enum hearsay_role role;
    uint32_t n_dims, dims[HEARSAY_DIMS_MAX];
    size_t n;      /* Elements. */
    size_t offset; /* In x, once laid. */
};

struct tensors
{
    struct tensor *tensor;
    size_t n, cap;
    struct segment *segment; /* Once laid: n of them, in x's order. */
    size_t n_floats, dim;    /* All of x, and its trained part. */
    float *flat;             /* x in the caller's memory, or NULL. */
    uint64_t bytes_copied;   /* By gather and scatter. */
};

/* Zeros are an empty table. */
void tensors_close(struct tensors *t);

/* As hearsay_tensor(): 0, -EINVAL with a sentence, or -ENOMEM; then nothing is changed. */
int tensors_add(struct tensors *t, const struct tensor *one, char error[TENSORS_ERROR_MAX]);

/* Fixes the order of x: trained tensors, then statistics, then opaque ones; within each group in
 * the order of tensors_add(). Returns 0; -EINVAL: no tensor is trained; or -ENOMEM. */
int tensors_lay(struct tensors *t, char error[TENSORS_ERROR_MAX]);

/* Fix the order of another table of segments, which have to be just these tensors. */
int tensors_lay_as(struct tensors *t, const struct segment *s, size_t n,
                   char error[TENSORS_ERROR_MAX]);

/* Names, shapes, types and roles of all in 64 bits: equal for peers that can be in one run. */
uint64_t tensors_layout(const struct tensors *t);

/* The same of each of the first TENSORS_OUTLINED by itself, in two hexadecimal digits: which one differs is
 * found by that, one in 256 times a later one. */
enum { TENSORS_OUTLINED = 96, TENSORS_OUTLINE = 2 * TENSORS_OUTLINED + 1 };
void tensors_outline(const struct tensors *t, char out[TENSORS_OUTLINE]);

/* "fc.weight (float32 of 10x84, trained)": the i-th one of x. */
void tensors_describe(const struct tensors *t, size_t i, char out[TENSORS_ERROR_MAX]);

/* The first tensor with a value that is not finite, or NULL. O(n_floats). */
const struct tensor *tensors_bad(const struct tensors *t);

/* x[0..n_floats) as the tensors have it, from nothing (read), or from what scatter left (gather). */
void tensors_read(struct tensors *t, float *x);
void tensors_gather(struct tensors *t, float *x);
void tensors_scatter(struct tensors *t, const float *x);

#endif
