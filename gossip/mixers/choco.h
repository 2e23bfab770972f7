/* gossip/mixers/choco.h -- CHOCO-SGD: a peer sends compressed differences to its replicas.
 *
 * Koloskova, Stich, Jaggi 2019, algorithm 2, with the state kept per edge. On an edge, a is
 * the peer's own replica and b the neighbour's replica. One job:
 *
 *   mix      a += q_own, b += q_theirs (mixing.h), then
 *            x += sum over edges of gamma w (b - a) (correction.h)
 *   steps    the caller runs its local steps on x
 *   encode   q = Q(x - a), once per distinct a
 *
 * The part of x - a that a delta omits remains in x - a and is sent by later deltas, so the
 * algorithm includes error feedback. Without faults the results equal those of the paper's
 * algorithm exactly.
 *
 * Event trigger (--trigger X; Singh, Data, George, Diggavi 2021, SQuARM-SGD, arXiv:2005.07041,
 * algorithm 1). In training, q is empty, that is 0, while |x - a| < X |Delta|. |Delta| is the root
 * of a moving average of the squared length of this peer's local steps of a round. Both ends commit
 * an empty delta as any other, and mix with the replicas that they have, so the mean of the models
 * is kept. The paper compares |x - a|^2 with c lr^2 for the whole vector. Here c is
 * (X |Delta| / lr)^2, so that X depends neither on the number of parameters nor on the scale of the
 * gradients, and a trainer need not report its learning rate. The threshold follows the learning
 * rate, because |Delta| does.
 */
#ifndef GOSSIP_MIXERS_CHOCO_H
#define GOSSIP_MIXERS_CHOCO_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_choco;

#endif
