/* nn/train/quasi_global.h -- quasi-global momentum (`qg`), for SGD, Adam and AdamW.
 *
 * Source: Lin, Karimireddy, Stich, Jaggi 2021, "Quasi-Global Momentum". The change of a peer's
 * model over a whole round is closer to the common direction of all peers than the peer's own
 * gradients. The momentum m follows this change, and is constant during the local steps
 * (MOMENTUM_HELD). d is the change over a round (momentum_kind.h):
 *
 *   d = x(t) - W y(t)
 *
 * SGD. g is a gradient, lr the learning rate, H the number of local steps, mu the momentum factor:
 *
 *   a step      x <- x - lr (g + mu m)           Nesterov:  x <- x - lr (g + mu (g + mu m))
 *   a round     m <- mu m + (1 - mu) d / (lr H)
 *
 * m also contains the effect of the exchange. For an eigenvalue l of the mixing matrix, this effect
 * decays if l > -(1 + mu) / (1 + 3 mu - 2 mu^2). This bound is -0.74 in the worst case (mu = 0.43),
 * and -0.91 at mu = 0.9. All eigenvalues of a ring or a torus satisfy the bound. A consensus step
 * size above 1 may violate it.
 *
 * Adam and AdamW. The formulas are those of the authors' program for H = 1
 * (epfml/quasi-global-momentum, code/pcode/optim/decentralized_qg_adam.py), which has Adam only.
 * beta1 is --momentum, and t is 1 plus the number of updates of m and v:
 *
 *   a step      m' = beta1 m + g;  v' = beta2 v + (1 - beta2) g^2
 *               x <- x - lr (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + eps)
 *   a round     d' = d / (|d| + eps)
 *               m <- beta1 m + (1 - beta1) d';  v <- beta2 v + (1 - beta2) d'^2
 *
 * m' and v' are not stored. The gradient in m' has the factor 1, as in qg with SGD, not the factor
 * 1 - beta1 of Adam. d' has the length 1 in the whole model, so the step depends on the scale of
 * the gradients, unlike a step of Adam. Extensions here: with H > 1 all steps of a round use the
 * same m and v, and AdamW decays x itself as in optimiser.h.
 */
#ifndef NN_TRAIN_QUASI_GLOBAL_H
#define NN_TRAIN_QUASI_GLOBAL_H

#include "nn/train/momentum_kind.h"

extern const struct momentum_kind momentum_qg;

#endif
