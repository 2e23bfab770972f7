#include "nn/optimiser.h"

#include <assert.h>
#include <math.h>

double schedule_lr(const struct schedule *s, uint64_t round)
{
    if (round < s->warmup)
        return s->lr * (double)(round + 1) / (double)s->warmup;
    if (s->kind == SCHEDULE_CONSTANT || s->rounds <= s->warmup)
        return s->lr;
    if (round >= s->rounds)
        round = s->rounds - 1;
    if (s->kind == SCHEDULE_STEP) {
        double done = (double)round / (double)s->rounds;
        return done < 0.5 ? s->lr : done < 0.75 ? s->lr * 0.1 : s->lr * 0.01;
    }
    double t = (double)(round - s->warmup) / (double)(s->rounds - s->warmup);
    return s->lr * 0.5 * (1 + cos(3.14159265358979323846 * t));
}

/* The rates of a step, rounded once. With momentum 0, m is just g. */
struct rates
{
    float lr, momentum, decay;
};

VEC_CLONES static void step_nesterov(float *restrict x, float *restrict m,
                                     const float *restrict grad, size_t n,
                                     const struct rates *r)
{
    float lr = r->lr, momentum = r->momentum, decay = r->decay;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + decay * x[i];
        m[i] = momentum * m[i] + g;
        x[i] -= lr * (g + momentum * m[i]);
    }
}

VEC_CLONES static void step_plain(float *restrict x, float *restrict m,
                                  const float *restrict grad, size_t n,
                                  const struct rates *r)
{
    float lr = r->lr, momentum = r->momentum, decay = r->decay;
    for (size_t i = 0; i < n; i++) {
        m[i] = momentum * m[i] + (grad[i] + decay * x[i]);
        x[i] -= lr * m[i];
    }
}

VEC_CLONES static void scale(float *g, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g[i] *= s;
}

void optimiser_clip(const struct optimiser *o, const struct segment *segments,
                    size_t n_segments, float *grad)
{
    double norm2 = 0;
    for (size_t i = 0; i < n_segments; i++)
        if (segments[i].trained)
            norm2 += vec_norm2(grad + segments[i].offset, segments[i].n);
    double norm = sqrt(norm2);
    if (!(o->clip > 0 && norm > o->clip && isfinite(norm)))
        return;
    for (size_t i = 0; i < n_segments; i++)
        if (segments[i].trained)
            scale(grad + segments[i].offset, (float)(o->clip / norm),
                  segments[i].n);
}

VEC_CLONES void optimiser_forget(float *restrict m, const float *restrict sent,
                                 size_t n)
{
    for (size_t i = 0; i < n; i++)
        m[i] = sent[i] != 0 ? 0 : m[i];
}

void optimiser_step(const struct optimiser *o, const struct optimiser_step *s)
{
    assert(o->momentum >= 0 && o->momentum < 1 && o->weight_decay >= 0);
    for (size_t i = 0; i < s->n_segments; i++) {
        const struct segment *seg = &s->segments[i];
        if (!seg->trained)
            continue;
        struct rates r = {(float)s->lr, (float)o->momentum,
                          seg->decays ? (float)o->weight_decay : 0.0f};
        (o->nesterov ? step_nesterov : step_plain)(
            s->x + seg->offset, s->m + seg->offset, s->grad + seg->offset,
            seg->n, &r);
    }
}
