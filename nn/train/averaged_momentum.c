/* nn/train/averaged_momentum.c -- the kind of momentum that peers exchange and mix. */
#include "nn/train/averaged_momentum.h"

#include "nn/math/vec.h"

#include <assert.h>
#include <math.h>

const struct momentum_kind momentum_averaged = {
    .name = "averaged", .use = MOMENTUM_MIXED, .most = 1, .adam = true, .exchanged = true};

bool averaged_momentum_is_bounded(double beta1, double beta2)
{
    return beta1 * beta1 < beta2;
}

double averaged_momentum_bound(const struct optimiser *o)
{
    double beta1 = o->momentum, beta2 = o->beta2;
    assert(averaged_momentum_is_bounded(beta1, beta2));
    return (1 - beta1) / sqrt((1 - beta2) * (1 - beta1 * beta1 / beta2));
}

/* Each comparison is false for NaN. The square of `most` and its sums must fit in a float. */
VEC_CLONES static void admit(float *restrict m, float *restrict root, float share, size_t n)
{
    const float most = 1e15f;
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(m[i]);
        size = size <= most ? size : 0;
        m[i] = size > 0 ? m[i] : 0;
        float least = share * size, r = root[i] < most ? root[i] : most;
        root[i] = r > least ? r : least;
    }
}

void averaged_momentum_admit(const struct optimiser *o, float *m, float *root, size_t n)
{
    admit(m, root, (float)(1 / averaged_momentum_bound(o)), n);
}
