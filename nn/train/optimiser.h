/* nn/train/optimiser.h -- SGD, Adam and AdamW, gradient clipping, and the learning rate of a round.
 *
 *   clipping (if clip > 0): gradient = gradient * min(1, clip / |gradient|)
 *
 *   sgd     g = gradient + decay * x
 *           m = momentum * m + g            (PyTorch's form, dampening 0)
 *           x = x - lr * (nesterov ? g + momentum * m : m)
 *           MOMENTUM_HELD: the same update of x, but m keeps the value from before the step
 *           MOMENTUM_IGNORED: x = x - lr * g
 *           with a correction c: x = x - lr * (d - c), where d is the factor of lr in the update
 *           above (tracking_momentum.h)
 *   adam    g = gradient + decay * x        (Kingma, Ba 2015, algorithm 1)
 *           m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
 *           x = x - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *           MOMENTUM_MIXED: the same formulas, but the vectors m and v hold m / (1 - beta1^t) and
 *           sqrt(v / (1 - beta2^t)) (averaged_momentum.h)
 *   adamw   first x = x - lr * decay * x, then as adam with g = gradient
 *           (Loshchilov, Hutter 2019)
 *
 * decay is weight_decay in segments that decay, and 0 in biases and norms. Segments that are not
 * trained are running statistics. Their "gradient" is (running value - value of the batch), and
 * their update is x = x - 0.1 * gradient, independent of the learning rate. Clipping ignores them.
 *
 * m, v and the step number t belong to one peer. Only MOMENTUM_MIXED lets peers mix m and v. Only
 * DGC's factor masking resets m. DGC's local gradient clipping sets
 * clip = X / sqrt(number of peers), where X is the limit for the sum of all gradients.
 *
 * The learning rate is a function of the number of local steps since the run began, in units of a
 * round of --local-steps. So a peer that joins late trains at the same rate as the other peers, and
 * rounds of one step (--post-local) advance the schedule by their share of a round. All steps of a
 * round have the same rate. During the first `warmup` rounds the rate rises linearly to lr.
 * Afterwards the rate is
 *
 *   constant   lr
 *   step       lr, then lr / 10 from half of the run on, then lr / 100 from three quarters on
 *   cosine     lr * (1 + cos(pi * t)) / 2, where t rises from 0 to 1 in rounds - warmup rounds
 */
#ifndef NN_TRAIN_OPTIMISER_H
#define NN_TRAIN_OPTIMISER_H

#include "nn/math/vec.h"

enum schedule_kind { SCHEDULE_COSINE, SCHEDULE_STEP, SCHEDULE_CONSTANT };

struct schedule
{
    enum schedule_kind kind;
    double lr;       /* Highest learning rate. */
    uint64_t warmup; /* Number of warm-up rounds. */
    /* Number of local steps of the run, divided by --local-steps (the steps of one round).
     * SCHEDULE_CONSTANT ignores it. */
    double rounds;
};

enum optimiser_kind { OPTIMISER_SGD, OPTIMISER_ADAM, OPTIMISER_ADAMW };

#define OPTIMISER_ADAM_EPS 1e-8
/* Factor by which running statistics move in a step, as in PyTorch's batch norm. */
#define OPTIMISER_STATISTICS 0.1

/* How a step uses the momentum m, and with Adam the second moment v. */
enum momentum_use {
    /* The step first updates the moments m and v, and then moves the model by the new moments. */
    MOMENTUM_UPDATED,
    /* The step does not change m and v. Adam then has the formulas of quasi_global.h. */
    MOMENTUM_HELD,
    /* Updated as with MOMENTUM_UPDATED. An exchange also mixes the moments with those of other
     * peers. Adam then stores both moments in the form of averaged_momentum.h. */
    MOMENTUM_MIXED,
    MOMENTUM_IGNORED /* SGD only: the step does not use m. */
};

struct optimiser
{
    enum optimiser_kind kind;
    double momentum; /* Momentum factor, in [0, 1). Adam: beta1. */
    double beta2;    /* Adam only: factor of the second moment, in [0, 1). */
    bool nesterov;   /* SGD only. True: Nesterov's momentum. */
    enum momentum_use use;
    double weight_decay;
    double clip; /* Largest norm of the gradient of one step. 0: no limit. */
};

/* Returns the learning rate of a round. `round`: number of local steps before the round, divided by
 * --local-steps. After the end of the run, the rate of the run's last round continues. */
double schedule_lr(const struct schedule *s, double round);

/* Arguments of a step. All vectors have the length of the model's vector of parameters. */
struct optimiser_step
{
    const struct segment *segments;
    size_t n_segments;
    float *x;
    const float *grad;
    float *m; /* Momentum, zeros before the first step. SGD without momentum does not use it. */
    /* Adam's second moment, zeros before the first step. MOMENTUM_MIXED: its square root. SGD:
     * NULL. */
    float *v;
    uint64_t t; /* Adam: number of this step, counted from 1. */
    double lr;
    /* Only for SGD with MOMENTUM_UPDATED: the correction c, and the sum of the step directions, to
     * which the step adds its own direction. Vectors of the trained parameters. Both NULL: there is
     * no correction. */
    const float *correction;
    float *sum;
};

/* Scales the gradient of the trained segments down to the norm o->clip, if its norm is larger. A
 * gradient that is not finite stays unchanged. */
void optimiser_clip(const struct optimiser *o, const struct segment *segments, size_t n_segments,
                    float *grad);

/* Sets m[i] to 0 for each i with sent[i] != 0 (factor masking of DGC). */
void optimiser_forget(float *m, const float *sent, size_t n);

/* Does one step of the optimiser. Reads and writes each vector only once. */
void optimiser_step(const struct optimiser *o, const struct optimiser_step *s);

#endif
