/* compress/coin.h -- uniform numbers for the elements of a block, addressed by
 * index, so that chunks, clones and threads make no difference. */
#ifndef COMPRESS_COIN_H
#define COMPRESS_COIN_H

#include <stddef.h>
#include <stdint.h>

/* u[i] is number first + i of the stream: uniform in [0, 1), 24 bits, each of
 * them half a word of nn/rng. first is even, and u has room for an even count. */
void coin_units(float *u, uint64_t key, size_t first, size_t n);

#endif
