/* gossip/mixers/allreduce.h -- a control arm: after each round's local steps all models become their mean.
 *
 *   x_i(t+1/2) = x_i(t) after H local steps        x_i(t+1) = mean over all j of x_j(t+1/2)
 *
 * What is averaged is models. With H = 1 that is the same as averaging gradients g_j: all start from
 * the same x, so the mean of x - eta g_j is x - eta mean(g_j). It holds with momentum, Nesterov's too,
 * and with weight decay, since a velocity is linear in the gradients, and the mean of the velocities
 * is the velocity of the mean gradient; only rounding differs. With --clip or Adam, which are not
 * linear, or H > 1 it is local SGD (Stich 2019), whose models are averaged.
 *
 * The sum is made by peer/node/collect.h along a schedule of gossip/collective, and comes here as
 * mixing.mean. Edges (of a complete graph) carry no values in training: an empty delta is how peers
 * keep lock step, and what the drift's sketches ride on. The last phase has nothing to do but to find
 * out that models are equal; where faults have left one apart, and only there, it corrects
 * (correction.h) as that of `average` does.
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
 */
#ifndef GOSSIP_MIXERS_ALLREDUCE_H
#define GOSSIP_MIXERS_ALLREDUCE_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_allreduce, mixer_sma;

#endif
