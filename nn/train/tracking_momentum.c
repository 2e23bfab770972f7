/* nn/train/tracking_momentum.c -- Momentum Tracking: corrects the steps of a peer for the bias of
 * its own data. */
#include "nn/train/tracking_momentum.h"

#include "nn/math/state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct momentum_kind momentum_tracking = {
    .name = "tracking", .use = MOMENTUM_UPDATED, .most = 1, .exchanged = true, .tracked = true};

int tracking_momentum_init(struct tracking_momentum *t, size_t n)
{
    *t = (struct tracking_momentum){.companion = calloc(n, sizeof(float)),
                                    .direction = calloc(n, sizeof(float)),
                                    .correction = calloc(n, sizeof(float)),
                                    .n = n};
    if (t->companion != NULL && t->direction != NULL && t->correction != NULL)
        return 0;
    tracking_momentum_close(t);
    return -ENOMEM;
}

void tracking_momentum_close(struct tracking_momentum *t)
{
    free(t->companion);
    free(t->direction);
    free(t->correction);
    *t = (struct tracking_momentum){.n = 0};
}

VEC_CLONES static void add(float *restrict sum, const float *restrict a, const float *restrict b,
                           size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
}

VEC_CLONES static void subtract(float *restrict difference, const float *restrict a,
                                const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        difference[i] = a[i] - b[i];
}

VEC_CLONES static void scale(float *x, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= s;
}

void tracking_momentum_begin(struct tracking_momentum *t, struct optimiser_step *u)
{
    add(t->correction, t->companion, t->direction, t->n);
    memset(t->direction, 0, t->n * sizeof *t->direction);
    u->correction = t->correction;
    u->sum = t->direction;
}

void tracking_momentum_end(struct tracking_momentum *t, uint32_t n_steps)
{
    assert(n_steps > 0);
    scale(t->direction, 1 / (float)n_steps, t->n);
    subtract(t->companion, t->correction, t->direction, t->n);
}

void tracking_momentum_rolled_back(struct tracking_momentum *t)
{
    subtract(t->companion, t->correction, t->direction, t->n);
}

void tracking_momentum_state(struct tracking_momentum *t, struct state *s)
{
    state_floats(s, t->direction, t->n, "optimizer.direction");
    state_floats(s, t->companion, t->n, "optimizer.companion");
}
