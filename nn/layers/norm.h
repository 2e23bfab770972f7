/* nn/layers/norm.h -- the two implementations of LAYER_NORM. They differ in the values over which
 * one mean is taken:
 *
 *   columns   NORM_BATCH: one channel, over all positions of all samples
 *             NORM_GROUP: a group of channels, over all positions of one sample
 *   place     NORM_PLACE: all channels of one position
 *
 * Both compute y = (x - mean) / sqrt(variance + LAYER_NORM_EPS) * weight + bias with the biased
 * variance, then add `with`, then apply ReLU. The running statistics use the unbiased variance, as
 * in PyTorch.
 */
#ifndef NN_LAYERS_NORM_H
#define NN_LAYERS_NORM_H

#include "nn/layers/layer.h"

#define LAYER_NORM_EPS 1e-5

/* The two implementations behind layer_norm, which calls the one for l->norm. Both use the params()
 * of layer_norm. */
extern const struct layer_op layer_norm_columns, layer_norm_place;

#endif
