/* compress/simd/avx512.c -- the table of all AVX-512 kernels. */
#include "compress/simd/avx512.h"

#if SIMD_X86

const struct simd_table simd_avx512 = {
    .name = "avx512",
    .load = &simd_avx512_load,
    .cast = &simd_avx512_cast,
    .levels = &simd_avx512_levels,
    .scan = &simd_avx512_scan,
};

#else

/* On other CPUs than x86-64 this file has no code, but ISO C requires a declaration in every
 * file. */
extern int simd_avx512_none;

#endif
