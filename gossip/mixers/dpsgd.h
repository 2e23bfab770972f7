/* gossip/mixers/dpsgd.h -- D-PSGD: exact averaging with all neighbours.
 *
 * Lian et al. 2017, algorithm 1: x_i <- sum over j of w_ij x_j, and a local step. Here with a step size
 * gamma, x_i += gamma sum over j of w_ij (x_j - x_i), which may be over 1: without gradients models come
 * together fastest with 2 / (2 - lambda_2 - lambda_n) of the mixing matrix, 1.308 on a ring of 8
 * (dpsgd_step()). How it runs on edges stands in exact.h.
 */
#ifndef GOSSIP_MIXERS_DPSGD_H
#define GOSSIP_MIXERS_DPSGD_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_dpsgd;

/* The best step size on the graph of `spec`, n vertices and the seed, which stands still; 1 of one
 * vertex. At most (1 + d) / d of its largest degree d: with that no subset of its edges, whoever has
 * died, makes models grow apart. On rings and tori that is no limit. Returns as graph_build(). */
int dpsgd_step(const char *spec, uint32_t n, uint64_t seed, double *step);

#endif
