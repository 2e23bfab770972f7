/* nn/data/augment.h -- random changes to training images that keep their label.
 *
 *   crop   pad by 4 black pixels on every side, cut the image's size out at a
 *          random place (Lee et al. 2015; He et al. 2016, section 4.2)
 *   flip   left and right exchanged, half of the time
 *
 *   spec   "none", "crop", "flip", "crop+flip"
 *
 * What is drawn for a sample is a pure function of a key.
 */
#ifndef NN_DATA_AUGMENT_H
#define NN_DATA_AUGMENT_H

#include "nn/data/dataset.h"

enum { AUGMENT_PAD = 4, AUGMENT_SPEC_MAX = 16 };

struct augment
{
    bool crop, flip;
};

/* Parse a spec, in either order. 0, or -EINVAL with a sentence. */
__attribute__((warn_unused_result)) int augment_parse(struct augment *a, const char *spec,
                                                      char error[DATA_ERROR_MAX]);
void augment_print(const struct augment *a, char spec[AUGMENT_SPEC_MAX]);

/* Write image i, changed as `key` says and normalised, to out[h][w][c].
 * Data that are no images, and images where nothing is asked for, are written
 * as dataset_sample() writes them. */
void augment_sample(const struct augment *a, const struct dataset *d, size_t i, uint64_t key,
                    float *out);

#endif
