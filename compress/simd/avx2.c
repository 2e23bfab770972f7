/* compress/simd/avx2.c -- the table of all AVX2 kernels. */
#include "compress/simd/avx2.h"

#if SIMD_X86

const struct simd_table simd_avx2 = {
    .name = "avx2",
    .load = &simd_avx2_load,
    .cast = &simd_avx2_cast,
    .levels = &simd_avx2_levels,
    .scan = &simd_avx2_scan,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx2_none;

#endif
