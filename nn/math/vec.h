/* nn/math/vec.h -- kernels over one flat vector of floats, and how it is cut.
 *
 * A model is one flat vector x in R^d. A table of segments names its parts:
 *
 *   x:  [ conv1.weight | conv1.bias | fc1.weight | ... ]
 *         ^offset, n     rows x cols as a matrix, n = rows * cols
 *
 * Segments that are not trained come last, so that the trained parameters are
 * a prefix of x: what is compressed, and what the consensus distance is of.
 *
 * Sums run in double, in a fixed order (eight interleaved lanes, then the
 * lanes pairwise), so that every build gives the same bits on every machine.
 */
#ifndef NN_MATH_VEC_H
#define NN_MATH_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hot loops carry this: one clone per instruction set, chosen at run time.
 * Without fused multiply-add and reassociation all clones give equal bits.
 * Sanitizers cannot run ifunc resolvers early, and older clangs (14) name the
 * ifunc so that no other file can call it: there it is empty. A test pins one
 * level, to compare it with the others: 0, 2 for AVX2, 512 for AVX-512. */
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
    SEGMENT_NAME_MAX = 96, /* Bytes, with the final NUL. */
    SEGMENT_DIMS_MAX = 8
};

/* Type in which the owner of a model holds a segment. The flat vector itself is always float32. */
enum segment_type {
    SEGMENT_FLOAT32,
    SEGMENT_FLOAT16,
    SEGMENT_BFLOAT16,
    /* Values that are not numbers of the model, such as an index or a mask of the program. They
     * are not written to model files. These are the last segments of x. */
    SEGMENT_OPAQUE
};

/* One named part of the flat vector, usually one tensor of one layer. */
struct segment
{
    char name[SEGMENT_NAME_MAX];             /* PyTorch's: "conv1.weight". */
    size_t offset, n;                        /* In floats. Segments tile the vector. */
    size_t rows, cols;                       /* Size as a matrix; rows * cols == n. */
    uint32_t n_dims, dims[SEGMENT_DIMS_MAX]; /* Shape as a tensor, for safetensors. */
    bool decays;                             /* Weight decay applies (weights, not biases). */
    bool trained;                            /* False: running statistics, averaged only. */
    bool nonnegative;                        /* A statistic that is never below 0: a variance. */
    enum segment_type type; /* Type of the segment in the owner's copy (nn/math/half.h). */
};

/* Floats of the trained segments, which are the first ones. */
size_t segments_trained(const struct segment *s, size_t n);

/* <a, b>, |a|^2 and |a - b|^2, each in double. */
double vec_dot(const float *a, const float *b, size_t n);
double vec_norm2(const float *a, size_t n);
double vec_dist2(const float *a, const float *b, size_t n);

/* y += s * x, as two roundings per element. */
void vec_axpy(float *y, float s, const float *x, size_t n);

/* y += s * (b - a): one term of a mixing step. */
void vec_add_diff(float *y, float s, const float *b, const float *a, size_t n);
/* v = m v + s (b - a), then y += v: a step with momentum. */
void vec_add_heavy(float *y, float *v, float m, float s, const float *b, const float *a, size_t n);

/* True iff no element is NaN or infinite. */
bool vec_finite(const float *a, size_t n);

/* 64-bit hash of the bits of a; -0 and +0 differ. */
uint64_t vec_hash(const float *a, size_t n);

#endif
