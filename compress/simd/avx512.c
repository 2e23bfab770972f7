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

/* ISO C requires a declaration in every file. On CPUs other than x86-64 it is this one. */
extern int simd_avx512_none;

#endif
