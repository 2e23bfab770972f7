/* nn/layers/winograd.h -- 3x3 convolutions by Winograd's minimal filtering.
 *
 * Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016),
 * section 4.1, F(2x2, 3x3): a tile of 2x2 outputs is worked out from 4x4
 * inputs with 16 multiplications where the direct way has 36.
 *
 *   Y = A^T [ (G g G^T) . (B^T d B) ] A            . : element by element
 *             U: weights   V: inputs
 *
 * Over the channels the element-wise products are sums of products, that is 16
 * matrix products, one per element xi of the 4x4, over all tiles:
 *
 *   M[xi] (tiles x o) = V[xi] (tiles x c) * U[xi] (c x o)
 *
 * Backward:
 *   by the input    the same, of the gradient, with weights turned by 180
 *                   degrees and c, o swapped; turning g swaps the first and
 *                   last rows and columns of U
 *   by the weights  G^T [ sum over tiles V^T (A dY A^T) ] G
 *
 * Tiles are taken in blocks whose V and M stay in the cache, and output
 * channels in slices where U is large:
 *
 *   scratch:  [ zeros | weights of 16 channels | U | V | M ]
 *
 * Numerics: the transforms add up to 4 values and multiply by 1/2 and 1/4
 * only; the error is about 2 to 3 times that of the direct sum (the paper's
 * table 4, where it is smaller than that of a naive sum).
 */
#ifndef NN_LAYERS_WINOGRAD_H
#define NN_LAYERS_WINOGRAD_H

#include "nn/layers/layer.h"

/* Whether it can do layer l: kernel 3, stride 1, pad 1, even maps, channels by
 * sixteens. */
bool winograd_fits(const struct layer *l);

/* Returns the floats of scratch for a batch of n, with `training` also for the backward pass. */
size_t winograd_scratch(const struct layer *l, uint32_t n, bool training);

/* The layer's forward pass; and backward in its two parts, with p->d_out
 * masked by the ReLU already and the bias' gradient left to the caller. */
void winograd_forward(const struct layer *l, const struct layer_pass *p);
void winograd_d_in(const struct layer *l, const struct layer_pass *p);
void winograd_d_weight(const struct layer *l, const struct layer_pass *p);

#endif
