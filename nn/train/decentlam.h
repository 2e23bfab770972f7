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
 * With a constant lr this equals x(t+1) = W y(t) + beta (x(t) - x(t-1)), the *second form*: the
 * momentum is added after the mixing and is not mixed again. Local momentum amplifies the bias of a
 * peer's own data by 1 / (1 - beta). This momentum does not.
 *
 * Here the mixer computes W y, from replicas, and a round has H local steps. The second form is
 * used, with u in units of the model:
 *
 *   start of round t+1    u = beta u + x(t) - W y(t);  x(t+1) = x(t) - u
 *   local steps           x <- x - lr g, without momentum, from x(t+1) to y(t+1)
 *   after them            the mixer sends deltas of y(t+1) and computes W y(t+1)
 *
 * For H = 1, exact exchange and constant lr this is the published update
 * (tests/unit/nn_decentlam.c). If lr changes, the published form multiplies beta by lr(t) /
 * lr(t-1). This factor also scales the contribution of the mixing, which is not proportional to lr.
 * The models diverge if beta times this factor exceeds 1 for several rounds. The momentum of a
 * round is added before its local steps. If it were spread over the local steps, W would mix a part
 * of it. A model that is evaluated, stored or sent to a joining peer is W y(t), without the
 * momentum of the next round.
 *
 * Stability. Take a quadratic function with lr below 1 / curvature, and a symmetric W. In each
 * round, a mode (eigenvector) of the differences between the models is multiplied by a root z of
 * z^2 - (l + beta) z + beta = 0. Here l is real and at least the smallest eigenvalue of W. The mode
 * decays for -(1 + 2 beta) < l < 1, by sqrt(beta) per round unless l is close to 1. Every W
 * with a consensus step size of at most 1 satisfies this bound. The published analysis needs a W
 * without negative eigenvalues, such as (I + W) / 2, which is --gamma 0.5 on a constant graph. The
 * program does not require this, because the bound above allows negative eigenvalues.
 *
 * W must be constant. If the mixing changes from round to round, momentum carries the models past
 * each other in the rounds that do not mix them. Example: if a mode is mixed completely in one
 * round of 4 and not in the others, the product of 4 rounds has an eigenvalue below -1 for beta =
 * 0.9. With --overlap 1, the delayed exchange gives z^2 - (1 + beta) z + (1 + beta - l) = 0, so a
 * mode with l < beta diverges. A lossy codec has a similar effect: the momentum repeats what a
 * delta has left out. This was measured on 8 peers with quadratic losses and beta = 0.9. The
 * distance between the models is the same with qsgd:4, with topk:0.9 and without a codec. With
 * qsgd:3 and topk:0.8 the distance grows. Only precise codecs are therefore allowed
 * (peer/run/codec_precision.h). With qsgd:4 or lost sessions, the distance grows at beta = 0.98 but
 * not at 0.95. Therefore beta may be at most 0.95.
 */
#ifndef NN_TRAIN_DECENTLAM_H
#define NN_TRAIN_DECENTLAM_H

#include "nn/train/momentum_kind.h"

extern const struct momentum_kind momentum_decentlam;

#endif
