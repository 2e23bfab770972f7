/* nn/train/sgd_trainer.h -- the built-in trainer (nn/train/trainer.h): mini-batch training of a
 * model.
 *
 *   shared by all trainers of a process:   model, data sets, scratch
 *   owned by each trainer:                 momentum, shard
 *
 * The scratch holds the activations and gradients of one step and nothing that is needed later. A
 * simulator of a thousand peers therefore needs only one scratch. Trainers that share a scratch
 * must be called from one thread.
 *
 * One step draws a batch (nn/shards/shard.h), augments it (nn/data/augment.h), and runs forward
 * pass, loss, backward pass, clipping and update. The reported loss is the mean over all rows of
 * all steps. A sample has one row, or one row per byte in a text. The loss of a batch is measured
 * before its step changes the model.
 *
 * Several threads (nn/math/parallel_for.h) divide a batch. Each thread runs a contiguous part of
 * the batch, with its own activations and its own gradient, and the gradients are added in the
 * order of the parts. A batch norm uses the mean and variance of its part of the batch. The running
 * statistics move by the average over the parts, weighted by their sizes. The result therefore
 * depends only on the seed and on the number of threads.
 *
 * With several learners (learners.h), one step of the trainer is one step of each learner. Each
 * learner has its own batch and momentum, and x is the learners' common centre. The threads divide
 * the learners, not a batch, so the result depends only on the seed. Learner j of K takes the
 * batches j, K + j, 2K + j, ... of the shard's sequence, so together the learners use each sample
 * once per epoch.
 *
 * With a kind of momentum that has a function learn() (momentum_kind.h), the momentum changes when
 * a round begins and is constant during the steps.
 */
#ifndef NN_TRAIN_SGD_TRAINER_H
#define NN_TRAIN_SGD_TRAINER_H

#include "nn/data/augment.h"
#include "nn/data/dataset.h"
#include "nn/models/model.h"
#include "nn/shards/shard.h"
#include "nn/train/learners.h"
#include "nn/train/optimiser.h"
#include "nn/train/round_momentum.h"
#include "nn/train/sgd_scratch.h"
#include "nn/train/tracking_momentum.h"
#include "nn/train/trainer.h"

/* Configuration of a trainer. All borrowed objects must outlive the trainer. */
struct sgd_config
{
    const struct model *model; /* Model to train. Borrowed. */
    /* Training set and held-out set, with the data shape of the model. Borrowed. */
    const struct dataset *train, *test;
    struct shard *shard; /* This peer's shard of `train`. Borrowed. */
    /* Scratch to share with other trainers. Borrowed. NULL: the trainer allocates its own. */
    struct sgd_scratch *scratch;
    /* Initial model, borrowed. NULL: model_params() computes the initial model from the seed. */
    const float *init;
    uint64_t seed; /* Seed of the run. */
    uint32_t batch;
    /* Number of threads, if `scratch` is NULL. 0: one thread. At most `batch` threads are used, or
     * at most `learners` threads if there are several learners. */
    uint32_t threads;
    /* Optimiser of the local steps. sgd_trainer_init() sets optimiser.use by `momentum`. */
    struct optimiser optimiser;
    const struct momentum_kind *momentum; /* Kind of momentum. NULL: momentum_local. */
    struct schedule schedule;
    struct augment augment;
    double label_smoothing; /* Label smoothing in training. Evaluations do not use it. */
    /* Number of learners: models that one trainer trains side by side (learners.h). 0: one learner.
     * With several learners, the kind of momentum must be local, and the function that watch() sets
     * is never called. */
    uint32_t learners;
    /* Momentum factor of the centre, the average model of the learners. Unused with one learner. */
    double learner_momentum;
};

struct sgd_trainer
{
    struct sgd_config config;
    /* Momentum: n_params floats per learner. With the kind of momentum `averaged`, the first floats
     * of `momentum` and `second` are also companion vectors, which peers exchange and mix
     * (trainer.h). `momentum`, `second` and `t` are part of a checkpoint. */
    float *momentum;
    /* Adam's second moments: n_params floats per learner. With `averaged`: their square roots.
     * NULL: the optimiser is SGD. */
    float *second;
    /* Number of updates of the moments so far, if the kind of momentum has a function learn().
     * Otherwise the number of local steps so far. */
    uint64_t t;
    /* State of a kind of momentum that has a function learn(). All zero: the kind of momentum has
     * none. */
    struct round_momentum change;
    /* State of momentum_tracking. All zero: another kind of momentum. */
    struct tracking_momentum tracking;
    struct learners learners; /* State of several learners. All zero: one learner. */
    struct sgd_scratch *own;
    /* Function that watch() of struct trainer has set for the next call of steps(). NULL: none. */
    void (*done)(void *arg, size_t from);
    void *done_arg;
    /* Function that signs() of struct trainer has set, called after each batch. NULL: none. */
    void (*sign)(void *arg);
    void *sign_arg;
};

/* Opens a trainer. Returns 0, -EINVAL with a message if the data do not have the model's shape,
 * -ENOMEM, or -EAGAIN if threads cannot be started. */
__attribute__((warn_unused_result)) int sgd_trainer_init(struct sgd_trainer *t,
                                                         const struct sgd_config *config,
                                                         char error[MODEL_ERROR_MAX]);
void sgd_trainer_close(struct sgd_trainer *t);

/* Returns the batch size for which a shared scratch must be opened. `batch` and `learners` are
 * those of the trainers that will share the scratch, and `threads` is the number of threads of the
 * scratch. */
static inline uint32_t sgd_trainer_samples(uint32_t batch, uint32_t learners, uint32_t threads)
{
    return learners > 1 ? batch * threads : batch;
}

/* Returns the trainer interface for a node. Borrows `t`. */
struct trainer sgd_trainer_face(struct sgd_trainer *t);

#endif
