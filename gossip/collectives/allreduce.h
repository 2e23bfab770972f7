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
 * The sum is made by peer/node/collectives/allreduce.h along a schedule of gossip/collectives, and comes here as
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
 *
 * `ps` is the parameter server (Li et al. 2014): workers push what their local steps have done, compressed,
 * with what the pushes before left out, and begin the next round at what the server says (centre.h):
 *
 *   p = e_i + (x_i - base)    C(p) to the server    e_i <- p - C(p)    base, x_i <- what comes back
 *
 * Where nothing is left out and all push once a round, that is the mean of all models, as above.
 */
#ifndef GOSSIP_COLLECTIVES_ALLREDUCE_H
#define GOSSIP_COLLECTIVES_ALLREDUCE_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_allreduce, mixer_sma, mixer_ps;

/* For ps, between jobs: what the last local steps began at, n_floats, and after which round the server
 * said it; 0: never, and it is x0. */
const float *ps_base(const struct mixing *m, uint64_t *round);
/* The push of this round, whose local steps are done: its bytes, at most ps_push_bound(); 0: they are of
 * no finite model. Called again for the same round it gives the same bytes (but for codecs that remember
 * the message before). O(dim). */
size_t ps_push(struct mixing *m, uint64_t round, uint8_t *out);
size_t ps_push_bound(const struct mixing *m);

#endif
