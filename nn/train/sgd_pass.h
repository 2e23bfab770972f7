/* nn/train/sgd_pass.h -- one pass of a batch through the model: load, augment, forward, loss,
 * backward. Internal to nn/train.
 */
#ifndef NN_TRAIN_SGD_PASS_H
#define NN_TRAIN_SGD_PASS_H

#include "nn/data/augment.h"
#include "nn/data/dataset.h"
#include "nn/train/sgd_scratch.h"

/* A batch: samples of a data set, and how they are augmented and weighted. */
struct sgd_batch
{
    const struct model *model;
    const struct dataset *set;
    uint32_t n;
    const uint32_t *index; /* Indices of the samples. NULL: samples `first`, `first` + 1, ... */
    size_t first;
    const struct augment *augment;
    uint64_t seed, peer,
        /* Inputs of the random augmentation: the run's seed, the peer, and the position of the
         * first sample in the peer's sequence of samples. */
        position;
    float smoothing;
    size_t n_mean; /* Number of rows of the whole batch. The gradient is divided by it. */
    /* Called in the backward pass when the gradient from index `from` on is complete
     * (model_pass.done). May be NULL. */
    void (*done)(void *self, size_t from);
    void *done_self;
};

/* Runs one pass over a batch in the memory of `p`, and returns the loss. If the plan is for
 * training, also writes the gradient to p->grad. */
struct loss sgd_pass_run(struct sgd_part *p, const struct model_plan *plan, const float *x,
                         const struct sgd_batch *b);

#endif
