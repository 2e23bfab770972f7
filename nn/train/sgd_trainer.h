/* nn/train/sgd_trainer.h -- a trainer (nn/train/trainer.h): mini-batch training of a model.
 *
 *   shared by all trainers of a process     of one trainer
 *   model, data sets, scratch               momentum, shard
 *
 * The scratch holds activations and gradients of one step and nothing that
 * outlives it, so a simulator of a thousand peers has one scratch; trainers
 * that share one are called from one thread.
 *
 * A step: draw a batch (nn/shards/shard.h), augment it (nn/data/augment.h), forward, loss,
 * backward, clip, update. The report's loss is the mean over the rows (of a
 * text: its bytes) as they were seen: each batch at the model of its step.
 *
 * With several threads (nn/math/parallel_for.h) a batch is shared out: each thread runs a
 * contiguous part through an arena and a gradient of its own, and the parts are
 * added in order. A batch norm sees its thread's part; running statistics move
 * by all parts, each by its share. So the outcome is a function of the seed and
 * the number of threads.
 *
 * With several learners (learners.h) each step is one of each of them, with a whole batch and momentum of
 * its own, and x is their centre. Threads share out the learners, not a batch: the outcome is then a
 * function of the seed alone. Learner j of K has batches number j, K + j, ... of the shard's sequence, so
 * that together they see each sample once an epoch.
 *
 * With optimiser.held the momentum is quasi-global (quasi_global.h): it moves as a round begins, and
 * not in steps.
 */
#ifndef NN_TRAIN_SGD_TRAINER_H
#define NN_TRAIN_SGD_TRAINER_H

#include "nn/data/augment.h"
#include "nn/data/dataset.h"
#include "nn/models/model.h"
#include "nn/shards/shard.h"
#include "nn/train/learners.h"
#include "nn/train/optimiser.h"
#include "nn/train/quasi_global.h"
#include "nn/train/sgd_scratch.h"
#include "nn/train/trainer.h"

/* All that is borrowed must outlive the trainer. */
struct sgd_config
{
    const struct model *model;          /* Borrowed. */
    const struct dataset *train, *test; /* Borrowed; of the model's shape. */
    struct shard *shard;                /* Borrowed; of `train`. */
    struct sgd_scratch *scratch;        /* Borrowed, or NULL: its own. */
    const float *init;                  /* Borrowed: the initial model; or NULL:
                                         * model_params() of the seed. */
    uint64_t seed;                      /* The run's. */
    uint32_t batch;
    uint32_t threads; /* For a scratch of its own; 0 is 1, and more
                                         * than `batch` is `batch`. Of several
                                         * learners, likewise. */
    struct optimiser optimiser;
    struct schedule schedule;
    struct augment augment;
    double label_smoothing; /* Label smoothing in training. Evaluations do not use it. */
    uint32_t learners; /* 0 is 1. With more no optimiser is held, and watch() is never heard of. */
    double learner_momentum; /* With several: of their centre. */
};

struct sgd_trainer
{
    struct sgd_config config;
    float *momentum;            /* n_params a learner; part of a checkpoint, as are ... */
    float *second;              /* ... Adam's second moment (else NULL) ... */
    uint64_t t;                 /* ... and its number of steps. */
    struct quasi_global global; /* Makes a momentum that is held; else all zero. */
    struct learners learners;   /* State of several learners. All zero: one learner. */
    struct sgd_scratch *own;
    void (*done)(void *arg, size_t from); /* In the next steps(); or NULL. */
    void *done_arg;
    void (*sign)(void *arg); /* After a batch; or NULL. */
    void *sign_arg;
};

/* 0, or -EINVAL with a sentence (the data are not of the model's shape), or
 * -ENOMEM or -EAGAIN. */
__attribute__((warn_unused_result)) int sgd_trainer_init(struct sgd_trainer *t,
                                                         const struct sgd_config *config,
                                                         char error[MODEL_ERROR_MAX]);
void sgd_trainer_close(struct sgd_trainer *t);

/* Samples that a scratch lent to a trainer has to be opened for, where it runs on `threads` threads. */
static inline uint32_t sgd_trainer_samples(uint32_t batch, uint32_t learners, uint32_t threads)
{
    return learners > 1 ? batch * threads : batch;
}

/* Returns the trainer interface for a node. Borrows `t`. */
struct trainer sgd_trainer_face(struct sgd_trainer *t);

#endif
