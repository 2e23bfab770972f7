/* gossip/mixers/clip.h -- --tolerate B: how far a neighbour may pull, by what all of them say.
 *
 * The one-sided rule CS+ (Gaucher, Dieuleveut, Hendrikx 2025) on an edge's difference
 * d = b - a, with the edges in the order of their lengths:
 *
 *     near                    tau                     far
 *      |b-a|  |b-a| ....... |b-a| | |b-a| .... |b-a|
 *                                  \_______________/
 *                          together at least twice the weight of any B edges
 *
 *   x += sum of gamma w d min(1, tau / |d|)
 *
 * So B neighbours that lie, wherever they stand in that order, pull no farther than
 * honest ones do. Where there are fewer edges than that, tau is 0 and nothing is mixed.
 *
 * B counts those that mix. A neighbour that has been found out (gossip/exchange/trust.h, or a
 * broken protocol) is barred, and one liar fewer is left among the others: beside it B is
 * less by one. Without that the three that remain of 2 B + 2 = 4 would all be shortened to the
 * nearest, and honest peers end apart.
 *
 * In the last phase tau is larger: the weight of B edges is behind it (He, Karimireddy, Jaggi 2022
 * clip there), so that a liar pulls no farther than the farthest of the honest. CS+ moves a model
 * no farther than its nearest neighbours are, and two groups of peers, each of which has agreed,
 * hardly come together any more, although nobody lies; nothing but that is left to be done then.
 * While models train CS+ keeps liars out better (simulated: gossip/mixers/README.md).
 *
 * With more liars than B tau is theirs to choose. Against that, --pull X keeps tau under X
 * times the length of our own local steps: as the gamma w of a peer add up to less than 1,
 * all its neighbours together move x by less than that in a round, whoever lies. (He,
 * Karimireddy, Jaggi 2022 clip at a constant; what is right for it differs by task and
 * learning rate, and one's own steps know both.)
 *
 * The other end clips by its own neighbours and not by ours: the exchange is no longer
 * equal and opposite, and the mean of the models is kept only up to what was clipped.
 * (A threshold that both ends share would keep it, and lets an attacker choose it:
 * simulated, that diverges.) Replicas and gamma are as without clipping, bit for bit
 * the same at both ends.
 */
#ifndef GOSSIP_MIXERS_CLIP_H
#define GOSSIP_MIXERS_CLIP_H

#include "gossip/mixers/correction.h"

#include <stdint.h>

/* So many times the weight of any B edges are behind tau. */
enum { CLIP_LAST = 1, CLIP_TRAINING = 2 };

/* tau^2 over n terms whose d2 and w are known; B = tolerate, 0: the largest. A d2 that is no
 * number or infinite is farther than any other. Terms of equal length lie in the order
 * of the neighbours. O(n^2). */
double clip_threshold2(const struct correction *term, size_t n, uint32_t tolerate, uint32_t behind);

struct clip_rule
{
    uint32_t tolerate; /* B, of the neighbours that mix. */
    uint32_t behind;   /* CLIP_TRAINING or CLIP_LAST. */
    double most2;      /* tau^2 is no larger; infinite: no limit. */
};

/* Measure each term's d2 over dim floats, and shorten its coefficient as above. One
 * that is over its limit2 becomes `refused`, and counts as the farthest. */
void clip_terms(struct correction *term, size_t n, size_t dim, const struct clip_rule *rule);

#endif
