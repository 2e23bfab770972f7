/* gossip/collectives/sma.h -- a control arm: models are pulled to a centre that follows their mean.
 *
 * `sma` is synchronous model averaging (CROSSBOW; Koliousis et al. 2019, section 3): a centre z that all
 * peers keep, bit for bit alike, moves with momentum mu, and pulls each model to itself:
 *
 *   c_j = alpha (x_j - z)    x_j <- x_j - c_j    z <- z + sum of c_j + mu (z - z before)
 *
 * with alpha = 1/n (n: --min-peers), so that z moves to the mean of all models, and on by mu of what it
 * moved last. Here x_j is the model after the round's local steps (the paper takes the gradient at the same
 * point as c_j). Where the members change, or a peer has missed a round, z begins anew at the mean, for all
 * alike. Models differ while they train; the last phase puts z in their place.
 *
 * The mean is made as that of allreduce.h.
 */
#ifndef GOSSIP_COLLECTIVES_SMA_H
#define GOSSIP_COLLECTIVES_SMA_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_sma;

/* Before the first job: alpha, over 0 and at most 1, and mu, from 0 to below 1. Without the call both are 0. */
void sma_set(struct mixing *m, double alpha, double mu);

#endif
