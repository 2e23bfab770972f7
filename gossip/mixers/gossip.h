/* gossip/mixers/gossip.h -- pairwise averaging: two peers per edge take the mean of their models.
 *
 *   x_i, x_j  <-  (x_i + x_j) / 2        after the local steps (--overlap 0)
 *
 * The topology decides which peers are partners in a round (topology/round_schedule.h):
 *
 *   matching:K             random pairs, which is randomised gossip (Boyd et al. 2006)
 *   one-peer-exponential   GossipGraD (Daily et al. 2018); each peer's data reaches all
 *                          peers after log2(n) rounds
 *   rotation:R             GossipGraD with R orders of the peers in turn
 *
 * A topology that gives a peer more than one partner per round is rejected, because its mixing
 * weights are not 1/2. In the GossipGraD paper a peer sends to one peer and receives from another
 * peer. Here an exchange is mutual, so a failed exchange does not change the mean of the models.
 * Whole models travel as described in exact.h, with step size 1.
 */
#ifndef GOSSIP_MIXERS_GOSSIP_H
#define GOSSIP_MIXERS_GOSSIP_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_gossip;

#endif
