/* peer/node/step/evaluation.h -- decides after which rounds of training a model is evaluated, and
 * on how many samples.
 *
 * By default the run is divided into EVALUATION_PARTS equal parts, with an evaluation after each
 * part but the last:
 *
 *   round  0 ---- 1/10 ---- 2/10 ---- ... ---- 9/10 ---- end (evaluated separately, on all samples)
 *
 * To evaluate a sample costs about a third of training on it, because there is no backward pass.
 * Evaluations may cost at most 2 % of the training. A short run therefore uses fewer samples per
 * evaluation, and a very short run has fewer evaluations, or none.
 *
 * The default depends on the run only, so all peers evaluate after the same rounds. Evaluations do
 * not affect training.
 */
#ifndef PEER_NODE_STEP_EVALUATION_H
#define PEER_NODE_STEP_EVALUATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Default number of parts of a run, with an evaluation after each part but the last. */
    EVALUATION_PARTS = 10,
    EVALUATION_SAMPLES = 1000, /* Largest number of samples of one evaluation, by default. */
    /* Least number of samples of one evaluation. With fewer, its result varies too much by
     * chance. */
    EVALUATION_LEAST = 100
};

#define EVALUATION_COST 0.02 /* Largest cost of all evaluations, as a share of the training time. */
#define EVALUATION_SPEED                                                                           \
    3.0 /* Number of samples assumed to be evaluated in the time of training on one sample. */

/* After which rounds a model is evaluated, and on how many samples. */
struct evaluation
{
    uint64_t every; /* Number of rounds between two evaluations. 0: `parts` decides. */
    /* Number of equal parts of the run, with an evaluation after each part but the last. 0 or 1: no
     * evaluation. */
    uint32_t parts;
    uint64_t samples; /* Number of samples of one evaluation. 0: all held-out samples. */
};

/* Returns the default for a run of `rounds` rounds. samples_a_round: number of samples on which a
 * peer trains in one round. 0: not known, so there are no evaluations. */
struct evaluation evaluation_plan(uint64_t rounds, uint64_t samples_a_round);

/* Returns whether training evaluates the model after `done` of `rounds` rounds. `rounds` must be
 * below 2^58. Always false after 0 rounds. If e->every is 0, also false at the end of the run,
 * because the final model is evaluated separately. */
bool evaluation_due(const struct evaluation *e, uint64_t rounds, uint64_t done);

/* Returns whether one of the e->parts parts of the run has ended since round `from`, so that an
 * evaluation was due in the rounds (from, done]. Ignores e->every. Always false at the end of the
 * run. For callers that do not ask after every round. */
bool evaluation_passed(const struct evaluation *e, uint64_t rounds, uint64_t from, uint64_t done);

#endif
