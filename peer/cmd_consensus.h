/* peer/cmd_consensus.h -- the exact consensus distance of models that are at hand.
 *
 *   mean = (1/n) sum_i x_i,   Xi = sqrt((1/n) sum_i |x_i - mean|^2),   Xi / |mean|
 *
 * In double, in two passes over the models, one at a time.
 */
#ifndef PEER_CMD_CONSENSUS_H
#define PEER_CMD_CONSENSUS_H

#include <stddef.h>

struct cmd_consensus
{
    size_t n;         /* Models. */
    double xi;        /* Xi; 0 for one model. */
    double mean_norm; /* |mean| */
    double relative;  /* Xi / |mean|; 0 where both are 0. */
};

/* get(self, i) gives model i, of dim floats, valid until the next call, or
 * NULL, which ends it. 0, -ENOMEM, or -EIO where a model could not be had. */
__attribute__((warn_unused_result)) int
cmd_consensus(struct cmd_consensus *c, size_t n, size_t dim,
              const float *(*get)(void *self, size_t i), void *self);

#endif
