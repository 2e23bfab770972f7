/* nn/train/quasi_global.h -- momentum computed from the change of the model over a round.
 *
 * Lin, Karimireddy, Stich, Jaggi 2021, "Quasi-Global Momentum". If peers have different data, the
 * momentum of a peer's own gradients differs from the direction of all peers. The change of its model
 * over a whole round, with local steps and exchange, is closer to that direction and needs no message:
 *
 *   round t     x(t)  --H local steps-->  x'  --exchange-->  x(t+1)
 *
 *   a step      x <- x - lr (g + mu m)           Nesterov:  x <- x - lr (g + mu (g + mu m))
 *   a round     m <- mu m + (1 - mu) (x(t) - x(t+1)) / (lr H)
 *
 * m is constant within a round (optimiser.h: `held`). It is updated when the next round begins, with
 * the lr and H of the finished round. A peer that skipped a round or has just joined lacks x(t) or
 * x(t+1): then m does not change.
 *
 * The exchange also enters m. For an eigenvalue l of the mixing matrix this part decays if
 * l > -(1 + mu) / (1 + 3 mu - 2 mu^2), which is -0.74 in the worst case (mu = 0.43) and -0.91 at
 * mu = 0.9. All eigenvalues of a ring or a torus satisfy this; a step beyond the mean of the neighbours
 * may not.
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
