/* gossip/mixers/dpsgd.h -- D-PSGD: exact averaging of models with all neighbours.
 *
 * Lian et al. 2017, algorithm 1: x_i <- sum over j of w_ij x_j, followed by a local step. This
 * implementation adds a step size gamma, 1 by default:
 *
 *   x_i += gamma * sum over j of w_ij (x_j - x_i)
 *
 * gamma may exceed 1. Without gradients, models converge fastest at gamma = 2 / (2 - lambda_2 -
 * lambda_n), with the second-largest and the smallest eigenvalue of the mixing matrix (struct
 * spectrum). On a ring of 8 that is 1.308. With gradients, such a gamma costs accuracy. exact.h
 * describes how the models travel on edges.
 */
#ifndef GOSSIP_MIXERS_DPSGD_H
#define GOSSIP_MIXERS_DPSGD_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_dpsgd;

#endif
