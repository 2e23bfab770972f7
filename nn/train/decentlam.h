/* nn/train/decentlam.h -- DecentLaM momentum (`decentlam`), for SGD.
 *
 * Source: Yuan, Chen, Huang, Zhang, Pan, Xu, Yin 2021, "DecentLaM: Decentralized Momentum SGD for
 * Large-Batch Deep Training". The update is the one of the implementation in
 * yukiTakezawa/MomentumTracking (optimizer/decentlam_optimizer.py). Equation numbers of the paper
 * were not checked. One step per round, with gradient g, learning rate lr, momentum factor beta and
 * mixing matrix W:
 *
 *   y  = x - lr g
 *   g' = (x - W y) / lr
 *   u  = beta u + g'
 *   x  = x - lr u
 *
 * With a constant lr this equals x(t+1) = W y(t) + beta (x(t) - x(t-1)): the momentum is added
 * after the mixing and is not mixed again. The momentum therefore does not amplify the bias of a
 * peer's own data by 1 / (1 - beta), as local momentum does.
 *
 * Here the mixer computes W y, from replicas, and a round has H local steps. The second form is
 * used, with u in units of the model:
 *
 *   start of round t+1    u = beta u + x(t) - W y(t);  x(t+1) = x(t) - u
 *   local steps           x <- x - lr g, without momentum, from x(t+1) to y(t+1)
 *   after them            the mixer sends deltas of y(t+1) and computes W y(t+1)
 *
 * For H = 1, exact exchange and constant lr this is the published update
 * (tests/unit/nn_decentlam.c). If lr changes, the first form multiplies beta by lr(t) / lr(t-1).
 * This factor also scales the contribution of the mixing, which is not proportional to lr, and the
 * models diverge if the product exceeds 1 for several rounds. The momentum of a round is added at
 * once, because a part that was spread over the local steps would be mixed by W. A model that is
 * evaluated, stored or sent to a joining peer is W y(t), without the momentum of the next round.
 *
 * Stability. On a quadratic function with lr below 1 / curvature, and symmetric W, a deviation mode
 * follows z^2 - (l + beta) z + beta = 0, where l is real and not smaller than the smallest
 * eigenvalue of W. The mode decays for -(1 + 2 beta) < l < 1, by sqrt(beta) per round unless l is
 * close to 1. Every W with a consensus step size of at most 1 satisfies this bound. The published
 * analysis is known to want a W without negative eigenvalues (the lazy matrix (I + W) / 2); on a
 * constant graph that is --gamma 0.5. It is not enforced, because the bound above does not need it.
 *
 * W must be constant. If the mixing changes from round to round, momentum carries the models past
 * each other in the rounds that do not mix them. Example: if a mode is mixed completely in one
 * round of 4 and not in the others, the product of 4 rounds has an eigenvalue below -1 for beta =
 * 0.9. With --overlap 1, the delayed exchange gives z^2 - (1 + beta) z + (1 + beta - l) = 0, which
 * diverges for l < beta. A lossy codec is a feedback of this kind, too: the momentum repeats what a
 * delta has left out. On 8 peers with quadratic losses and beta = 0.9, qsgd:4 and topk:0.9 give the
 * same distance between models as no codec, and qsgd:3 and topk:0.8 make it grow. Only precise
 * codecs are therefore allowed (peer/run/codec_precision.h). At beta = 0.98, qsgd:4 and sessions
 * that are lost also make it grow, and at 0.95 they do not, so beta may be at most 0.95.
 */
#ifndef NN_TRAIN_DECENTLAM_H
#define NN_TRAIN_DECENTLAM_H

#include "nn/train/momentum_kind.h"

extern const struct momentum_kind momentum_decentlam;

#endif
