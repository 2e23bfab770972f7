/* nn/data/augment.h -- random changes to training images that keep their label (data augmentation).
 *
 *   crop   pads the image by 4 black pixels on every side, and cuts out an image of the original
 *          size at a random position (Lee et al. 2015; He et al. 2016, section 4.2)
 *   flip   exchanges left and right, with probability 1/2
 *
 *   spec   "none", "crop", "flip", "crop+flip"
 *
 * The random choices for a sample are a pure function of a key.
 */
#ifndef NN_DATA_AUGMENT_H
#define NN_DATA_AUGMENT_H

#include "nn/data/dataset.h"

enum { AUGMENT_PAD = 4, AUGMENT_SPEC_MAX = 16 };

struct augment
{
    bool crop, flip;
};

/* Parses the value of --augment, such as "crop+flip". The order of the words does not matter.
 * Returns 0, or -EINVAL with a message. */
__attribute__((warn_unused_result)) int augment_parse(struct augment *a, const char *spec,
                                                      char error[DATA_ERROR_MAX]);
void augment_print(const struct augment *a, char spec[AUGMENT_SPEC_MAX]);

/* Writes image i, changed by the random choices of `key` and normalised, to out[h][w][c]. If the
 * data are not images, or if no change is requested, the result equals that of dataset_sample(). */
void augment_sample(const struct augment *a, const struct dataset *d, size_t i, uint64_t key,
                    float *out);

#endif
