/* nn/train/quasi_global.h -- momentum computed from the change of the model over a round.
 *
 * Source: Lin, Karimireddy, Stich, Jaggi 2021, "Quasi-Global Momentum". If peers have different
 * data, the momentum of a peer's own gradients points in another direction than the common progress
 * of all peers. The change of a peer's model over a whole round, with local steps and exchange, is
 * closer to the common direction and needs no message:
 *
 *   round t     x(t)  --H local steps-->  x'  --exchange-->  x(t+1)
 *
 *   a step      x <- x - lr (g + mu m)           Nesterov:  x <- x - lr (g + mu (g + mu m))
 *   a round     m <- mu m + (1 - mu) (x(t) - x(t+1)) / (lr H)
 *
 * Here g is a gradient, lr the learning rate, H the number of local steps and mu the momentum
 * factor. m is constant within a round (`held` in optimiser.h). m is updated at the start of the
 * next round, with the lr and H of the finished round. If a peer skipped a round or has just
 * joined, it lacks x(t) or x(t+1), and m does not change.
 *
 * m also contains the effect of the exchange. For an eigenvalue l of the mixing matrix, this effect
 * decays if l > -(1 + mu) / (1 + 3 mu - 2 mu^2). This bound is -0.74 in the worst case (mu = 0.43),
 * and -0.91 at mu = 0.9. All eigenvalues of a ring or a torus satisfy the bound. A consensus step
 * size above 1 may violate it.
 */
#ifndef NN_TRAIN_QUASI_GLOBAL_H
#define NN_TRAIN_QUASI_GLOBAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state; /* Reader or writer of a checkpoint (nn/math/state.h). */

struct quasi_global
{
    float *begin;   /* Model at the start of round `round`, n floats. */
    size_t n;       /* Number of trained parameters. */
    uint64_t round; /* Round of the last call of quasi_global_begin(). */
    /* Learning rate of round `round` times its number of local steps. 0: no round has begun yet, or
     * the learning rate was 0. */
    double way;
};

/* Allocates the state for n trained parameters. Returns 0 or -ENOMEM. quasi_global_close() also
 * accepts a struct of zeros. */
__attribute__((warn_unused_result)) int quasi_global_init(struct quasi_global *q, size_t n);
void quasi_global_close(struct quasi_global *q);

/* Begins round `round`, at the model x. `way`: learning rate times number of local steps of this
 * round. If the last call was for round - 1, updates the momentum m (n floats) from the change of
 * the model since that call. `mu`: momentum factor, in (0, 1). */
void quasi_global_begin(struct quasi_global *q, const float *x, uint64_t round, double way,
                        double mu, float *m);

/* Reads or writes the state in a checkpoint: the fields `round` and `way` in the section that is
 * open, and the model `begin` in a section of its own. */
void quasi_global_state(struct quasi_global *q, struct state *s);

#endif
