/* nn/train/outer_optimiser.h -- Nesterov momentum over rounds (--outer), as in DiLoCo.
 *
 * Source: Douillard et al. 2023, "DiLoCo". The local steps of a round move a model from x to x + D.
 * The outer optimiser takes -D as a gradient (*pseudo-gradient*) and replaces x + D by z:
 *
 *   round t     x(t)  --H local steps-->  x(t) + D  --outer step-->  z  --exchange-->  x(t+1)
 *
 *   u <- mu u + D
 *   z  = x(t) + lr (D + mu u)       with the new u
 *
 * This is torch.optim.SGD(lr, momentum=mu, nesterov=True) with the gradient -D, in DiLoCo's code,
 * too. lr is the outer learning rate and mu the outer momentum. If D is constant, a round moves the
 * model by lr / (1 - mu) times D. The peers compress and exchange z instead of x + D.
 *
 * Each peer has its own u. The exchanges of Edge-CHOCO keep the mean of the models, with every
 * codec, on every graph and if sessions are lost. All formulas are linear. If exchanges keep the
 * mean, the means over all peers therefore follow the recursion of DiLoCo exactly:
 *
 *   mean u <- mu mean u + mean D,   mean x(t+1) = mean x(t) + lr (mean D + mu mean u)
 *
 * u belongs to successive rounds. If a peer skips rounds, u becomes 0. Running statistics have no
 * outer optimiser, because they are averages already.
 */
#ifndef NN_TRAIN_OUTER_OPTIMISER_H
#define NN_TRAIN_OUTER_OPTIMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state; /* An object that reads or writes a checkpoint (nn/math/state.h). */

struct outer_optimiser
{
    double lr, momentum; /* Outer learning rate, and outer momentum in [0, 1). */
    /* Outer momentum buffer: n floats. NULL: the run has no outer optimiser. */
    float *u;
    size_t n; /* Number of trained parameters. */
    /* Round in which the outer momentum u is used next. UINT64_MAX: u is used in the next round,
     * whatever its number is. */
    uint64_t round;
};

/* outer_optimiser_init() allocates u = 0 for n trained parameters. Returns 0 or -ENOMEM.
 * outer_optimiser_close() frees u and sets all fields to 0. A struct whose fields are all 0 may be
 * closed, too. */
__attribute__((warn_unused_result)) int outer_optimiser_init(struct outer_optimiser *o, double lr,
                                                             double momentum, size_t n);
void outer_optimiser_close(struct outer_optimiser *o);

/* Does the outer step of `round`: replaces x by before + lr (D + mu u). `before` is the model
 * before the local steps of the round, and D = x - before. Sets u to 0 first if u does not belong
 * to this round. O(n). */
void outer_optimiser_step(struct outer_optimiser *o, float *x, const float *before, uint64_t round);

/* Sets u to 0. Must be called after a rollback, because u then contains the diverged update. */
void outer_optimiser_reset(struct outer_optimiser *o);

/* Copies the outer momentum u of another peer, which came with the model x of that peer. Refuses a
 * u that is not finite or is longer than 4 / lr times |x - x0|, the distance from the initial model
 * x0. After a refusal, o->u is 0. Returns whether u was copied. */
bool outer_optimiser_take(struct outer_optimiser *o, const float *u, const float *x,
                          const float *x0);

/* Reads or writes the outer momentum u in a checkpoint, in sections of its own. Does nothing
 * without an outer optimiser. */
void outer_optimiser_state(struct outer_optimiser *o, struct state *s);

#endif
