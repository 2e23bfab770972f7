/* gossip/mixers/average.h -- averages compressed model updates, with or without error feedback.
 *
 * The algorithm, for peer i of n with a common model x (Stich, Cordonnier, Jaggi 2018, algorithm
 * 1 in its parallel form; the all-gather of GRACE):
 *
 *   D_i = change of x by the local steps
 *   p_i = e_i + D_i         e_i is the error memory, 0 at first; without memory p_i = D_i
 *   x   = x + mean of C(p_i)
 *   e_i = p_i - C(p_i)
 *
 * With exchanges over edges, one job of a peer is:
 *
 *   mix      per committing edge: x += w (C_theirs - C_own), memory -= C_own
 *   steps    u = x; local steps: x = u + D; every memory += D
 *   encode   C of the edge's memory (of D without error feedback);
 *            x = u + C_own, so x contains only updates that were sent
 *
 * Topology. On a complete graph w = 1/n, and x equals the algorithm's x on all peers. On another
 * graph an update travels one hop only. The models are X = W S, where S holds the sum of each
 * peer's updates, and drift apart until the consensus phase corrects them (correction.h). For a
 * quadratic loss with optimum X*, gradient descent moves S by -lr (W S - X*). Along an eigenvector
 * of W with a negative eigenvalue (-1/3 on a ring of 8), S then grows without bound. On such graphs
 * w is therefore halved: (I + W) / 2 has no negative eigenvalue. An exchange is equal and opposite,
 * so on any graph the mean moves by the mean of the C_own.
 *
 * Memory. Each replica has an error memory. Edges that have committed the same deltas (edges "in
 * step") share one replica and its memory. An edge that missed an exchange ("out of step") has
 * its own, and later receives the updates that it missed. `withheld` is the part of a peer's own
 * updates that is not in x. While all edges are in step, it equals the memory. With several
 * memories, x moves by the mean of the updates sent. At any time, up to rounding,
 *
 *   sum of (x + withheld) over peers = x0 n + sum of all D
 *
 * An edge that is reset has a = b = x0 and takes `withheld` as its memory, so old updates are not
 * sent again. If a job encodes no update (the peer has no neighbour, or all edges wait), the
 * local steps D stay in x and enter no memory.
 *
 * Consensus phase. If updates reach all peers, models become equal by updates alone. Updates
 * then continue with D = 0 until the memories are empty. A correction would first push equal
 * models apart, because replicas are sums of updates rather than models, and would cost many
 * times the bytes. A peer that has once sent a correction continues to send corrections. This table
 * shows when a peer begins to send them:
 *
 *   condition                                        deltas in the consensus phase
 *   the topology is not complete                     corrections
 *   an edge is out of step                           corrections
 *   the consensus distance is over the target        corrections
 *   the consensus distance is unknown or in target   updates
 *   a neighbour sends corrections                    corrections (both ends are needed)
 *
 * DGC (Lin et al. 2018) is this mixer with error feedback and top-k. DGC's momentum correction
 * needs no code: the memory receives D = -lr * velocity, which contains the momentum, rather than
 * the gradient. DGC's factor masking is the function sent() of the trainer, which gets the result
 * of mixing_sent(). Its gradient clipping is in nn/train/optimiser.h. Weight decay is part of D,
 * so the memory delays it, whereas DGC's code applies it at once.
 */
#ifndef GOSSIP_MIXERS_AVERAGE_H
#define GOSSIP_MIXERS_AVERAGE_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_average;

/* Returns the part of the sum of all local updates that no delta has contained yet, dim floats. The
 * model x does not contain this part either. NULL without error feedback. */
const float *average_withheld(const struct mixing *m);

#endif
