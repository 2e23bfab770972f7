/* gossip/mixers/dpsgd.h -- D-PSGD: exact averaging with all neighbours.
 *
 * Lian et al. 2017, algorithm 1: x_i <- sum over j of w_ij x_j, and a local step. Here with a step size
 * gamma, x_i += gamma sum over j of w_ij (x_j - x_i), which is 1 unless it is given, and may be over it:
 * without gradients models come together fastest with 2 / (2 - lambda_2 - lambda_n) of the mixing matrix,
 * 1.308 on a ring of 8 (struct spectrum); with them that costs accuracy. How it runs on edges stands in
 * exact.h.
 */
#ifndef GOSSIP_MIXERS_DPSGD_H
#define GOSSIP_MIXERS_DPSGD_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_dpsgd;

#endif
