/* nn/layers/winograd.h -- 3x3 convolutions by Winograd's minimal filtering.
 *
 * Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016), section 4.1, F(2x2,
 * 3x3): a tile of 2x2 outputs is computed from 4x4 inputs with 16 multiplications. The direct
 * method needs 36.
 *
 *   Y = A^T [ (G g G^T) . (B^T d B) ] A            . : element by element
 *             U: weights   V: inputs
 *
 * The products of each of the 16 elements are summed over the input channels. The sums are 16
 * matrix products over all tiles, one for each element xi of the 4x4:
 *
 *   M[xi] (tiles x o) = V[xi] (tiles x c) * U[xi] (c x o)
 *
 * Backward pass:
 *
 *   gradient of the input     the same computation on the gradient of the output, with weights
 *                             rotated by 180 degrees and c, o swapped; rotating g swaps the first
 *                             and last rows and columns of U
 *   gradient of the weights   G^T [ sum over tiles V^T (A dY A^T) ] G
 *
 * Tiles are processed in blocks whose V and M fit in the cache. If U is large, the output channels
 * are processed in slices.
 *
 *   scratch:  [ zeros | weights of 16 channels | U | V | M ]
 *
 * Numerics: the transforms add up to 4 values and multiply only by 1/2 and 1/4. The error is about
 * 2 to 3 times the error of the direct sum. (In table 4 of the paper Winograd's method has the
 * smaller error, because it is compared with a naive sum.)
 */
#ifndef NN_LAYERS_WINOGRAD_H
#define NN_LAYERS_WINOGRAD_H

#include "nn/layers/layer.h"

/* Returns whether winograd.c supports layer l: kernel 3, stride 1, pad 1, even height and width,
 * and numbers of channels that are multiples of 16. */
bool winograd_fits(const struct layer *l);

/* Returns the number of floats of scratch memory for a batch of n samples. With `training`, the
 * memory is also enough for the backward pass. */
size_t winograd_scratch(const struct layer *l, uint32_t n, bool training);

/* Forward pass of the layer, and the two parts of its backward pass: gradient of the input,
 * gradient of the weights. Before the backward parts, the caller applies the ReLU's mask to
 * p->d_out. The caller also computes the gradient of the bias. */
void winograd_forward(const struct layer *l, const struct layer_pass *p);
void winograd_d_in(const struct layer *l, const struct layer_pass *p);
void winograd_d_weight(const struct layer *l, const struct layer_pass *p);

#endif
