/* nn/train/learners.h -- several learners in one process, each with a model near a common centre.
 *
 * CROSSBOW's synchronous model averaging (Koliousis et al. 2019, algorithm 1): a learner j trains a model
 * x_j on small batches of its own, with momentum of its own; the centre z is what the node sees and
 * exchanges. In each local step, with g_j the gradient at x_j and c_j = (x_j - z) / K,
 *
 *   x_j <- x_j - (step of g_j) - c_j          each is pulled towards the centre
 *   z   <- z + sum_j c_j + mu (z - z_before)  which goes to where they were, and on
 *
 * What is kept of x_j is how far it is from the centre, and of z_before the same:
 *
 *   apart_j = x_j - z         velocity = z - z_before
 *
 * Whatever an exchange does to z between two steps it then does to all of them, by the same amount. So the
 * learners' mean moves as the model does, as every mixer's theory supposes. Had they only been pulled
 * after it, z, which goes to their mean in one step, would forget all but a K-th part of an exchange; and
 * since z_before moves along, too, momentum is of training alone, and no exchange overshoots by it.
 *
 * z comes one step after its learners: it goes to the mean of what they were as the step began. The running
 * statistics of norms, which no gradient reads, have no model of their own: z's are the mean of what each
 * learner makes of them in a step.
 */
#ifndef NN_TRAIN_LEARNERS_H
#define NN_TRAIN_LEARNERS_H

#include <stddef.h>
#include <stdint.h>

struct state; /* nn/math/state.h */

enum { LEARNERS_MAX = 64 };

struct learners_config
{
    uint32_t n;       /* Number of learners K, from 2 to LEARNERS_MAX. */
    uint32_t at_once; /* Number of learners that compute at the same time. */
    size_t n_params;
    size_t n_trained; /* The first of them; the rest are running statistics. */
    double momentum;  /* mu, in [0, 1). */
};

struct learners
{
    struct learners_config config; /* n is 0: there is but one learner, and nothing here. */
    float pull;                    /* 1 / K */
    float *apart;    /* n vectors of n_params. Statistics are of the step under way. */
    float *velocity; /* n_trained */
    float *x;        /* at_once vectors of n_params: a learner's model, while it computes. */
};

/* 0 or -ENOMEM. All learners begin at the centre. Close what was opened, or is all zero. */
__attribute__((warn_unused_result)) int learners_init(struct learners *l,
                                                      const struct learners_config *config);
void learners_close(struct learners *l);

/* A step, in this order. The first and the last are done in ranges of the vector, each coordinate once,
 * by whichever threads; between them each learner j is done once. The same bits however that is shared out.
 *
 * The velocity of [from, to) in this step. */
void learners_pull(struct learners *l, size_t from, size_t to);
/* The j-th learner's model, in the place of the k-th of those that compute at once: to be stepped. */
float *learners_begin(struct learners *l, uint32_t j, uint32_t k, const float *z);
/* Ends the step of learner j, whose gradient was computed. */
void learners_end(struct learners *l, uint32_t j, uint32_t k, const float *z);
/* The centre moves in [from, to). */
void learners_move(const struct learners *l, float *z, size_t from, size_t to);

/* The velocity of trained coordinates with sent[k] != 0 is gone (trainer.h). */
void learners_forget(struct learners *l, const float *sent);

/* For a restart, between steps: sections of floats. */
void learners_state(struct learners *l, struct state *s);

#endif
