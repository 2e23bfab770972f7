/* gossip/mixers/gossip.h -- pairwise averaging: in each round a peer meets one other, and both take their mean.
 *
 *   x_i, x_j  <-  (x_i + x_j) / 2        after the local steps (--overlap 0)
 *
 * Randomised gossip (Boyd, Ghosh, Prabhakar, Shah 2006) with the pairs of `matching:K`, which are random;
 * GossipGraD (Daily et al. 2018) with `one-peer-exponential`, where after log2(n) rounds everybody has heard
 * of everybody, and `rotation:R`, which is that with other partners each time. Who meets whom, and when, is
 * the graph's to say (topology/rota.h): one that gives a peer more than one partner a round is refused, as
 * its weights are no halves. The paper's partners are one-way (a peer sends to one and hears another); here
 * an exchange is mutual, so that the mean is kept whatever fails.
 *
 * How whole models travel on edges stands in exact.h; the step is 1.
 */
#ifndef GOSSIP_MIXERS_GOSSIP_H
#define GOSSIP_MIXERS_GOSSIP_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_gossip;

#endif
