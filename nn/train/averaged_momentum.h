/* nn/train/averaged_momentum.h -- momentum that peers exchange and mix (`averaged`), for SGD, Adam
 * and AdamW.
 *
 * Source: Yu, Jin, Yang 2019, "On the Linear Speedup Analysis of Communication Efficient Momentum
 * SGD for Distributed Non-Convex Optimization", which averages the momentum buffers of all peers
 * together with the models. The same rule on a sparse graph, with mixing matrix W, momentum factor
 * mu, learning rate lr and gradient g of peer i:
 *
 *   a local step   m_i = mu m_i + g;  x_i = x_i - lr m_i  (or Nesterov's form, optimiser.h)
 *   a round        x_i = sum over j of W_ij x_j;  m_i = sum over j of W_ij m_j
 *
 * The mean of m over the peers is the momentum of the mean gradient, and no exchange changes it.
 * Local momentum amplifies the bias of a peer's own data by 1 / (1 - mu). Here the mixing reduces
 * this bias: if W averages all peers exactly, all peers have the same m after each round.
 *
 * m is a companion vector of the trainer (trainer.h). Each delta contains the compressed difference
 * of m in addition to that of x, with a codec of its own, and so has about twice the bytes. The
 * consensus phase has no local steps and does not need m, so its deltas contain x only. A peer that
 * joins begins with m = 0.
 *
 * Adam and AdamW (optimiser.h) have two companion vectors, and a delta has about three times the
 * bytes. Peers exchange and mix both moments in the form
 *
 *   m' = m / (1 - beta1^t)      r = sqrt(v / (1 - beta2^t))      a local step: x -= lr m' / (r + eps)
 *
 * where t is the number of local steps of this peer. With exact averages over all peers, all peers
 * have the same m' and r after each round. Why this form:
 *
 *   - Bias correction. A peer that joined late or skipped rounds has a smaller t than its
 *     neighbours. Mixing m and v would then mix values of different scale. m' and r are estimates
 *     without this bias for each t >= 1. A joining peer begins with m' = r = 0 and t = 0, but its
 *     first delta follows its first local steps, so its neighbours never mix these zeros.
 *   - Scale. The values of v differ by the squares of the scales of the gradients. A codec with an
 *     error relative to the largest value, such as qsgd:4, and the small exponent of fp16 would
 *     lose most of them. r has half as many orders of magnitude, and the step divides by r itself.
 *   - Length of a step. Adam's own steps have |m'| <= C r, where
 *     C = (1 - beta1) / sqrt((1 - beta2) (1 - beta1^2 / beta2)), which is 7.3 for the default betas
 *     (Cauchy-Schwarz inequality; beta1^2 < beta2). Mixing with exact values keeps this bound,
 *     because it is linear in m' and r.
 *
 * A lossy codec or a hostile neighbour can make r negative, or too small for m'. A step would then
 * be longer than any step of Adam, without limit at r = 0. Before the local steps of a round,
 * averaged_momentum_admit() therefore raises each r to at least |m'| / C, which is never negative.
 * With exact exchanges this changes nothing. The exchange itself does not clip, so it keeps the
 * means of m' and r over the peers for each codec.
 */
#ifndef NN_TRAIN_AVERAGED_MOMENTUM_H
#define NN_TRAIN_AVERAGED_MOMENTUM_H

#include "nn/train/momentum_kind.h"

extern const struct momentum_kind momentum_averaged;

/* Returns whether Adam with these betas has a largest step length: beta1^2 < beta2. The functions
 * below require this. */
bool averaged_momentum_is_bounded(double beta1, double beta2);
/* Returns the bound C of |m'| / r in Adam's own steps (top of this file). */
double averaged_momentum_bound(const struct optimiser *o);

/* Prepares the n values of Adam's mixed moments m' (`m`) and r (`root`) for local steps: sets m' to
 * 0 where it is not finite or above 1e15 in magnitude, limits r to 1e15, and raises r to at least
 * |m'| / C. All values are finite afterwards, and root is not negative. O(n). */
void averaged_momentum_admit(const struct optimiser *o, float *m, float *root, size_t n);

#endif
