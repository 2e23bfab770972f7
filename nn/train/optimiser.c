/* nn/train/optimiser.c -- one step of SGD, Adam or AdamW, and the learning rate of a round. */
#include "nn/train/optimiser.h"

#include <assert.h>
#include <math.h>

/* All schedules begin with the warm-up. */
double schedule_lr(const struct schedule *s, double round)
{
    double warmup = (double)s->warmup;
    if (round < warmup)
        return s->lr * fmin(round + 1, warmup) / warmup;
    if (s->kind == SCHEDULE_CONSTANT || s->rounds <= warmup)
        return s->lr;
    if (round >= s->rounds)
        round = s->rounds - 1;
    if (s->kind == SCHEDULE_STEP) {
        double done = round / s->rounds;
        return done < 0.5 ? s->lr : done < 0.75 ? s->lr * 0.1 : s->lr * 0.01;
    }
    double t = (round - warmup) / (s->rounds - warmup);
    return s->lr * 0.5 * (1 + cos(3.14159265358979323846 * t));
}

/* Factors of a step for one segment, computed once per step in double and stored as float. */
struct rates
{
    float lr, decay;
    float momentum; /* Momentum factor. Adam: beta1. */
    /* SGD multiplies the old momentum m by `pull` and the gradient by `gain`. Adam does not use
     * `pull`, and its gain is 1 - beta1, or 1 with MOMENTUM_HELD. */
    float pull, gain;
    /* beta2 and 1 - beta2 of Adam. With MOMENTUM_MIXED, these two, `momentum` and `gain` also
     * contain the corrections for moments that start at zero (mixed_rates()). */
    float beta2, gain2;
    /* Adam: 1 / sqrt(1 - beta2^t) of step number t, the correction of the second moment. */
    float spread;
    /* AdamW: share of x that a step subtracts for weight decay, lr * decay. Adam: 0. */
    float shrink;
};

/* Start of one segment (a tensor of the model) in each vector of the optimiser's step. */
struct place
{
    float *x, *m, *v;
    const float *grad;
    const float *correction;
    float *sum;
};

/* Sets `x = x - lr * (g + decay * x)`, where g is the gradient. Used for SGD without momentum,
 * and for running statistics. */
VEC_CLONES static void step_bare(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x;
    const float *restrict grad = p->grad;
    float lr = r->lr, decay = r->decay;
    for (size_t i = 0; i < n; i++)
        x[i] -= lr * (grad[i] + decay * x[i]);
}

/* SGD with momentum, in PyTorch's form: the gradients are summed in m without the learning rate,
 * which then multiplies m. */
VEC_CLONES static void step_plain(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x, *restrict m = p->m;
    const float *restrict grad = p->grad;
    float lr = r->lr, momentum = r->momentum, decay = r->decay;
    for (size_t i = 0; i < n; i++) {
        m[i] = momentum * m[i] + (grad[i] + decay * x[i]);
        x[i] -= lr * m[i];
    }
}

/* SGD with Nesterov's momentum m: the update uses `g + momentum * m`, where g is the gradient. */
VEC_CLONES static void step_nesterov(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x, *restrict m = p->m;
    const float *restrict grad = p->grad;
    float lr = r->lr, momentum = r->momentum, decay = r->decay;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + decay * x[i];
        m[i] = momentum * m[i] + g;
        x[i] -= lr * (g + momentum * m[i]);
    }
}

/* SGD with constant momentum (MOMENTUM_HELD): the steps read m and do not change it. A step
 * subtracts lr * (gain * gradient + pull * m). With Nesterov's form, `gain` is 1 + mu and `pull` is
 * mu^2, where mu is the momentum factor. With plain momentum, `gain` is 1 and `pull` is mu. */
VEC_CLONES static void step_held(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x;
    const float *restrict grad = p->grad, *restrict m = p->m;
    float lr = r->lr, decay = r->decay, gain = r->gain, pull = r->pull;
    for (size_t i = 0; i < n; i++)
        x[i] -= lr * (gain * (grad[i] + decay * x[i]) + pull * m[i]);
}

/* One step of SGD with a correction (tracking_momentum.h), with plain or Nesterov momentum. If the
 * correction is 0 and the momentum is plain, x and m get the same bits as in step_plain(). */
