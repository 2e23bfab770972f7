/* nn/layers/winograd_transform.c -- the transforms of winograd_simd.inc, compiled once for each
 * vector width of this target. winograd_kernels() returns the transforms with the widest vectors
 * that this CPU supports. */
#include "nn/layers/winograd_transform.h"

#include "nn/math/simd.h"

#ifdef SIMD_HAS_16
#define SIMD_LANES 16
#include "nn/layers/winograd_simd.inc"
#endif

#ifdef SIMD_HAS_8
#define SIMD_LANES 8
#include "nn/layers/winograd_simd.inc"
#endif

#define SIMD_LANES 4
#include "nn/layers/winograd_simd.inc"

const struct winograd_kernels *const winograd_all[] = {
#ifdef SIMD_HAS_16
    &winograd_kernels_16,
#endif
#ifdef SIMD_HAS_8
    &winograd_kernels_8,
#endif
    &winograd_kernels_4, NULL};

const struct winograd_kernels *winograd_kernels(void)
{
    const struct winograd_kernels *const *kernels = winograd_all;
    while (!(*kernels)->runs_here())
        kernels++;
    return *kernels;
}
