/* nn/train/round_momentum.h -- the list of the kinds of momentum, and the state of a kind that
 * learns from the change of the model over a round.
 */
#ifndef NN_TRAIN_ROUND_MOMENTUM_H
#define NN_TRAIN_ROUND_MOMENTUM_H

#include "nn/train/momentum_kind.h"

struct state; /* An object that reads or writes a checkpoint (nn/math/state.h). */

extern const struct momentum_kind momentum_local;
/* All kinds, terminated by NULL, in the order of the choices of the run key `momentum-kind`. */
extern const struct momentum_kind *const momentum_kind_all[];

/* State of a kind of momentum that learns from the change of the model over a round. */
struct round_momentum
{
    const struct momentum_kind *kind;
    float *begin;   /* Model before the local steps of round `round`, n floats. */
    size_t n;       /* Number of trained parameters. */
    uint64_t round; /* Round of the last call of round_momentum_begin(). */
    /* Learning rate of round `round` times its number of local steps. 0: no round has begun yet, or
     * the learning rate was 0. */
    double way;
};

/* Allocates the state for n trained parameters. `kind` has a function learn(). Returns 0 or
 * -ENOMEM. round_momentum_close() also accepts a struct of zeros. */
__attribute__((warn_unused_result)) int round_momentum_init(struct round_momentum *q,
                                                            const struct momentum_kind *kind,
                                                            size_t n);
void round_momentum_close(struct round_momentum *q);

/* Begins round `round`. `u`: the vectors x, m and v and the learning rate of this round. n_steps:
 * number of local steps of this round. If the last call was for round - 1, the momentum is updated
 * by the change of the model since that call. Returns true if the momentum was updated. */
bool round_momentum_begin(struct round_momentum *q, const struct optimiser *o,
                          const struct optimiser_step *u, uint64_t round, uint32_t n_steps);

/* Reads or writes the state in a checkpoint: the model `begin` in a section of its own, and the
 * fields `round` and `way` (learning rate times local steps) in the section that is open. */
void round_momentum_state(struct round_momentum *q, struct state *s);

#endif