VEC_CLONES static void step_tracked(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x, *restrict m = p->m, *restrict sum = p->sum;
    const float *restrict grad = p->grad, *restrict correction = p->correction;
    float lr = r->lr, decay = r->decay, momentum = r->momentum, gain = r->gain, pull = r->pull;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + decay * x[i];
        float d = pull * m[i] + gain * g;
        m[i] = momentum * m[i] + g;
        sum[i] += d;
        x[i] -= lr * (d - correction[i]);
    }
}

/* One step of Adam (with shrink = 0) or AdamW (with decay = 0), step number t. m and v are the
 * first and second moment. `sqrt(v / (1 - beta2^t))` is computed as `sqrt(v) * spread`. lr already
 * contains the correction `1 / (1 - beta1^t)` of m. */
VEC_CLONES static void step_adam(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x, *restrict m = p->m, *restrict v = p->v;
    const float *restrict grad = p->grad;
    struct rates k = *r;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + k.decay * x[i];
        m[i] = k.momentum * m[i] + k.gain * g;
        v[i] = k.beta2 * v[i] + k.gain2 * (g * g);
        x[i] = (x[i] - k.shrink * x[i])
               - k.lr * m[i] / (sqrtf(v[i]) * k.spread + (float)OPTIMISER_ADAM_EPS);
    }
}

/* A step of Adam or AdamW with constant moments: as step_adam(), but the moments that contain this
 * step's gradient are not stored. */
VEC_CLONES static void step_adam_held(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x;
    const float *restrict grad = p->grad, *restrict m = p->m, *restrict v = p->v;
    struct rates k = *r;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + k.decay * x[i];
        float first = k.momentum * m[i] + k.gain * g;
        float second = k.beta2 * v[i] + k.gain2 * (g * g);
        x[i] = (x[i] - k.shrink * x[i])
               - k.lr * first / (sqrtf(second) * k.spread + (float)OPTIMISER_ADAM_EPS);
    }
}

/* A step of Adam or AdamW with MOMENTUM_MIXED: as step_adam(), but `root` is the square root of the
 * second moment, and both moments are stored with their corrections for the start at zero. */
VEC_CLONES static void step_adam_mixed(const struct place *p, const struct rates *r, size_t n)
{
    float *restrict x = p->x, *restrict m = p->m, *restrict root = p->v;
    const float *restrict grad = p->grad;
    struct rates k = *r;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + k.decay * x[i];
        m[i] = k.momentum * m[i] + k.gain * g;
        root[i] = sqrtf(k.beta2 * (root[i] * root[i]) + k.gain2 * (g * g));
        x[i] = (x[i] - k.shrink * x[i]) - k.lr * m[i] / (root[i] + (float)OPTIMISER_ADAM_EPS);
    }
}

VEC_CLONES static void scale(float *g, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g[i] *= s;
}

/* Scales the gradient down to the norm o->clip. A gradient that is not finite stays unchanged,
 * because scaling could hide the divergence, which must become visible in the loss. */
void optimiser_clip(const struct optimiser *o, const struct segment *segments, size_t n_segments,
                    float *grad)
{
    double norm2 = 0;
    for (size_t i = 0; i < n_segments && segments[i].trained; i++)
        norm2 += vec_norm2(grad + segments[i].offset, segments[i].n);
    double norm = sqrt(norm2);
    if (!(o->clip > 0 && norm > o->clip && isfinite(norm)))
        return;
    scale(grad, (float)(o->clip / norm), segments_trained(segments, n_segments));
}

VEC_CLONES void optimiser_forget(float *restrict m, const float *restrict sent, size_t n)
{
    for (size_t i = 0; i < n; i++)
        m[i] = sent[i] != 0 ? 0 : m[i];
}

/* Sets the factors of Adam's moments for MOMENTUM_MIXED. Step number t turns the stored moment
 * m / (1 - beta^(t-1)) into (beta m + (1 - beta) g) / (1 - beta^t). */
