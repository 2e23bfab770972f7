/* gossip/mixers/average.h -- averaging of compressed updates, with or without memory.
 *
 * The textbook form (Stich, Cordonnier, Jaggi 2018, algorithm 1 and its
 * parallel form; GRACE's all-gather), for peer i of n with the common model x:
 *
 *   D_i = what the local steps would add to x
 *   p_i = e_i + D_i         the memory e_i starts at 0; without it p_i = D_i
 *   x   = x + mean of C(p_i)
 *   e_i = p_i - C(p_i)
 *
 * Here it runs on edges. A job of a peer:
 *
 *   mix      per committing edge: x += w (C_theirs - C_own), memory -= C_own
 *   ...      u = x; local steps: x = u + D; every memory += D
 *   encode   C of the edge's memory (of D without error feedback)
 *            x = u + C_own: what we told is what we believe; the rest waits
 *
 * On a complete graph w = 1/n, and x is the textbook's, the same everywhere. On any
 * other graph an update goes one hop: models are X = W S, S being the
 * sums of all updates of each peer, and drift apart until the last phase
 * corrects them (correction.h). Gradient descent then moves S by -lr (W S - ...):
 * along an eigenvector of W with a negative eigenvalue (ring of 8: -1/3) that
 * grows without end. So there w is half of the edge's: (I + W) / 2 has none.
 * The exchange is equal and opposite, so the mean moves by the mean of the
 * C_own whatever the graph.
 *
 * The memory belongs to a replica: edges in step share one, an edge out of step
 * keeps its own, and so hears later what it missed. `withheld` is what of our
 * own updates is not in x. In step it equals the memory. Where there are
 * several, x gets the mean of what they told, so that at any time
 *
 *   sum of x + withheld over peers = x0 n + sum of all D       (to rounding)
 *
 * An edge that begins anew has a = b = x0 but takes `withheld` for its memory:
 * history is not sent again. A job that encodes no update (alone, all edges
 * wait) leaves D in x and in no memory.
 *
 * The last phase. Updates that reach everybody leave models equal. Then it has only
 * to find that out, and until it has, updates go on with D = 0, so that memories
 * drain: to move equal models together would part them first, as replicas are sums
 * of updates and of no model, and cost many times the bytes.
 *
 *   not everybody is a neighbour                     correct: models are apart
 *   an edge is out of step, and so not told all      correct
 *   the drift is known: over the target              correct
 *                       under it, or not known yet   updates go on
 *   a neighbour corrects                             correct: it is of use by two
 *
 * DGC (Lin et al. 2018) is this with error feedback and top-k: its momentum
 * correction is what local momentum gives, as D = -lr * velocity and not the
 * gradient goes into the memory; factor masking is trainer.sent() with
 * mixing_sent(); local gradient clipping is nn/train/optimiser.h's. Weight decay is
 * part of D, and so passes through the memory (and grows stale there), where
 * DGC's code applies it at once.
 */
#ifndef GOSSIP_MIXERS_AVERAGE_H
#define GOSSIP_MIXERS_AVERAGE_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_average;

/* What of our own updates is not in x, dim floats; NULL without error feedback. */
const float *average_withheld(const struct mixing *m);

#endif
