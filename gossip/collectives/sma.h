/* gossip/collectives/sma.h -- the SMA baseline: models are pulled to a centre near their mean.
 *
 * Synchronous model averaging (CROSSBOW; Koliousis et al. 2019, section 3). All peers hold a
 * bitwise equal centre z, which moves with momentum mu and pulls each model towards itself:
 *
 *   c_j = alpha (x_j - z)    x_j <- x_j - c_j    z <- z + sum of c_j + mu (z - z before)
 *
 * With alpha = 1/n (n is --min-peers), z moves to the mean of all models plus mu times its last
 * move. x_j is the model after the round's local steps, whereas the paper computes c_j from the
 * model before the step. When members change or a peer has missed a round, z restarts at the mean
 * on all peers. Models differ during training; the consensus phase replaces them by z.
 *
 * The mean is computed as in allreduce.h.
 */
#ifndef GOSSIP_COLLECTIVES_SMA_H
#define GOSSIP_COLLECTIVES_SMA_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_sma;

/* Sets the pull alpha, in (0, 1], and the momentum mu, in [0, 1). Called before the first job;
 * both are 0 by default. */
void sma_set(struct mixing *m, double alpha, double mu);

#endif
