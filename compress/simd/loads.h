/* compress/simd/loads.h -- the block loops of simd_load_blocks() and simd_load_signs().
 *
 * avx2_load.c and avx512_load.c include this file. Each of them first defines what differs for its
 * instruction set: STEP, struct loaded, struct loading, load_block() and sums_of().
 */
#ifndef COMPRESS_SIMD_LOADS_H
#define COMPRESS_SIMD_LOADS_H

/* Loads all blocks first, and then adds up the lanes (partial sums) of each block. Adding up lanes
 * is a chain of dependent instructions. If the chains of several blocks follow each other, the CPU
 * executes them in parallel. */
STEP void load_all(struct simd_sums *sums, float *v, const struct simd_source *s, unsigned how)
{
    struct loaded to = {v, NULL};
    struct loading l[SIMD_BLOCKS_MAX];
    size_t count = 0;
    for (size_t at = 0; at < s->n; at += s->block) {
        size_t n = s->n - at < s->block ? s->n - at : s->block;
        l[count++] = load_block(&to, at, s->x, s->x_hat, n, how);
    }
    for (size_t b = 0; b < count; b++)
        sums[b] = sums_of(&l[b]);
}

/* Calls load_all() with a constant `how`, the flags of simd_load(). The compiler makes one loop for
 * each combination of flags, so `how` is not tested in every step. */
STEP void loads(struct simd_sums *sums, float *v, const struct simd_source *s)
{
    switch (s->how) {
    case 0:
        load_all(sums, v, s, 0);
        break;
    case SIMD_L1:
        load_all(sums, v, s, SIMD_L1);
        break;
    case SIMD_AHEAD:
        load_all(sums, v, s, SIMD_AHEAD);
        break;
    default:
        load_all(sums, v, s, SIMD_L1 | SIMD_AHEAD);
        break;
    }
}

/* Loads one block and stores the signs of its differences instead of the differences. The sum of
 * |v|, l1, is always computed. */
STEP struct simd_sums loads_signs(uint8_t *dst, const float *x, const float *x_hat, size_t n,
                                  unsigned how)
{
    struct loaded to = {NULL, dst};
    struct loading l;
    if (how & SIMD_AHEAD)
        l = load_block(&to, 0, x, x_hat, n, SIMD_L1 | SIMD_AHEAD);
    else
        l = load_block(&to, 0, x, x_hat, n, SIMD_L1);
    return sums_of(&l);
}

#endif
