/* nn/data/glyphs.h -- the built-in data set: ten stroke glyphs, drawn and distorted at random.
 *
 * The set has 28x28 grey images, so a first run needs no data files. The ten classes are five pairs
 * that differ in one stroke or one joint. A model must therefore find strokes, wherever they are in
 * the image:
 *
 *   O Q    C G    4 9    S 8    Z 7
 *
 *   strokes -> random shift of points -> elastic warp -> rotation, scale, shear, shift
 *           -> anti-aliased pen of random width -> contrast, distractor strokes, noise -> bytes
 *
 * Image i of a seed is a pure function of (seed, i). Every machine gives the same bytes, because
 * only + - * / and sqrt of IEEE floats are used, in a fixed order.
 *
 * Test accuracy with seed 1 and 4,000 test images (PyTorch, SGD with Nesterov momentum 0.9, weight
 * decay 5e-4, cosine schedule):
 *
 *   model                     batch    learning rate   epochs   accuracy
 *   logistic regression       64       0.02            10       77.3 %
 *   784-256-10 perceptron     64       0.05            5        98.2 %
 *   LeNet-5                   64       0.05            3        98.2 %
 *   LeNet-5                   64       0.05            6        99.6 %
 *   LeNet-5                   512      0.05            10       98.7 to 98.9 %
 *   LeNet-5                   512      0.1             10       97.5 to 99.0 %
 *
 * A batch of 512 is what eight peers with batches of 64 use together.
 */
#ifndef NN_DATA_GLYPHS_H
#define NN_DATA_GLYPHS_H

#include "nn/data/dataset.h"

enum { GLYPHS_TRAIN = 20000, GLYPHS_TEST = 4000, GLYPHS_SIDE = 28, GLYPHS_CLASSES = 10 };

/* Initialises *d with the n images `first` to `first` + n - 1 of a seed. Returns 0 or -ENOMEM.
 * Takes about 10 us per image. */
__attribute__((warn_unused_result)) int glyphs_draw(struct dataset *d, size_t n, uint64_t seed,
                                                    uint64_t first);

/* Draws image i of a seed. Returns its class. */
uint8_t glyphs_image(uint64_t seed, uint64_t i, uint8_t pixels[GLYPHS_SIDE * GLYPHS_SIDE]);

#endif
