/* nn/train/optimiser.h -- SGD and Adam, and the learning rate of a round.
 *
 *   gradient = gradient * min(1, clip / |gradient|)       (clip > 0)
 *
 *   sgd     g = gradient + decay * x
 *           m = momentum * m + g            (PyTorch's form, dampening 0)
 *           x = x - lr * (nesterov ? g + momentum * m : m)
 *           held: the same x, but m stays what it was before the step
 *   adam    g = gradient + decay * x        (Kingma, Ba 2015, algorithm 1)
 *           m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
 *           x = x - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *   adamw   the same with g = gradient, and before it x = x - lr * decay * x
 *           (Loshchilov, Hutter 2019)
 *
 * decay is weight_decay in segments that decay: no biases, no norms. Segments
 * that are not trained are running statistics: their "gradient" is (running -
 * batch's), and x = x - 0.1 * gradient, whatever the learning rate; clipping
 * leaves them out.
 *
 * m, v and the step number t belong to one peer: they are never averaged, and
 * m is reset only by DGC's factor masking. Its local gradient clipping is a
 * clip of X / sqrt(number of peers), X being what the sum of all gradients is
 * held to.
 *
 * The learning rate is a function of the run's round, not of a peer's age, so
 * that a newcomer trains at the rate of the others. The first `warmup` rounds
 * climb linearly to lr; the rest, of length rounds - warmup, is
 *
 *   constant   lr
 *   step       lr, a tenth from half of the run on, a hundredth from three
 *              quarters on
 *   cosine     lr * (1 + cos(pi * t)) / 2, t from 0 to 1
 */
#ifndef NN_TRAIN_OPTIMISER_H
#define NN_TRAIN_OPTIMISER_H

#include "nn/math/vec.h"

enum schedule_kind { SCHEDULE_COSINE, SCHEDULE_STEP, SCHEDULE_CONSTANT };

struct schedule
{
    enum schedule_kind kind;
    double lr;       /* At its highest. */
    uint64_t warmup; /* Rounds. */
    uint64_t rounds; /* Rounds of the whole run. SCHEDULE_CONSTANT needs none. */
};

enum optimiser_kind { OPTIMISER_SGD, OPTIMISER_ADAM, OPTIMISER_ADAMW };

#define OPTIMISER_ADAM_EPS   1e-8
#define OPTIMISER_STATISTICS 0.1 /* PyTorch's momentum of a batch norm. */

struct optimiser
{
    enum optimiser_kind kind;
    double momentum; /* In [0, 1); Adam's beta1. */
    double beta2;    /* In [0, 1); Adam's only. */
    bool nesterov;   /* SGD's only. */
    bool held;       /* SGD's only: steps leave m alone (quasi_global.h). */
    double weight_decay;
    double clip; /* Longest gradient of one step; 0: any. */
};

/* The learning rate of round 0, 1, ... A round past the run's end has the last one's. */
double schedule_lr(const struct schedule *s, uint64_t round);

/* Arguments of a step. All vectors have the length of the model. */
struct optimiser_step
{
    const struct segment *segments;
    size_t n_segments;
    float *x;
    const float *grad;
    float *m;   /* Momentum, zeros before the first step. SGD without
                 * momentum leaves it alone. */
    float *v;   /* Adam's second moment, likewise; else NULL. */
    uint64_t t; /* For Adam: this is the t-th step, from 1. */
    double lr;
};

/* Scale the gradient (of the segments that are trained) down to o->clip. One
 * that is not finite stays so. */
void optimiser_clip(const struct optimiser *o, const struct segment *segments, size_t n_segments,
                    float *grad);

/* m[i] = 0 wherever sent[i] is not 0 (DGC's factor masking). */
void optimiser_forget(float *m, const float *sent, size_t n);

/* One step, in one pass over memory. */
void optimiser_step(const struct optimiser *o, const struct optimiser_step *s);

#endif
