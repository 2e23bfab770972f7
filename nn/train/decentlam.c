/* nn/train/decentlam.c -- adds momentum to the model after the exchange of a round. */
#include "nn/train/decentlam.h"

#include "nn/math/vec.h"

/* Sets `u = beta * u + from - x` and then `x = from - u`, where u is the momentum and beta its
 * factor. `from` is the model before the local steps of a round. On entry, x is the model after the
 * exchange. */
VEC_CLONES static void add_momentum(float *restrict u, const float *restrict from,
                                    float *restrict x, float beta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float kept = beta * u[i];
        u[i] = kept + (from[i] - x[i]);
        /* x - beta u equals `from - u` with the new u, but without the rounding error of `from -
         * x`. */
        x[i] -= kept;
    }
}

static void learn(const struct round_change *c)
{
    add_momentum(c->m, c->begin, c->x, (float)c->optimiser->momentum, c->n);
}

const struct momentum_kind momentum_decentlam = {.name = "decentlam",
                                                 .use = MOMENTUM_IGNORED,
                                                 .most = 0.95,
                                                 .needs_constant_mixing = true,
                                                 .learn = learn};
