/* nn/train/learners.c -- computes how learners are pulled to their centre, and how the centre
 * follows them. */
#include "nn/train/learners.h"

#include "nn/math/state.h"
#include "nn/math/vec.h"
#include "nn/train/optimiser.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static float *zeros(size_t n)
{
    return calloc(n > 0 ? n : 1, sizeof(float));
}

int learners_init(struct learners *l, const struct learners_config *config)
{
    const struct learners_config *c = config;
    assert(c->n >= 2 && c->n <= LEARNERS_MAX && c->at_once >= 1 && c->n_trained <= c->n_params);
    assert(c->momentum >= 0 && c->momentum < 1);
    *l = (struct learners){.config = *c,
                           .pull = 1 / (float)c->n,
                           .apart = zeros(c->n * c->n_params),
                           .velocity = zeros(c->n_trained),
                           .x = zeros(c->at_once * c->n_params)};
    if (l->apart != NULL && l->velocity != NULL && l->x != NULL)
        return 0;
    learners_close(l);
    return -ENOMEM;
}

void learners_close(struct learners *l)
{
    free(l->apart);
    free(l->velocity);
    free(l->x);
    *l = (struct learners){.pull = 0};
}

static float *apart_of(const struct learners *l, uint32_t j)
{
    assert(j < l->config.n);
    return l->apart + j * l->config.n_params;
}

static float *model_of(const struct learners *l, uint32_t k)
{
    assert(k < l->config.at_once);
    return l->x + k * l->config.n_params;
}

/* Sets `velocity = mu * velocity + sum of c_j`, where mu is the momentum factor of the centre (the
 * average model of the learners) and c_j is the pull on learner j. The learners are added in order,
 * so the result has the same bits every time. */
void learners_pull(struct learners *l, size_t from, size_t to)
{
    float mu = (float)l->config.momentum, *v = l->velocity;
    to = to < l->config.n_trained ? to : l->config.n_trained;
    for (size_t i = from; i < to; i++)
        v[i] *= mu;
    for (uint32_t j = 0; j < l->config.n && from < to; j++)
        vec_axpy(v + from, l->pull, apart_of(l, j) + from, to - from);
}

VEC_CLONES static void add(float *restrict sum, const float *restrict a, const float *restrict b,
                           size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
}

float *learners_begin(struct learners *l, uint32_t j, uint32_t k, const float *z)
{
    size_t n = l->config.n_trained, all = l->config.n_params;
    float *x = model_of(l, k);
    add(x, z, apart_of(l, j), n);
    memcpy(x + n, z + n, (all - n) * sizeof *x);
    return x;
}

/* Sets `apart = (x - z) - c - velocity`, the difference between a learner's model and the centre
 * after the step. x - z is the difference before the step, c is the pull on the learner, and the
 * centre moves by `velocity`. */
VEC_CLONES static void part(float *restrict apart, const float *restrict x, const float *restrict z,
                            const float *restrict velocity, float pull, size_t n)
{
    for (size_t i = 0; i < n; i++)
        apart[i] = (x[i] - z[i]) - pull * apart[i] - velocity[i];
}

void learners_end(struct learners *l, uint32_t j, uint32_t k, const float *z)
{
    size_t n = l->config.n_trained;
    float *apart = apart_of(l, j);
    const float *x = model_of(l, k);
    part(apart, x, z, l->velocity, l->pull, n);
    for (size_t i = n; i < l->config.n_params; i++)
        apart[i] = x[i] - z[i];
}

/* Parameters move by the velocity, which already contains the sum over all learners. Running
 * statistics move by the mean of the learners' changes. */
void learners_move(const struct learners *l, float *z, size_t from, size_t to)
{
    size_t n = l->config.n_trained, held = to < n ? to : n, rest = from > n ? from : n;
    if (from < held)
        vec_axpy(z + from, 1, l->velocity + from, held - from);
    for (uint32_t j = 0; j < l->config.n && rest < to; j++)
        vec_axpy(z + rest, l->pull, apart_of(l, j) + rest, to - rest);
}

void learners_forget(struct learners *l, const float *sent)
{
    optimiser_forget(l->velocity, sent, l->config.n_trained);
}

void learners_state(struct learners *l, struct state *s)
{
    size_t n = l->config.n_trained;
    state_floats(s, l->velocity, n, "learners.velocity");
    for (uint32_t j = 0; j < l->config.n; j++)
        state_floats(s, apart_of(l, j), n, "learners.%u.apart", (unsigned)j);
}
