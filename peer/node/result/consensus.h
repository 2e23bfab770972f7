/* peer/node/result/consensus.h -- the exact consensus distance of given models.
 *
 *   mean = (1/n) sum_i x_i,   Xi = sqrt((1/n) sum_i |x_i - mean|^2),   Xi / |mean|
 *
 *   one model:  [ trained parameters | running statistics ]
 *
 * The trained parameters are at the start of each model (nn/math/vec.h). Their distance is the
 * consensus distance. The running statistics have a distance of their own. Sums are computed in
 * double precision, in two passes over the models. Only one model at a time has to be in memory.
 */
#ifndef PEER_NODE_RESULT_CONSENSUS_H
#define PEER_NODE_RESULT_CONSENSUS_H

#include <stddef.h>

/* Distance of the models in one range of their values, for example in the trained parameters. If
 * there are no models, or the range is empty, the fields other than `dim` are NaN. */
struct consensus_part
{
    size_t dim; /* Number of floats of one model in the range. */
    double xi;  /* Consensus distance Xi. 0 for one model. */
    /* Norm |mean| of the mean model, over the trained parameters or over the running statistics
     * only. */
    double mean_norm;
    double relative; /* Relative distance Xi / |mean|. 0 if Xi is 0. */
};

struct consensus
{
    size_t n; /* Number of models that were compared. */
    struct consensus_part trained, statistics;
};

/* The result if there are no models: n is 0 and all distances are NaN. */
extern const struct consensus consensus_none;

/* Measures n >= 1 models of dim floats. The first n_trained floats are trained parameters.
 * get(self, i) returns model i, valid until the next call, or NULL if it cannot be read. Returns
 * 0, -ENOMEM, or -EIO after a NULL. *c is unchanged after an error. Calls get() twice for each
 * model. */
__attribute__((warn_unused_result)) int consensus_measure(struct consensus *c, size_t n,
                                                          size_t n_trained, size_t dim,
                                                          const float *(*get)(void *self, size_t i),
                                                          void *self);

#endif
