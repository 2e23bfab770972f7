/* nn/math/tile.c -- the kernels of tile_simd.inc, compiled once for each vector width of this
 * target. Each call uses the kernels with the widest vectors that this CPU supports. */
#include "nn/math/tile.h"

#include "nn/math/simd.h"

enum { SLIM_K = 16, SLIM_ROWS = 8 };

/* Input matrices a and b, bias, and output c of one tile of a matrix product. */
struct tile_at
{
    const float *a, *b, *bias;
    float *c;
    /* Number of columns of the tile. If a row of the tile is a single vector, the tile may have
     * fewer columns than the vector has lanes. */
    size_t part;
    size_t runs;
};

#ifdef SIMD_HAS_16
#define SIMD_LANES  16
#define TILE_ROWS_1 16
#define TILE_ROWS_2 12
#include "nn/math/tile_simd.inc"
#endif

#ifdef SIMD_HAS_8
#define SIMD_LANES  8
#define TILE_ROWS_1 12
#define TILE_ROWS_2 6
#include "nn/math/tile_simd.inc"
#endif

#define SIMD_LANES  4
#define TILE_ROWS_1 12
#define TILE_ROWS_2 6
#include "nn/math/tile_simd.inc"

const struct tile_kernels *const tile_all[] = {
#ifdef SIMD_HAS_16
    &tile_kernels_16,
#endif
#ifdef SIMD_HAS_8
    &tile_kernels_8,
#endif
    &tile_kernels_4, NULL};

/* Returns the first entry of tile_all[] whose vector width this CPU supports. The last entry runs
 * on every CPU. */
static const struct tile_kernels *choose(void)
{
    const struct tile_kernels *const *kernels = tile_all;
    while (!(*kernels)->runs_here())
        kernels++;
    return *kernels;
}

void tile_product(const struct tile_product *t)
{
    choose()->product(t);
}

size_t tile_lanes(void)
{
    return choose()->lanes;
}

/* Computes the product with plain loops. The tests compare all kernels with this function. */
void tile_product_ref(const struct tile_product *t)
{
    size_t runs = t->runs == 0 ? 1 : t->runs;
    for (size_t i = 0; i < t->m; i++)
        for (size_t j = 0; j < t->n; j++) {
            double sum = t->add ? (double)t->c[i * t->ldc + j] : 0;
            if (t->bias != NULL)
                sum += (double)t->bias[j];
            for (size_t k = 0; k < runs * t->k; k++) {
                float a = t->a[i * t->a_row + k / t->k * t->a_run + k % t->k * t->a_col];
                sum += (double)a * (double)t->b[k * t->ldb + j];
            }
            t->c[i * t->ldc + j] = t->relu && sum < 0 ? 0 : (float)sum;
        }
}
