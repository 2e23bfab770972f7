/* nn/train/sgd_pass.h -- some samples go through the model: loaded, augmented, forward, loss, backward;
 * internal.
 */
#ifndef NN_TRAIN_SGD_PASS_H
#define NN_TRAIN_SGD_PASS_H

#include "nn/data/augment.h"
#include "nn/data/dataset.h"
#include "nn/train/sgd_scratch.h"

/* Some samples of a set and what is done with them. */
struct sgd_batch
{
    const struct model *model;
    const struct dataset *set;
    uint32_t n;
    const uint32_t *index; /* Indices of the samples. NULL: samples `first`, `first` + 1, ... */
    size_t first;
    const struct augment *augment;
    uint64_t seed, peer,
        /* Inputs of the random augmentation: seed, peer, and position of the first sample in the
         * peer's sequence of samples. */
        position;
    float smoothing;
    size_t n_mean;                         /* Rows that the gradient is a mean of. */
    void (*done)(void *self, size_t from); /* Called as model_pass.done. */
    void *done_self;
};

/* One pass over a batch, in p's memory: its loss and, where the plan is for training, the gradient, in
 * p->grad. */
struct loss sgd_pass_run(struct sgd_part *p, const struct model_plan *plan, const float *x,
                         const struct sgd_batch *b);

#endif
