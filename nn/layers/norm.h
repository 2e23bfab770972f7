/* nn/layers/norm.h -- the two kinds of LAYER_NORM, by what one mean is over.
 *
 *   columns   NORM_BATCH: a channel, over all places of all samples
 *             NORM_GROUP: a group of channels, over all places of one sample
 *   place     NORM_PLACE: all channels of one place
 *
 * Both: y = (x - mean) / sqrt(variance + LAYER_NORM_EPS) * weight + bias, the
 * variance biased; then + with, then ReLU. Only running statistics see more:
 * the unbiased variance, as PyTorch's do.
 */
#ifndef NN_LAYERS_NORM_H
#define NN_LAYERS_NORM_H

#include "nn/layers/layer.h"

#define LAYER_NORM_EPS 1e-5

/* layer_norm picks one of them; they have no params() of their own. */
extern const struct layer_op layer_norm_columns, layer_norm_place;

#endif
