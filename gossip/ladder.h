/* gossip/ladder.h -- precision by drift: which codec a peer's deltas take.
 *
 * There is a consensus distance under which training does not notice that the
 * peers' models differ (Kong et al. 2021, "Consensus Control for Decentralized
 * Deep Learning"); closer costs bytes, farther costs accuracy. The distance is
 * known while training (sketch.h), so with `--compress auto` each peer climbs a
 * ladder of codecs, from sparse to dense, after it:
 *
 *   drift / target
 *        2 --------  two rungs denser
 *        1 --------  one rung denser
 *                    stay
 *      1/2 --------  one rung sparser, where it was so at two looks in a row
 *
 * A look is at a new figure of a moment after the last change: an older one says
 * nothing of what the change did. A delta names its rung on the wire, so each
 * sender chooses for itself, the same for all its edges. What it looks at is,
 * in lock step, a function of the run's seed.
 */
#ifndef GOSSIP_LADDER_H
#define GOSSIP_LADDER_H

#include <stdint.h>

enum {
    LADDER_RUNGS = 8,
    LADDER_FIRST = 3,  /* Where a peer begins: the first rounds part models most. */
    LADDER_MIDDLE = 2  /* The rung whose bytes plan how often sketches go along. */
};

/* Specs, the sparsest first. */
extern const char *const ladder_spec[LADDER_RUNGS];

struct ladder
{
    uint32_t rung;
    uint32_t n_low;   /* Looks in a row that found the drift under half. */
    uint64_t after;   /* Figures of rounds up to this one have been looked at,
                       * or are of before the last change. */
    uint64_t changes;
};

void ladder_init(struct ladder *l);

/* A peer at run round `now` knows a relative drift, of the moment when
 * `of_round` began (NaN: none yet). Looks, and changes the rung where that is
 * due. */
void ladder_look(struct ladder *l, double target, double relative_drift,
                 uint64_t of_round, uint64_t now);

#endif
