/* nn/train/outer_optimiser.c -- Nesterov's momentum on the local update of a round. */
#include "nn/train/outer_optimiser.h"

#include "nn/math/state.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Value of `round` if the outer momentum u applies to the next round, whatever its number is. */
static const uint64_t any_round = UINT64_MAX;

/* The outer momentum u of another peer is refused if |u| is more than this factor times |x - x0| /
 * lr. x is the model that came with u, and x0 is the initial model. After the first round |x - x0|
 * is at least lr |u|. In later rounds |x - x0| is usually larger, because x - x0 contains all
 * earlier updates and u only the recent ones. */
static const double most_ways = 4;

int outer_optimiser_init(struct outer_optimiser *o, double lr, double momentum, size_t n)
{
    assert(lr > 0 && momentum >= 0 && momentum < 1);
    *o = (struct outer_optimiser){.lr = lr,
                                  .momentum = momentum,
                                  .u = calloc(n > 0 ? n : 1, sizeof *o->u),
                                  .n = n,
                                  .round = any_round};
    return o->u != NULL ? 0 : -ENOMEM;
}

void outer_optimiser_close(struct outer_optimiser *o)
{
    free(o->u);
    *o = (struct outer_optimiser){.u = NULL};
}

/* Does one outer step (outer_optimiser.h): u = mu u + D and x = before + lr (D + mu u). `before` is
 * the model before the local steps, and D = x - before. */
VEC_CLONES static void step(float *restrict x, const float *restrict before, float *restrict u,
                            float lr, float mu, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float d = x[i] - before[i];
        u[i] = mu * u[i] + d;
        x[i] = before[i] + lr * (d + mu * u[i]);
    }
}

void outer_optimiser_step(struct outer_optimiser *o, float *x, const float *before, uint64_t round)
{
    assert(o->u != NULL && round < any_round);
    if (o->round != any_round && o->round != round)
        outer_optimiser_reset(o);
    step(x, before, o->u, (float)o->lr, (float)o->momentum, o->n);
    o->round = round + 1;
}

void outer_optimiser_reset(struct outer_optimiser *o)
{
    memset(o->u, 0, o->n * sizeof *o->u);
    o->round = any_round;
}

bool outer_optimiser_take(struct outer_optimiser *o, const float *u, const float *x,
                          const float *x0)
{
    double most2 = most_ways * most_ways / (o->lr * o->lr) * vec_dist2(x, x0, o->n);
    outer_optimiser_reset(o);
    if (!vec_finite(u, o->n) || !(vec_norm2(u, o->n) <= most2))
        return false;
    memcpy(o->u, u, o->n * sizeof *u);
    return true;
}

void outer_optimiser_state(struct outer_optimiser *o, struct state *s)
{
    if (o->u == NULL)
        return;
    state_section(s, "outer");
    state_u64(s, &o->round);
    state_floats(s, o->u, o->n, "outer.momentum");
}
