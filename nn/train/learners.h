/* nn/train/learners.h -- several learners in one process, each with its own model near a common
 * centre.
 *
 * Synchronous model averaging of CROSSBOW (Koliousis et al. 2019, algorithm 1). Each of the K
 * learners j trains its own model x_j on its own small batches, with its own momentum. The node
 * only sees the centre z, which it exchanges and evaluates. With g_j the gradient at x_j and c_j =
 * (x_j - z) / K, one local step is
 *
 *   x_j <- x_j - (step of g_j) - c_j          the learner steps and is pulled towards the centre
 *   z   <- z + sum_j c_j + mu (z - z_before)  the centre moves to the learners' mean, with momentum
 *
 * The learners store their models relative to the centre, and the centre stores its last change:
 *
 *   apart_j = x_j - z         velocity = z - z_before
 *
 * An exchange between two steps changes z, and thereby moves all learners by the same amount. The
 * mean of the learners then moves by the whole exchange, as the theory of every mixer assumes. If
 * learners kept absolute positions, the next step would move z back to their mean, and only 1/K of
 * the exchange would remain. The exchange also moves z_before along with z. The momentum therefore
 * contains training only, and exchanges do not overshoot.
 *
 * The centre is one step late: a step moves it to the mean that the learners had at the start of
 * the step. The running statistics of normalisation layers are not kept per learner, because no
 * gradient depends on them. The centre's statistics are the mean of the values that the learners
 * compute in a step.
 */
#ifndef NN_TRAIN_LEARNERS_H
#define NN_TRAIN_LEARNERS_H

#include <stddef.h>
#include <stdint.h>

struct state; /* An object that reads or writes a checkpoint (nn/math/state.h). */

enum { LEARNERS_MAX = 64 };

struct learners_config
{
    uint32_t n;       /* Number of learners K, from 2 to LEARNERS_MAX. */
    uint32_t at_once; /* Number of learners that compute at the same time. */
    size_t n_params;
    /* Number of trained parameters. They come first in a vector, before running statistics. */
    size_t n_trained;
    /* Momentum factor mu of the centre (the average model of the learners), in [0, 1). */
    double momentum;
};

struct learners
{
    /* If there is only one learner, config.n is 0 and the other fields are not used. */
    struct learners_config config;
    float pull; /* 1 / K, where K is the number of learners. */
    /* Difference between each learner's model and the centre: n vectors of n_params floats. At the
     * indices of running statistics: change of the statistics in the current step. */
    float *apart;
    /* Change of the centre z (the average model of the learners) in the last step, n_trained
     * floats. */
    float *velocity;
    float *x; /* Models of the learners that compute now: at_once vectors of n_params floats. */
};

/* Allocates the state; all learners begin at the centre. Returns 0 or -ENOMEM. learners_close()
 * also accepts a struct of zeros. */
__attribute__((warn_unused_result)) int learners_init(struct learners *l,
                                                      const struct learners_config *config);
void learners_close(struct learners *l);

/* A step calls learners_pull(), learners_begin(), learners_end() and learners_move() in this
 * order. learners_pull() and learners_move() are called for ranges of the vector that cover each
 * coordinate once, by any threads. Between them, learners_begin() and learners_end() are called
 * once for each learner. The result has the same bits for every division among threads.
 *
 * learners_pull() computes the velocity of the centre in the range [from, to). */
void learners_pull(struct learners *l, size_t from, size_t to);
/* Begins the step of learner j: writes its model, z + apart_j, to buffer k and returns the buffer.
 * k is below at_once. Learners that compute at the same time must have different buffers. */
float *learners_begin(struct learners *l, uint32_t j, uint32_t k, const float *z);
/* Ends the step of learner j, whose model is in buffer k: stores its new distance from the centre
 * z. */
void learners_end(struct learners *l, uint32_t j, uint32_t k, const float *z);
/* Moves the centre z (the average model of the learners) in the range [from, to). */
void learners_move(const struct learners *l, float *z, size_t from, size_t to);

/* For each trained coordinate k with sent[k] != 0, sets the velocity to 0, because a delta has just
 * sent the whole update of this coordinate. */
void learners_forget(struct learners *l, const float *sent);

/* Reads or writes the state of the learners in its own sections of a checkpoint. Called between two
 * steps. */
void learners_state(struct learners *l, struct state *s);

#endif
