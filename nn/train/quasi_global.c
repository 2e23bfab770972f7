/* nn/train/quasi_global.c -- moments that follow the change of the model over a round. */
#include "nn/train/quasi_global.h"

#include "nn/math/vec.h"

#include <math.h>

/* Sets `m = mu * m + share * (from - to)`. `from` and `to` are the models before and after a
 * round, and mu is the momentum factor. `share` is (1 - mu) / (learning rate * local steps of the
 * round). */
VEC_CLONES static void learn_sgd(float *restrict m, const float *restrict from,
                                 const float *restrict to, float mu, float share, size_t n)
{
    for (size_t i = 0; i < n; i++)
        m[i] = mu * m[i] + share * (from[i] - to[i]);
}

/* Updates both moments of Adam by the change `from - to`, scaled by `scale` to length 1. */
VEC_CLONES static void learn_adam(float *restrict m, float *restrict v, const float *restrict from,
                                  const float *restrict to, float beta1, float beta2, float scale,
                                  size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float d = scale * (from[i] - to[i]);
        m[i] = beta1 * m[i] + (1 - beta1) * d;
        v[i] = beta2 * v[i] + (1 - beta2) * (d * d);
    }
}

static void learn(const struct round_change *c)
{
    const struct optimiser *o = c->optimiser;
    if (o->kind == OPTIMISER_SGD) {
        learn_sgd(c->m, c->begin, c->x, (float)o->momentum, (float)((1 - o->momentum) / c->way),
                  c->n);
        return;
    }
    double length = sqrt(vec_dist2(c->begin, c->x, c->n));
    learn_adam(c->m, c->v, c->begin, c->x, (float)o->momentum, (float)o->beta2,
               (float)(1 / (length + OPTIMISER_ADAM_EPS)), c->n);
}

const struct momentum_kind momentum_qg = {
    .name = "qg", .use = MOMENTUM_HELD, .most = 1, .adam = true, .learn = learn};
