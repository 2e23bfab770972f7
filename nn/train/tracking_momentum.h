/* nn/train/tracking_momentum.h -- Momentum Tracking (`tracking`), for SGD.
 *
 * Source: Takezawa, Bao, Niwa, Sato, Yamada 2023, "Momentum Tracking: Momentum Acceleration for
 * Decentralized Deep Learning on Heterogeneous Data", TMLR. The update was checked against the
 * authors' program (yukiTakezawa/MomentumTracking, optimizer/momentum_tracking_optimizer.py).
 * Section numbers of the paper were not checked. With gradient g, momentum u, correction c,
 * learning rate lr, momentum factor mu and mixing matrix W, peer i computes in each round
 *
 *   u_i = mu u_i + g_i(x_i)
 *   x_i = sum over j of W_ij x_j - lr (u_i - c_i)          c before its update
 *   c_i = sum over j of W_ij (c_j - u_j) + u_i
 *
 * The sum of c over the peers stays 0, so c does not change the mean of the directions u - c. c_i
 * follows the difference between u_i and the mean of u. At a minimum of the mean loss, the
 * direction of each peer is therefore 0, although the gradient of its own data is not. With local
 * momentum and a constant lr, the models of the peers would stay apart at this minimum, by a bias
 * of 1 / (1 - mu) times the gradients.
 *
 * Here a round has H local steps, and the exchange follows them. d is the direction of a step:
 *
 *   begin of a round   c_i = v_i + s_i
 *   a local step       u_i = mu u_i + g;  d = u_i (Nesterov: g + mu u_i);  x_i = x_i - lr (d - c_i)
 *   end of the steps   s_i = mean of d over the H steps;  v_i = c_i - s_i
 *   exchange           x_i = sum over j of W_ij x_j;  v_i = sum over j of W_ij v_j
 *
 * v is the companion vector of the trainer (trainer.h). Differences from the authors' program:
 *
 *   - The exchange also mixes the direction of the round, x = W (x - lr (u - c)), because the mixer
 *     sends deltas of the model after the local steps.
 *   - H is not 1 only. c is constant during the steps of a round, as in gradient tracking with
 *     local steps (Liu, Lin, Koloskova, Stich 2023, K-GT), and follows the mean of the directions.
 *   - c and u begin at 0. The program begins with the deviation of the first gradient from the mean
 *     of all peers, divided by 1 - mu, for which it needs an all-reduce.
 *   - The exchange of v uses replicas, which contain the errors of the codec, and the consensus
 *     step size gamma of the model.
 *
 * What keeps the sum of c at 0:
 *
 *   event                        rule
 *   lossy codec, lost exchange   v moves by opposite amounts at the two ends of an edge
 *   round without exchange       v + s gives the same c again
 *   skipped rounds               c, u and s do not change
 *   joining peer                 begins with u = s = v = 0, so with c = 0
 *   peer dies, edge is reset     the node subtracts the flow of the edge from v (`conserved`)
 *   rollback                     u and s are those of the restored round, and c keeps its value
 *   consensus phase              there are no local steps, and v is not exchanged
 *
 * Stability. A sparse codec makes the models diverge: v changes in each round by the change of the
 * mean direction, c is the sum of all corrections and does not decay, and gamma follows the
 * distances of the model only. On a ring of 8 peers with quadratic losses, lr 0.02 and mu = 0.9,
 * qsgd:3, qsgd:4 and topk:0.3 converge within 4,000 rounds to rounding errors, and topk:0.2 and
 * topk:0.1 diverge; topk:0.1 also diverges with lr 0.005. Only codecs that leave out at most a
 * tenth of a delta are therefore allowed (run_leaves_out()).
 *
 * Only SGD: the sum of Adam's directions over the peers is not the direction of their mean loss.
 */
#ifndef NN_TRAIN_TRACKING_MOMENTUM_H
#define NN_TRAIN_TRACKING_MOMENTUM_H

#include "nn/train/momentum_kind.h"

struct state; /* An object that reads or writes a checkpoint (nn/math/state.h). */

extern const struct momentum_kind momentum_tracking;

/* State of Momentum Tracking except u: vectors of n trained parameters, 0 at first. */
struct tracking_momentum
{
    float *companion; /* The vector v, which peers exchange and mix. */
    /* The vector s: mean direction of the last round. During a round: sum of the directions so
     * far. */
    float *direction;
    /* The correction c of the current round. Between two rounds: of the round that has ended. */
    float *correction;
    size_t n; /* Number of trained parameters. */
};

/* Allocates the state. Returns 0 or -ENOMEM. tracking_momentum_close() also accepts a struct of
 * zeros. */
__attribute__((warn_unused_result)) int tracking_momentum_init(struct tracking_momentum *t,
                                                               size_t n);
void tracking_momentum_close(struct tracking_momentum *t);

/* Begins a round: computes the correction c, and sets the vectors `correction` and `sum` of *u for
 * the local steps. */
void tracking_momentum_begin(struct tracking_momentum *t, struct optimiser_step *u);
/* Ends the n_steps >= 1 local steps of a round: computes s, the mean direction of the round, and
 * the companion vector v. */
void tracking_momentum_end(struct tracking_momentum *t, uint32_t n_steps);

/* Called after a rollback, which has restored the vectors s and v of an earlier round. Sets v such
 * that the correction c keeps its value. */
void tracking_momentum_rolled_back(struct tracking_momentum *t);

/* Reads or writes the vectors s and v in a checkpoint. The correction c is computed from s and
 * v. */
void tracking_momentum_state(struct tracking_momentum *t, struct state *s);

#endif
