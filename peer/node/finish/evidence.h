/* peer/node/finish/evidence.h -- sums over frozen models, from which the consensus distance of any
 * set of peers follows.
 *
 * Each peer contributes a count sketch s = S x of its model (gossip/exchange/sketch.h), |x|^2 and a
 * hash of x. Sums of squares are combined as in Chan, Golub and LeVeque (1983), so that a distance
 * that is much smaller than the mean keeps its digits.
 */
#ifndef PEER_NODE_FINISH_EVIDENCE_H
#define PEER_NODE_FINISH_EVIDENCE_H

#include "gossip/exchange/tree_aggregation.h"

/* Sums over the models of n peers, from which their consensus distance follows. */
struct finish_evidence
{
    uint32_t n;           /* Number of models. 0: the other fields are 0. */
    float mean[SKETCH_K]; /* Mean of the sketches of the n models. */
    double dist2;         /* Sum of |s - mean|^2 over the sketches s of the n models. */
    double norm2;         /* Sum of |x|^2 over the n models. */
    uint64_t hash;        /* Hash of the models if all are equal. 0: they differ. */
};

/* Sets *e to the evidence of one model. hash: hash of the model, not 0. */
void finish_evidence_of(struct finish_evidence *e, const float sketch[SKETCH_K], double norm2,
                        uint64_t hash);
/* Adds the evidence *b to *a. O(SKETCH_K). */
void finish_evidence_add(struct finish_evidence *a, const struct finish_evidence *b);
/* Returns the consensus distance Xi / |mean|. 0: all models are equal. INFINITY: there is no model,
 * or the estimate of |mean|^2 is not positive. Sets *mean_norm to |mean|. */
double finish_evidence_distance(const struct finish_evidence *e, double *mean_norm);

#endif
