/* peer/sgd/sgd_keys.h -- run keys of the built-in trainer (nn/train/sgd_trainer.h).
 *
 * A run that was parsed with &sgd_keys has these keys in addition to the core keys of
 * peer/run/run.h. sgd_values() returns their values. */
#ifndef PEER_SGD_SGD_KEYS_H
#define PEER_SGD_SGD_KEYS_H

#include "nn/data/augment.h"
#include "nn/data/kind.h"
#include "nn/models/model.h"
#include "nn/train/optimiser.h"
#include "peer/run/run.h"

enum { SGD_INIT_MAX = 17 }; /* Size of "none" or 16 hexadecimal digits, with the NUL. */

/* Table of the SGD trainer's run keys, and the function that checks their values. */
extern const struct run_trainer sgd_keys;

/* Values of the SGD trainer's run keys. Texts are in canonical form. */
struct sgd_values
{
    /* Spec of the model, such as "resnet:20" (nn/models/model.h). */
    char model[RUN_SPEC_MAX];
    /* Kind of norm layers. MODEL_BATCH_NORM if the model has no norm layers. */
    enum model_norm norm;
    /* Source of the initial model. "none": drawn from the seed. 16 hexadecimal digits: vec_hash()
     * of a model file, which must be the same at every peer. */
    char init[SGD_INIT_MAX];
    /* Kind of the data, such as "mnist", never a path. The kind of a complete run determines the
     * shape and normalisation of the samples. Before the files are read, a kind such as "csv" does
     * not. */
    char data[DATA_KIND_MAX];
    /* Random changes to training images, such as "crop+flip" (nn/data/augment.h). */
    char augment[AUGMENT_SPEC_MAX];
    /* How samples are split into shards (nn/shards/split.h). */
    char skew[RUN_SPEC_MAX];
    /* Mini-batch size of one learner. A learner is a model that the process trains. */
    uint32_t batch;
    /* Number of learners (models) that one process trains (nn/train/learners.h). */
    uint32_t learners;
    /* Momentum of the central model to which all learners (models) of a process are pulled. Used if
     * `learners` > 1. */
    double learner_momentum;
    enum optimiser_kind optimiser;
    /* Learning rate, momentum (Adam: beta1) and weight decay. */
    double lr, momentum, weight_decay;
    double beta2; /* Adam's beta2. Used by Adam and AdamW. */
    /* Nesterov momentum, for SGD only. Other optimisers and the momentum kind decentlam ignore the
     * field, which is then true. */
    bool nesterov;
    /* Kind of the momentum, as an index in momentum_kind_all[] (nn/train/round_momentum.h). */
    uint32_t momentum_kind;
    /* Label smoothing: share of each training label that is spread over all classes, 0 to 0.9. */
    double label_smoothing;
    /* Gradient clipping: no gradient has a norm above clip / sqrt(min_peers * learners). 0: no
     * clipping. */
    double clip;
    uint64_t warmup; /* Number of rounds of linear warm-up of the learning rate. */
    enum schedule_kind schedule;
};

/* Returns the trainer's values of a run. The result points into `r`. Asserts that `r` is a run of
 * the SGD trainer. */
const struct sgd_values *sgd_values(const struct run *r);

/* Checks whether --momentum-kind auto may choose `qg` for the run, apart from whether the data of the
 * peers differ. The momentum kind of `r` has no effect. Returns 0, or -EINVAL with a message that
 * names the key that prevents `qg`. */
__attribute__((warn_unused_result)) int sgd_check_auto_qg(const struct run *r,
                                                          char error[RUN_ERROR_MAX]);

/* Returns the number of samples in one local step of a process: one mini-batch per learner. */
static inline uint32_t sgd_samples(const struct run *r)
{
    return sgd_values(r)->batch * sgd_values(r)->learners;
}

#endif
