/* nn/train/averaged_momentum.h -- momentum that peers exchange and mix (`averaged`), for SGD.
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
 * m is the companion vector of the trainer (trainer.h). Each delta contains the compressed
 * difference of m in addition to that of x, with a codec of its own, and so has about twice the
 * bytes. The consensus phase has no local steps and does not need m, so its deltas contain x only.
 * A peer that joins begins with m = 0.
 *
 * Only SGD: mixing from replicas of a lossy codec may make Adam's second moment negative.
 */
#ifndef NN_TRAIN_AVERAGED_MOMENTUM_H
#define NN_TRAIN_AVERAGED_MOMENTUM_H

#include "nn/train/momentum_kind.h"

extern const struct momentum_kind momentum_averaged;

#endif
