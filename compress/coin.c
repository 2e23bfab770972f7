#include "compress/coin.h"

#include "compress/simd.h"

void coin_units(float *u, uint64_t key, size_t first, size_t n)
{
    simd_coin(u, key, first, n);
}
