/* nn/math/simd.h -- vectors of floats for kernels that are compiled once per vector width.
 *
 * Such kernels are in a separate file (for example nn/math/tile_simd.inc), which includes this
 * header. A .c file includes the kernels several times, each time after one of these lines:
 *
 *   #define SIMD_LANES 16      512 bits: AVX-512, 32 registers
 *   #define SIMD_LANES 8       256 bits: AVX2 and FMA, 16 registers
 *   #define SIMD_LANES 4       128 bits: available on every CPU of the target
 *
 * This header then defines:
 *
 *   SIMD(name)     the name with the width at its end
 *   SIMD_FN        attribute of a function: compiled for CPUs with this width
 *   SIMD_INLINE    attribute of a helper function: same CPUs, always inlined
 *   SIMD(vec)      vector of floats; its + - * work lane by lane (gcc, clang)
 *   SIMD(ivec)     vector of ints
 *
 * A .c file may use the widths 16 and 8 only if SIMD_HAS_16 and SIMD_HAS_8 are defined. Sanitized
 * builds define neither, so that the sanitizer checks every access.
 */
#ifndef NN_MATH_SIMD_H
#define NN_MATH_SIMD_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__) && !defined(HEARSAY_SANITIZED)
#include <immintrin.h>
#define SIMD_HAS_16    1
#define SIMD_HAS_8     1
#define SIMD_TARGET_16 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define SIMD_TARGET_8  __attribute__((target("avx2,fma")))

static inline bool simd_runs_16(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static inline bool simd_runs_8(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#define SIMD_TARGET_4

static inline bool simd_runs_4(void)
{
    return true;
}

#define SIMD_JOIN_(a, b) a##_##b
#define SIMD_JOIN(a, b)  SIMD_JOIN_(a, b)
#define SIMD(name)       SIMD_JOIN(name, SIMD_LANES)
#define SIMD_FN          SIMD_JOIN(SIMD_TARGET, SIMD_LANES)
#define SIMD_INLINE      SIMD_FN static inline __attribute__((always_inline))

/* Vector types that need only the alignment of a float, so a vector may start at any float in
 * memory. */
typedef float vec_16 __attribute__((vector_size(64), aligned(4), may_alias, unused));
typedef float vec_8 __attribute__((vector_size(32), aligned(4), may_alias, unused));
typedef float vec_4 __attribute__((vector_size(16), aligned(4), may_alias, unused));

/* Vectors of ints, for the bits of float vectors and for the results of comparisons. */
typedef int ivec_16 __attribute__((vector_size(64), unused));
typedef int ivec_8 __attribute__((vector_size(32), unused));
typedef int ivec_4 __attribute__((vector_size(16), unused));

#endif
