/* gossip/mixers/clip.h -- clipping: bounds the influence of Byzantine neighbours (--byzantine B).
 *
 * B is the number of Byzantine neighbours to tolerate. The rule is CS+ (Gaucher, Dieuleveut,
 * Hendrikx 2025), applied to the difference d = b - a of each edge. The edges are sorted by |d|.
 * The threshold tau is the largest length such that the edges with a longer d have enough total
 * weight:
 *
 *     near                    tau                     far
 *      |b-a|  |b-a| ....... |b-a| | |b-a| .... |b-a|
 *                                  \_______________/
 *                          total weight of at least twice the B heaviest edges
 *
 *   x += sum of gamma w d min(1, tau / |d|)
 *
 * B Byzantine neighbours, at any place in that order, then pull no farther than honest neighbours
 * do. If there are too few edges, tau is 0 and no model is mixed.
 *
 * Excluded neighbours. B counts only neighbours that take part. A neighbour that was proven
 * Byzantine is excluded, and B is then reduced by one. A proof is a refused exchange
 * (gossip/exchange/outlier_filter.h) or a broken protocol. A suspect edge is no proof, because an
 * attacker can make the edge between two honest peers suspect. Without the reduction, of 2 B + 2 =
 * 4 neighbours the remaining 3 would all be clipped to the length of the nearest, and honest peers
 * would end with different models.
 *
 * Consensus phase. tau is larger there: the edges with a longer d need only the total weight of the
 * B heaviest edges, as in He, Karimireddy, Jaggi 2022. A Byzantine neighbour then pulls no farther
 * than the farthest honest one. With CS+, two groups of peers that each agree internally would
 * hardly converge, even without any attacker. In training, CS+ resists attackers better.
 * tests/bench/byzantine.md has measurements.
 *
 * More than B attackers can choose tau. --max-pull X therefore also limits tau during training,
 * to X times the length of the peer's own local steps. The coefficients gamma w of a peer sum to
 * less than 1, so all neighbours together move x by less than that limit in a round. (He,
 * Karimireddy, Jaggi 2022 use a constant limit. The right constant depends on the task and the
 * learning rate, and the length of the local steps reflects both.)
 *
 * Cost. The neighbour clips with its own threshold, so the exchange is no longer equal and
 * opposite, and the mean of the models changes by the clipped amount. A threshold shared by
 * both ends would keep the mean but let an attacker choose it; that diverges in simulation.
 * Replicas and gamma do not depend on clipping and stay bitwise equal at both ends.
 */
#ifndef GOSSIP_MIXERS_CLIP_H
#define GOSSIP_MIXERS_CLIP_H

#include "gossip/mixers/correction.h"

#include <stdint.h>

/* Total weight that the edges with |b - a| above the clipping threshold tau must have, as a
 * multiple of the total weight of the B heaviest edges. B is the number of Byzantine neighbours to
 * tolerate. CLIP_LAST applies in the consensus phase, CLIP_TRAINING in training. */
enum { CLIP_LAST = 1, CLIP_TRAINING = 2 };

/* Returns tau^2, the squared clipping threshold, for n correction terms with known squared length
 * d2 and mixing weight w. tolerate: number of Byzantine neighbours to tolerate; 0 returns the
 * largest finite d2. behind: CLIP_TRAINING in training, CLIP_LAST in the consensus phase. A d2 that
 * is NaN or infinite counts as the largest. Terms of equal length keep their order in the array.
 * O(n^2). */
double clip_threshold2(const struct correction *term, size_t n, uint32_t tolerate, uint32_t behind);

struct clip_rule
{
    /* Number B of Byzantine neighbours to tolerate. Only neighbours that take part in the job are
     * counted. */
    uint32_t tolerate;
    /* CLIP_TRAINING or CLIP_LAST: total weight that the edges with |b - a| above the clipping
     * threshold must have, as a multiple of the total weight of the B heaviest edges. */
    uint32_t behind;
    double most2; /* Upper limit of tau^2, the squared clipping threshold. Infinite: no limit. */
};

/* Computes the length of each of n terms, the corrections by single neighbours, over dim floats,
 * and reduces the coefficients of terms that are longer than the clipping threshold. A term whose
 * squared length d2 exceeds its limit2 is marked `refused` and counts as the longest. */
void clip_terms(struct correction *term, size_t n, size_t dim, const struct clip_rule *rule);

#endif
