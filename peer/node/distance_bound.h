/* peer/node/distance_bound.h -- how far apart models can be, by the edges alone: the consensus phase need not wait
 * for sketches to go up and down a tree.
 *
 * Over an edge both ends hold the same replicas a and b. With D = |b - a|, E what a delta leaves of
 * |x - a|, and a last move by less than the largest D of a peer,
 *
 *   |x_i - x_j|  <=  E_i + D + E_j + D_i + D_j  <=  (L_i + L_j) / 2,   L_i = 3 D_i + 2 E_i
 *
 * where D_i and E_i are the largest of all edges of peer i. Where all L_i are below L, that is said
 * in the same way as that all are near by sketches (schedule_settled()), and then
 *
 *   |x_i - x_j|  <=  (n - 1) L          of any two of n peers that a chain of open edges joins
 *   Xi           <=  L / sqrt(2 gap)    for the spectral gap of W: by the eigenvalues of I - W,
 *                                       2 gap n Xi^2 <= sum_ij w_ij |x_i - x_j|^2 <= n L^2
 *
 * Models with segments in 16 bits are compared after rounding by r() (nn/math/half.h). Rounding may
 * separate two close models by one unit in the last digit of some values. Let D' = |r(b) - r(a)| and
 * E' = |r(x) - r(a)|, where x has already made its last move. Then the first bound holds with
 * L_i = D'_i + 2 E'_i. The second bound is not used, because a later x may be rounded differently.
 *
 * The lesser of both is the bound, the second in lock step without --byzantine, on a graph that stands
 * still: there it counts at once. Elsewhere it is but the way out: what a liar shows of its model
 * counts like any other's, what it says of the drift does not, so that the first counts once it
 * has been below the target, and what sketches say has not, for DISTANCE_BOUND_ROUNDS rounds of the consensus phase.
 * From when somebody has ended it begins to count nowhere: the chain may join the few that are left,
 * and not those. Nor does it where the phase ends late, that is, where not all have it.
 */
#ifndef PEER_NODE_DISTANCE_BOUND_H
#define PEER_NODE_DISTANCE_BOUND_H

#include "peer/node/edges.h"

enum { DISTANCE_BOUND_ROUNDS = 64 };

struct distance_bound
{
    bool near;      /* It is below the target, */
    uint64_t since; /* since so many rounds of the consensus phase; */
    bool counts;    /* It once was for long enough, where that is asked. */
    double bound;   /* What it is while it counts, else INFINITY. */
    uint64_t round; /* It is the greater one of this round and of the round before: with momentum */
    double now, before; /* models may pass each other. */
};

/* Do all mix by one matrix W, whose spectral gap is known, and may nobody lie? Then a bound counts at
 * once and, like one by sketches, as long as nothing parts the models. */
bool distance_bound_at_once(const struct edges *es);

/* A bound on the consensus distance, over |x|; INFINITY where an edge to somebody who is
 * neither final nor distrusted is not open, or has brought no exchange. O(dim). */
double distance_bound_bound(const struct edges *es, size_t n_members);

/* The other way round: of two models at a distance D one is D / 2 or more from the mean, and D is seen
 * but for what deltas leave of it, E. So far from the mean somebody is at least, over |x|, in lock step
 * without --byzantine; 0 where nothing is known. Sketches of a moment before a sparse codec
 * began to mix may say less: it parts models that were one. O(dim). */
double distance_bound_apart(const struct edges *es);

/* Those that are final and were neighbours may have ended apart, and what sketches say then leaves
 * them out. Of two models at a distance D one is D / 2 or more from the mean: this is D / 2 of the
 * farthest of them, over |x|, but for as many as may lie (--byzantine), for whom we distrusted, and
 * for whom no consensus counts, as its run failed; 0 where there are none, INFINITY where there is one
 * to whom no edge was ever open. O(dim) for each. */
double distance_bound_left(const struct edges *es);

/* Nothing is known by the edges. */
void distance_bound_begin(struct distance_bound *c);

/* After a job of the consensus phase, of which there were `rounds`: sets the bound on our relative distance
 * to the mean, of which sketches know that it is below `distance`; most: the target. It is none from
 * when a neighbour has ended that was not near by its last word, as then nobody says that all are. */
void distance_bound_look(struct distance_bound *c, const struct edges *es, uint64_t rounds,
                         double distance, double most);

#endif
