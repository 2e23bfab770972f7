/* nn/data/glyphs.h -- the built-in data set: ten stroke glyphs, drawn and distorted.
 *
 * 28x28 grey images, so that a first run needs no file. The ten classes are
 * five pairs that differ in one stroke or one joint, so that a model must find
 * strokes wherever they have moved to:
 *
 *   O Q    C G    4 9    S 8    Z 7
 *
 *   strokes -> hand tremor -> elastic warp -> rotation, scale, shear, shift
 *           -> anti-aliased pen of random width -> contrast, distractor
 *              strokes, noise -> bytes
 *
 * Image i of a seed is a pure function of (seed, i): the same bytes on every
 * machine, since only + - * / and sqrt of IEEE floats are used, in a fixed
 * order.
 *
 * How hard it is (seed 1, 4,000 test images; PyTorch, SGD with Nesterov
 * momentum 0.9, weight decay 5e-4, cosine from 0.05, logistic regression from
 * 0.02, batch 64): logistic regression 77.3 % after 10 epochs, a 784-256-10
 * perceptron 98.2 % after 5, LeNet-5 98.2 % after 3 and 99.6 % after 6; with
 * batches of 512, as eight peers take them together, LeNet-5 98.7 to 98.9 %
 * after 10 (97.5 to 99.0 % from 0.1).
 */
#ifndef NN_DATA_GLYPHS_H
#define NN_DATA_GLYPHS_H

#include "nn/data/dataset.h"

enum { GLYPHS_TRAIN = 20000, GLYPHS_TEST = 4000, GLYPHS_SIDE = 28, GLYPHS_CLASSES = 10 };

/* Draw images first .. first + n of a seed into *d, which is initialised here.
 * 0 or -ENOMEM. About 10 us an image. */
__attribute__((warn_unused_result)) int glyphs_draw(struct dataset *d, size_t n, uint64_t seed,
                                                    uint64_t first);

/* Draw image i alone; returns its class. */
uint8_t glyphs_image(uint64_t seed, uint64_t i, uint8_t pixels[GLYPHS_SIDE * GLYPHS_SIDE]);

#endif
