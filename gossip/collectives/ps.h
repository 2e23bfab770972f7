/* gossip/collectives/ps.h -- a control arm: the worker's side of the parameter server.
 *
 * `ps` is the parameter server (Li et al. 2014): workers push what their local steps have done, compressed,
 * with what the pushes before left out, and begin the next round at what the server says (centre.h):
 *
 *   p = e_i + (x_i - base)    C(p) to the server    e_i <- p - C(p)    base, x_i <- what comes back
 *
 * Where nothing is left out and all push once a round, that is the mean of all models, as of allreduce.h.
 */
#ifndef GOSSIP_COLLECTIVES_PS_H
#define GOSSIP_COLLECTIVES_PS_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_ps;

/* Between jobs: what the last local steps began at, n_floats, and after which round the server
 * said it; 0: never, and it is x0. */
const float *ps_base(const struct mixing *m, uint64_t *round);
/* The push of this round, whose local steps are done: its bytes, at most ps_push_bound(); 0: they are of
 * no finite model. Called again for the same round it gives the same bytes (but for codecs that remember
 * the message before). O(dim). */
size_t ps_push(struct mixing *m, uint64_t round, uint8_t *out);
size_t ps_push_bound(const struct mixing *m);

#endif
