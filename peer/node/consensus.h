/* peer/node/consensus.h -- the exact consensus distance of models that are at hand.
 *
 *   mean = (1/n) sum_i x_i,   Xi = sqrt((1/n) sum_i |x_i - mean|^2),   Xi / |mean|
 *
 *   x:  [ trained parameters | running statistics ]
 *         the drift            apart from it
 *
 * Trained parameters are a prefix of each model (nn/math/vec.h); what is behind it
 * has a distance of its own. In double, in two passes over the models, one at
 * a time.
 */
#ifndef PEER_NODE_CONSENSUS_H
#define PEER_NODE_CONSENSUS_H

#include <stddef.h>

/* This tells how far one range of the models is apart. Without models, or without
 * floats in the range, all but `dim` is NaN. */
struct consensus_part
{
    size_t dim;       /* Floats of one model that lie in it. */
    double xi;        /* Xi; 0 for one model. */
    double mean_norm; /* |mean| */
    double relative;  /* Xi / |mean|; 0 where Xi is 0. */
};

struct consensus
{
    size_t n; /* Models. */
    struct consensus_part trained, statistics;
};

/* This is what measuring no model gives. */
extern const struct consensus consensus_none;

/* get(self, i) gives model i, of dim floats of which the first n_trained are
 * trained, valid until the next call, or NULL, which ends it. 0, -ENOMEM, or
 * -EIO where a model could not be had: then *c is as it was. */
__attribute__((warn_unused_result)) int consensus_measure(struct consensus *c, size_t n,
                                                          size_t n_trained, size_t dim,
                                                          const float *(*get)(void *self, size_t i),
                                                          void *self);

#endif
