/* nn/train/quasi_global.c -- computes the momentum from the change of the model over a round. */
#include "nn/train/quasi_global.h"

#include "nn/math/state.h"
#include "nn/math/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int quasi_global_init(struct quasi_global *q, size_t n)
{
    *q = (struct quasi_global){.begin = calloc(n, sizeof *q->begin), .n = n};
    return q->begin != NULL ? 0 : -ENOMEM;
}

void quasi_global_close(struct quasi_global *q)
{
    free(q->begin);
    *q = (struct quasi_global){.begin = NULL};
}

/* Sets `m = mu * m + share * (from - to)`, and then `from = to`. `from` and `to` are the models at
 * the start of two successive rounds, mu is the momentum factor, and `share` is (1 - mu) / way. */
VEC_CLONES static void learn(float *restrict m, float *restrict from, const float *restrict to,
                             float mu, float share, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = mu * m[i] + share * (from[i] - to[i]);
        from[i] = to[i];
    }
}

void quasi_global_begin(struct quasi_global *q, const float *x, uint64_t round, double way,
                        double mu, float *m)
{
    if (q->way > 0 && round == q->round + 1)
        learn(m, q->begin, x, (float)mu, (float)((1 - mu) / q->way), q->n);
    else
        memcpy(q->begin, x, q->n * sizeof *x);
    q->round = round;
    q->way = way;
}

void quasi_global_state(struct quasi_global *q, struct state *s)
{
    state_u64(s, &q->round);
    state_f64(s, &q->way);
    state_expect(s, isfinite(q->way) && q->way >= 0, "the path length of a round is not a number");
    state_floats(s, q->begin, q->n, "optimizer.begin");
}
