/* gossip/mixers/choco.h -- CHOCO-SGD: compressed differences, one correction an edge.
 *
 * Koloskova, Stich, Jaggi 2019, algorithm 2, with its state per edge. For an edge
 * with our replica a and theirs b, a job does:
 *
 *   mix      a += q_own, b += q_theirs (mixing.h), then
 *            x += sum over edges of gamma w (b - a) (correction.h)
 *   ...      local steps on x
 *   encode   q = Q(x - a), once for each different a
 *
 * What a delta leaves out stays in x - a and goes into the next one: error feedback
 * is built in. Without faults this is the paper's algorithm, number for number.
 */
#ifndef GOSSIP_MIXERS_CHOCO_H
#define GOSSIP_MIXERS_CHOCO_H

#include "gossip/mixers/mixer.h"

extern const struct mixer mixer_choco;

#endif
