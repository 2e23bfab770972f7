/* nn/sgd_trainer.h -- a trainer (nn/trainer.h): mini-batch SGD on a model.
 *
 *   shared by all trainers of a process     of one trainer
 *   model, data sets, scratch               momentum, shard
 *
 * The scratch holds activations and gradients of one step and nothing that
 * outlives it, so a simulator of a thousand peers has one scratch; trainers
 * that share one are called from one thread.
 *
 * A step: draw a batch (nn/shard.h), forward, loss, backward, clip, update. The
 * report's loss is the mean over the samples as they were seen: each batch at
 * the model of its step.
 */
#ifndef NN_SGD_TRAINER_H
#define NN_SGD_TRAINER_H

#include "nn/data.h"
#include "nn/model.h"
#include "nn/optimiser.h"
#include "nn/shard.h"
#include "nn/trainer.h"

enum {
    SGD_EVAL_BATCH_MAX = 256
};

struct sgd_scratch
{
    float *arena;    /* Of a model pass. */
    size_t n_arena;
    float *grad;     /* n_params */
    float *sample;   /* One sample, before it goes to its place. */
    uint32_t *index; /* Of a batch's samples... */
    uint8_t *label;  /* ... and their labels. */
    size_t n_params; /* What it was made for. */
    uint32_t batch, eval_batch;
};

/* Scratch for trainers of this model with batches of up to `batch`. An
 * evaluation takes the largest batch that fits in the same memory. 0 or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int
sgd_scratch_init(struct sgd_scratch *s, const struct model *m, uint32_t batch);
void sgd_scratch_close(struct sgd_scratch *s);

/* All that is borrowed must outlive the trainer. */
struct sgd_config
{
    const struct model *model;          /* Borrowed. */
    const struct dataset *train, *test; /* Borrowed; of the model's shape. */
    struct shard *shard;                /* Borrowed; of `train`. */
    struct sgd_scratch *scratch;        /* Borrowed, or NULL: its own. */
    uint64_t seed;                      /* The run's: the initial model. */
    uint32_t batch;
    struct optimiser optimiser;
    struct schedule schedule;
};

struct sgd_trainer
{
    struct sgd_config config;
    float *momentum; /* n_params; part of a checkpoint. */
    struct sgd_scratch own;
    int members_error; /* Of the last members(): 0, or -ENOMEM. */
};

/* 0, or -EINVAL with a sentence (the data are not of the model's shape), or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int
sgd_trainer_init(struct sgd_trainer *t, const struct sgd_config *config,
                 char error[MODEL_ERROR_MAX]);
void sgd_trainer_close(struct sgd_trainer *t);

/* Its face to a node; borrows t. */
struct trainer sgd_trainer_face(struct sgd_trainer *t);

#endif
