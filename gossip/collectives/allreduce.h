/* gossip/collectives/allreduce.h -- the all-reduce baseline: models become their mean after each
 * round.
 *
 *   x_i(t+1/2) = x_i(t) after H local steps        x_i(t+1) = mean over all j of x_j(t+1/2)
 *
 * Models are averaged, not gradients. With H = 1, averaging gradients would give the same result up
 * to rounding: all peers start from the same x, so the mean of x - eta g_j is x - eta mean(g_j).
 * This also holds with momentum (including Nesterov) and weight decay, because a velocity is linear
 * in the gradients. With --clip, Adam or H > 1 the algorithm is local SGD (Stich 2019).
 *
 * peer/node/collectives/allreduce.c computes the sum with one of the schedules of collective.h
 * and passes the mean to the mixer as the result of the round (control_arm.h).
 */
#ifndef GOSSIP_COLLECTIVES_ALLREDUCE_H
#define GOSSIP_COLLECTIVES_ALLREDUCE_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_allreduce;

#endif
