/* nn/math/vec.h -- kernels over one flat vector of floats, and the segments of the vector.
 *
 * A model is one flat vector x in R^d. A table of segments names its parts:
 *
 *   x:  [ conv1.weight | conv1.bias | fc1.weight | ... ]
 *         ^offset, n     rows x cols as a matrix, n = rows * cols
 *
 * Segments that are not trained come last, so that the trained parameters are a prefix of x. Only
 * this prefix is compressed and counted in the consensus distance.
 *
 * Sums are in double, in a fixed order: eight interleaved lanes, which are then added pairwise.
 * Therefore every build gives the same bits on every machine.
 */
#ifndef NN_MATH_VEC_H
#define NN_MATH_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Attribute of functions with hot loops. The compiler makes one clone per instruction set, and one
 * is chosen at run time. All clones give equal bits, because the build allows neither fused
 * multiply-add nor reassociation. The attribute is empty in two cases: for sanitizers, because
 * their code cannot run as early as the ifunc resolvers do, and for clang, because other files
 * cannot call an ifunc that clang 14 has compiled. Tests set HEARSAY_LEVEL to compare the levels: 0
 * baseline, 2 AVX2, 512 AVX-512. */
#if defined(HEARSAY_LEVEL) && defined(__x86_64__)
#if HEARSAY_LEVEL == 512
#define VEC_CLONES __attribute__((target("arch=x86-64-v4")))
#elif HEARSAY_LEVEL == 2
#define VEC_CLONES __attribute__((target("avx2")))
#else
#define VEC_CLONES
#endif
#elif defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)                         \
    && !defined(HEARSAY_SANITIZED)
#define VEC_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define VEC_CLONES
#endif

enum {
    SEGMENT_NAME_MAX = 96, /* Size of a segment's name in bytes, with the final NUL. */
    SEGMENT_DIMS_MAX = 8
};

/* Number format in which the program that owns the model holds a segment. The flat vector is always
 * float32. */
enum segment_type {
    SEGMENT_FLOAT32,
    SEGMENT_FLOAT16,
    SEGMENT_BFLOAT16,
    /* Values that are not numbers of the model, such as an index or a mask. They are not written to
     * model files, and are the last segments of x. */
    SEGMENT_OPAQUE
};

/* One named part of the flat vector, usually one tensor of one layer. */
struct segment
{
    char name[SEGMENT_NAME_MAX]; /* Name as in PyTorch, for example "conv1.weight". */
    /* Position and length in floats. The segments cover the vector without gaps. */
    size_t offset, n;
    size_t rows, cols; /* Shape as a matrix: rows * cols == n. */
    /* Shape as a tensor, as written to model files (safetensors). */
    uint32_t n_dims, dims[SEGMENT_DIMS_MAX];
    /* True: weight decay applies to the segment. True for weights, false for biases. */
    bool decays;
    /* False: the segment holds running statistics, which peers average but the optimiser does not
     * train. */
    bool trained;
    /* True: the segment holds a statistic that is never negative, such as a variance. */
    bool nonnegative;
    /* Number format of the segment in the program that owns the model (nn/math/half.h). */
    enum segment_type type;
};

/* Returns the number of floats of the trained segments. They come first in the flat vector. */
size_t segments_trained(const struct segment *s, size_t n);

/* Return the inner product <a, b>, the squared norm |a|^2 and the squared distance |a - b|^2, in
 * double. */
double vec_dot(const float *a, const float *b, size_t n);
double vec_norm2(const float *a, size_t n);
double vec_dist2(const float *a, const float *b, size_t n);

/* Computes y += s * x. The product and the sum are rounded separately. */
void vec_axpy(float *y, float s, const float *x, size_t n);

/* Computes y += s * (b - a), one term of the sum in a mixing step. */
void vec_add_diff(float *y, float s, const float *b, const float *a, size_t n);
/* Computes v = m v + s (b - a), then y += v: a mixing step with momentum. */
void vec_add_heavy(float *y, float *v, float m, float s, const float *b, const float *a, size_t n);

/* Returns true if no element of a[0..n) is NaN or infinite. */
bool vec_finite(const float *a, size_t n);

/* Returns a 64-bit hash of the bits of a[0..n). 0 and -0 have different bits. */
uint64_t vec_hash(const float *a, size_t n);

#endif
