/* peer/node/edge/distance_bound.h -- bounds the consensus distance by the distances along the
 * edges.
 *
 * With this bound the consensus phase does not have to wait for sketches to be aggregated.
 *
 * Both ends of an edge know the replicas a and b. D = |b - a| is their distance, and E = |x - a| is
 * what the last delta left unsent. D_i and E_i are the largest values of all edges of peer i. If
 * the last mixing moved peer i by less than D_i, then for two neighbours i and j
 *
 *   |x_i - x_j|  <=  E_i + D + E_j + D_i + D_j  <=  (L_i + L_j) / 2,   L_i = 3 D_i + 2 E_i
 *
 * The peers find out by gossip whether L_i <= L for all i, as they do for distances that are
 * estimated by sketches (schedule_settled()). If so, there are two bounds:
 *
 *   |x_i - x_j|  <=  (n - 1) L          for any two of n peers that are connected by open edges
 *   Xi           <=  L / sqrt(2 gap)    gap is the spectral gap of W. By the eigenvalues of I - W,
 *                                       2 gap n Xi^2 <= sum_ij w_ij |x_i - x_j|^2 <= n L^2
 *
 * Models with segments in 16 bits are compared after rounding by r() (nn/math/half.h). Rounding may
 * separate two close models by one unit in the last digit of some values. Let D' = |r(b) - r(a)|
 * and E' = |r(x) - r(a)|, where x has already made its last move. Then the first bound holds with
 * L_i = D'_i + 2 E'_i. The second bound is not used, because a later x may be rounded differently.
 *
 * In lock step with a constant graph and without --byzantine, the bound counts as evidence at once,
 * and the smaller one of the two bounds is used.
 *
 * In all other cases only the first bound is used. It counts as evidence after it was below the
 * target for DISTANCE_BOUND_ROUNDS rounds in which the estimate by sketches was above the target.
 * The bound is then a fallback for missing or false sketches: a Byzantine member can send false
 * sketches, but its model is measured like any other.
 *
 * Once a member has ended, open edges connect only the remaining members, and their distances say
 * nothing about the member that has ended. From then on the bound cannot decrease, unless it was
 * below the target for DISTANCE_BOUND_ROUNDS rounds before.
 */
#ifndef PEER_NODE_EDGE_DISTANCE_BOUND_H
#define PEER_NODE_EDGE_DISTANCE_BOUND_H

#include "peer/node/edge/edges.h"

/* Number of consecutive rounds of the consensus phase for which the bound on the distance must be
 * below the target before it counts as evidence, unless distance_bound_at_once() is true. */
enum { DISTANCE_BOUND_ROUNDS = 64 };

/* The bound on the consensus distance that this peer computes from its edges after each job of the
 * consensus phase. */
struct distance_bound
{
    /* True: at the last update, the bound on the consensus distance was at most the target. */
    bool near;
    /* Round of the consensus phase in which the bound on the consensus distance last fell to the
     * target or below it. */
    uint64_t since;
    /* True: the bound on the consensus distance has once been below the target for
     * DISTANCE_BOUND_ROUNDS rounds in a row. */
    bool counts;
    /* The bound on the consensus distance, relative to |x|, while it counts as evidence for
     * consensus. INFINITY otherwise. */
    double bound;
    /* Round of the consensus phase in which the bound on the consensus distance was last
     * updated. */
    uint64_t round;
    /* L_i of this peer, relative to |x| (top of this file). The models of two neighbours i and j
     * are at most (L_i + L_j) / 2 apart. now: value in round `round`. before: value in the round
     * before it. The bound uses the larger of the two, because models that move with momentum may
     * pass each other. */
    double now, before;
};

/* Returns whether the bound on the consensus distance that follows from the edges counts as
 * evidence as soon as it is below the target. The conditions are lock step, no --byzantine, and one
 * constant matrix W by which all peers mix. */
bool distance_bound_at_once(const struct edges *es);

/* Returns a bound on the consensus distance of n_members models, relative to |x|. INFINITY:
 * unknown, for example because the edge to some neighbour is not open or has completed no exchange.
 * Edges to final or distrusted neighbours, and edges of the training graph only, are left out.
 * O(dim) for each edge. */
double distance_bound_bound(const struct edges *es, size_t n_members);

/* Returns the least distance from the mean, relative to |x|, that this peer may claim after a
 * measurement. 0: no limit is known, or the run is not in lock step. Must not be called while a job
 * runs. O(dim) for each edge.
 *
 * Without --byzantine the result is the largest max(D / 2 - E, E) of the edges. D is the distance
 * between the replicas of an edge, and E the length of the part of this peer's model that the
 * neighbours do not know yet. D / 2 - E: of two models at distance D, at least one is D / 2 or more
 * from the mean, and the replicas show D with an error of about E.
 *
 * With --byzantine B the distances along the edges may be false. The result is INFINITY if the
 * final models of more than B neighbours are farther from this peer's model than 2 * --final-drift,
 * because at least one of these neighbours is honest. For example, the honest neighbours end first,
 * and a Byzantine neighbour then moves this peer away from them. Otherwise the result is 0. */
double distance_bound_apart(const struct edges *es);

/* Returns the number of neighbours that have ended and did not report in their last delta or last
 * two BEATs that they were near the mean. Failed and distrusted neighbours are ignored. 0 without
 * lock step. */
size_t distance_bound_ended_apart(const struct edges *es);

/* Resets *c: the bound on the consensus distance is unknown. */
void distance_bound_begin(struct distance_bound *c);

/* Updates *c, the bound on the consensus distance, after a job of the consensus phase. rounds:
 * rounds of the phase so far. distance: bound on this peer's distance from the mean, estimated from
 * sketches (projections of models). most: the target. The bound becomes infinite if a neighbour
 * ended without reporting that it was near the mean. */
void distance_bound_look(struct distance_bound *c, const struct edges *es, uint64_t rounds,
                         double distance, double most);

#endif
