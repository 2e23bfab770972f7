/* nn/train/quasi_global.h -- a momentum made of where the model went, not of our own gradients alone.
 *
 * Lin, Karimireddy, Stich, Jaggi 2021, "Quasi-Global Momentum". Where peers have different data, the
 * velocity of a peer's own gradients points away from where all together go. What its model did over a
 * whole round, local steps and the neighbours' pull, is nearer to that, and costs no message:
 *
 *   round t     x(t)  --H local steps-->  x'  --exchange-->  x(t+1)
 *
 *   a step      x <- x - lr (g + mu m)           Nesterov:  x <- x - lr (g + mu (g + mu m))
 *   a round     m <- mu m + (1 - mu) (x(t) - x(t+1)) / (lr H)
 *
 * m stands still within a round (optimiser.h: `held`). A round is known to be over when the next one
 * begins, and its lr and H are those that it had. Rounds that were left out, by who was away or joins,
 * have no x(t) or no x(t+1): m stays as it is.
 *
 * Where models are mixed, m remembers the pull, too. With an eigenvalue l of the mixing matrix that part
 * dies out wherever l > -(1 + mu) / (1 + 3 mu - 2 mu^2), which is -0.74 at worst (mu = 0.43) and -0.91 at
 * mu = 0.9: any l of a ring or a torus, not any of a step that goes beyond the neighbours' mean.
 */
#ifndef NN_TRAIN_QUASI_GLOBAL_H
#define NN_TRAIN_QUASI_GLOBAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state; /* nn/math/state.h */

struct quasi_global
{
    float *begin;   /* The model as the last round began: n floats. */
    size_t n;       /* Trained parameters. */
    uint64_t round; /* That round, */
    /* Learning rate times H of that round. 0: no such round, or its learning rate was 0. */
    double way;
};

/* 0 or -ENOMEM. Close what was opened, or is all zero. */
__attribute__((warn_unused_result)) int quasi_global_init(struct quasi_global *q, size_t n);
void quasi_global_close(struct quasi_global *q);

/* Round `round` begins at x, with H local steps and way = lr * H: m (n floats) learns of the round before
 * if that is the one before, with momentum mu in (0, 1). */
void quasi_global_begin(struct quasi_global *q, const float *x, uint64_t round, double way,
                        double mu, float *m);

/* For a restart: fields of the open section, and one of floats. */
void quasi_global_state(struct quasi_global *q, struct state *s);

#endif
