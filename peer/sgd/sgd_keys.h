/* peer/sgd/sgd_keys.h -- the run keys of the trainer that we bring (nn/train/sgd_trainer.h).
 *
 * A run whose flags or text were read with &sgd_keys has these beside the core's
 * (peer/run/run.h); sgd_values() reads them.
 */
#ifndef PEER_SGD_SGD_KEYS_H
#define PEER_SGD_SGD_KEYS_H

#include "nn/data/augment.h"
#include "nn/data/kind.h"
#include "nn/models/model.h"
#include "nn/train/optimiser.h"
#include "peer/run/run.h"

enum { SGD_INIT_MAX = 17 }; /* Bytes of "none" or 16 hex digits, with the NUL. */

extern const struct run_trainer sgd_keys;

/* Specs keep their canonical text. */
struct sgd_values
{
    char model[RUN_SPEC_MAX];
    enum model_norm norm; /* MODEL_BATCH_NORM where the model has none. */
    /* Where the initial model comes from: "none", the seed; else a file, and
     * this is vec_hash() of what it holds, the same at every peer. */
    char init[SGD_INIT_MAX];
    /* The kind only ("mnist"), never a path: kind fixes shape and
     * normalisation. Before a run is fixed it may be an open kind ("csv"). */
    char data[DATA_KIND_MAX];
    char augment[AUGMENT_SPEC_MAX];
    char skew[RUN_SPEC_MAX]; /* How samples fall to shards (nn/shards/split.h). */
    uint32_t batch;          /* One learner's. */
    uint32_t learners;       /* In each process: nn/train/learners.h. */
    double learner_momentum; /* Several ask: of their centre; else the default. */
    enum optimiser_kind optimiser;
    double lr, momentum, weight_decay; /* Adam's momentum is its beta1. */
    double beta2;                      /* Adam asks; else the default. */
    bool nesterov;                     /* SGD asks; else true. */
    bool quasi_global;                 /* SGD asks; else false: its momentum's kind. */
    double label_smoothing;
    double clip;     /* Longest sum of all peers' and learners' gradients; 0: no limit. */
    uint64_t warmup; /* Rounds. */
    enum schedule_kind schedule;
};

/* A run's, borrowed from it. Asserts that it is a run of this trainer. */
const struct sgd_values *sgd_values(const struct run *r);

/* Samples of one local step of a process: a batch of each learner. */
static inline uint32_t sgd_samples(const struct run *r)
{
    return sgd_values(r)->batch * sgd_values(r)->learners;
}

#endif
