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

/* tau^2 over n terms whose d2 and w are known; B = tolerate >= 1. A d2 that is no
 * number or infinite is farther than any other. Terms of equal length lie in the order
 * of the neighbours. O(n^2). */
double clip_threshold2(const struct correction *term, size_t n, uint32_t tolerate);

struct clip_rule
{
    uint32_t tolerate; /* B >= 1. */
    double most2;      /* tau^2 is no larger; infinite: no limit. */
};

/* Measure each term's d2 over dim floats, and shorten its coefficient as above. One
 * that is over its limit2 becomes `refused`, and counts as the farthest. */
void clip_terms(struct correction *term, size_t n, size_t dim, const struct clip_rule *rule);

#endif
