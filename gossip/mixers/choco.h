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
 */
#ifndef GOSSIP_MIXERS_CHOCO_H
#define GOSSIP_MIXERS_CHOCO_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_choco;

#endif
