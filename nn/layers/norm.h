/* nn/layers/norm.h -- the two implementations of LAYER_NORM. They differ in the values over which
 * one mean is taken:
 *
 *   columns   NORM_BATCH: one channel, over all positions of all samples
 *             NORM_GROUP: a group of channels, over all positions of one sample
 *   place     NORM_PLACE: all channels of one position
 *
 * Both compute y = (x - mean) / sqrt(variance + LAYER_NORM_EPS) * weight + bias with the biased
 * variance, then add the second input `with`, then apply ReLU. The running statistics use the
 * unbiased variance, as in PyTorch.
 */
#ifndef NN_LAYERS_NORM_H
#define NN_LAYERS_NORM_H

#include "nn/layers/layer.h"

#define LAYER_NORM_EPS 1e-5

/* The two implementations of the layer kind LAYER_NORM. layer_norm, the entry of this kind in the
 * table of layers, calls the one that fits l->norm. Both have the parameters that layer_norm
 * lists. */
extern const struct layer_op layer_norm_columns, layer_norm_place;

#endif