static void mixed_rates(struct rates *r, const struct optimiser *o, const struct optimiser_step *s)
{
    double before = (double)s->t - 1, now = (double)s->t;
    double weight = 1 - pow(o->momentum, now), weight2 = 1 - pow(o->beta2, now);
    r->lr = (float)s->lr;
    r->momentum = (float)(o->momentum * (1 - pow(o->momentum, before)) / weight);
    r->gain = (float)((1 - o->momentum) / weight);
    r->beta2 = (float)(o->beta2 * (1 - pow(o->beta2, before)) / weight2);
    r->gain2 = (float)((1 - o->beta2) / weight2);
}

/* Computes the factors of a step. Everything that is the same for all parameters is computed here,
 * in double, so that the loops need only a few operations in float. lr and spread contain Adam's
 * corrections for moments that start at zero. */
static struct rates rates_of(const struct optimiser *o, const struct optimiser_step *s, bool decays)
{
    double decay = decays ? o->weight_decay : 0;
    struct rates r = {.lr = (float)s->lr, .decay = (float)decay, .momentum = (float)o->momentum};
    if (o->kind == OPTIMISER_SGD) {
        r.gain = (float)(o->nesterov ? 1 + o->momentum : 1);
        r.pull = (float)(o->nesterov ? o->momentum * o->momentum : o->momentum);
        return r;
    }
    r.lr = (float)(s->lr / (1 - pow(o->momentum, (double)s->t)));
    r.gain = (float)(o->use == MOMENTUM_HELD ? 1 : 1 - o->momentum);
    r.beta2 = (float)o->beta2;
    r.gain2 = (float)(1 - o->beta2);
    r.spread = (float)(1 / sqrt(1 - pow(o->beta2, (double)s->t)));
    if (o->use == MOMENTUM_MIXED)
        mixed_rates(&r, o, s);
    if (o->kind == OPTIMISER_ADAMW) {
        r.shrink = (float)(s->lr * decay);
        r.decay = 0;
    }
    return r;
}

/* Each optimiser and form of momentum has its own loop, so no loop contains a branch. */
static void step_segment(const struct optimiser *o, const struct place *p, const struct rates *r,
                         size_t n)
{
    switch (o->kind) {
    case OPTIMISER_SGD:
        if (p->sum != NULL)
            step_tracked(p, r, n);
        /* Without momentum, the moment m would be equal to the gradient, so m is not stored. */
        else if (o->momentum == 0 || o->use == MOMENTUM_IGNORED)
            step_bare(p, r, n);
        else if (o->use == MOMENTUM_HELD)
            step_held(p, r, n);
        else if (o->nesterov)
            step_nesterov(p, r, n);
        else
            step_plain(p, r, n);
        return;
    case OPTIMISER_ADAM:
    case OPTIMISER_ADAMW:
        if (o->use == MOMENTUM_HELD)
            step_adam_held(p, r, n);
        else if (o->use == MOMENTUM_MIXED)
            step_adam_mixed(p, r, n);
        else
            step_adam(p, r, n);
        return;
    }
    assert(false);
}

/* The factors of the step are computed twice: for segments with weight decay, and for those
 * without. */
void optimiser_step(const struct optimiser *o, const struct optimiser_step *s)
{
    assert(o->momentum >= 0 && o->momentum < 1 && o->weight_decay >= 0);
    assert(o->kind == OPTIMISER_SGD
           || (o->use != MOMENTUM_IGNORED && o->beta2 >= 0 && o->beta2 < 1 && s->v != NULL
               && s->t >= 1));
    assert((s->sum != NULL) == (s->correction != NULL)
           && (s->sum == NULL || (o->kind == OPTIMISER_SGD && o->use == MOMENTUM_UPDATED)));
    const struct rates rates[2] = {rates_of(o, s, false), rates_of(o, s, true)};
    const struct rates statistics = {.lr = (float)OPTIMISER_STATISTICS};
    for (size_t i = 0; i < s->n_segments; i++) {
        const struct segment *seg = &s->segments[i];
        size_t at = seg->offset;
        struct place p = {.x = s->x + at,
                          .m = s->m + at,
                          .v = s->v != NULL ? s->v + at : NULL,
                          .grad = s->grad + at};
        if (s->sum != NULL && seg->trained) {
            p.correction = s->correction + at;
            p.sum = s->sum + at;
        }
        if (seg->trained)
            step_segment(o, &p, &rates[seg->decays], seg->n);
        else
            step_bare(&p, &statistics, seg->n);
    }
}
