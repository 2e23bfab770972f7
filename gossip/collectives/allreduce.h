/* gossip/collectives/allreduce.h -- a control arm: after each round's local steps all models become their mean.
 *
 *   x_i(t+1/2) = x_i(t) after H local steps        x_i(t+1) = mean over all j of x_j(t+1/2)
 *
 * What is averaged is models. With H = 1 that is the same as averaging gradients g_j: all start from
 * the same x, so the mean of x - eta g_j is x - eta mean(g_j). It holds with momentum, Nesterov's too,
 * and with weight decay, since a velocity is linear in the gradients, and the mean of the velocities
 * is the velocity of the mean gradient; only rounding differs. With --clip or Adam, which are not
 * linear, or H > 1 it is local SGD (Stich 2019), whose models are averaged.
 *
 * The sum is made by peer/node/collectives/allreduce.h along a schedule of collective.h, and is the
 * result of the round (control_arm.h).
 */
#ifndef GOSSIP_COLLECTIVES_ALLREDUCE_H
#define GOSSIP_COLLECTIVES_ALLREDUCE_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_allreduce;

#endif
