/* nn/optimiser.h -- SGD with momentum, and the learning rate of a round.
 *
 *   gradient = gradient * min(1, clip / |gradient|)       (clip > 0)
 *   g = gradient + weight_decay * x     (segments that decay: no biases)
 *   m = momentum * m + g                (PyTorch's form, dampening 0)
 *   x = x - lr * (nesterov ? g + momentum * m : m)
 *
 * The momentum m belongs to one peer: it is never averaged, and reset only by
 * DGC's factor masking. Its local gradient clipping is a clip of
 * X / sqrt(number of peers), X being what the sum of all gradients is held to.
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
#ifndef NN_OPTIMISER_H
#define NN_OPTIMISER_H

#include "nn/vec.h"

enum schedule_kind { SCHEDULE_COSINE, SCHEDULE_STEP, SCHEDULE_CONSTANT };

struct schedule
{
    enum schedule_kind kind;
    double lr;       /* At its highest. */
    uint64_t warmup; /* Rounds. */
    uint64_t rounds; /* Of the whole run. SCHEDULE_CONSTANT needs none. */
};

struct optimiser
{
    double momentum; /* In [0, 1). */
    bool nesterov;
    double weight_decay;
    double clip; /* Longest gradient of one step; 0: any. */
};

/* Of round 0, 1, ... A round past the run's end has the last one's rate. */
double schedule_lr(const struct schedule *s, uint64_t round);

/* What one step works on: the whole vectors, each of the model's length. */
struct optimiser_step
{
    const struct segment *segments;
    size_t n_segments;
    float *x;
    const float *grad;
    float *m; /* Momentum, zeros before the first step. */
    double lr;
};

/* Scale the gradient (of the segments that are trained) down to o->clip. One
 * that is not finite stays so. */
void optimiser_clip(const struct optimiser *o, const struct segment *segments,
                    size_t n_segments, float *grad);

/* m = 0 where sent is not. */
void optimiser_forget(float *m, const float *sent, size_t n);

/* One step. Segments that are not trained stay as they are. */
void optimiser_step(const struct optimiser *o, const struct optimiser_step *s);

#endif
