/* gossip/collectives/ps.h -- the worker of the parameter-server baseline (--mixer ps).
 *
 * A parameter server (Li et al. 2014) holds the model. A worker pushes the compressed change of
 * its model by the local steps, plus what earlier pushes omitted. It starts the next round from
 * the server's answer (centre.h):
 *
 *   p = e_i + (x_i - base)    change since the last answer `base`, plus what earlier pushes omitted
 *   send C(p) to the server
 *   e_i = p - C(p)
 *   base = x_i = answer of the server
 *
 * If the codec omits nothing and all workers push once per round, the result is the mean of
 * all models, as in allreduce.h.
 */
#ifndef GOSSIP_COLLECTIVES_PS_H
#define GOSSIP_COLLECTIVES_PS_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_ps;

/* Returns the model from which the last local steps started: the server's last answer, n_floats
 * values. Sets *round to the round of that answer, or to 0 if there was none and the model is the
 * initial model x0. Called between jobs. */
const float *ps_base(const struct mixing *m, uint64_t *round);
/* Writes the push of `round` to `out` after the local steps of the round. Returns its length in
 * bytes, at most ps_push_bound(), or 0 if the model is not finite. A second call for the same round
 * writes the same bytes, unless the codec depends on its previous message. O(dim). */
size_t ps_push(struct mixing *m, uint64_t round, uint8_t *out);
size_t ps_push_bound(const struct mixing *m);

#endif
