/* nn/data/image_set.h -- a set of images that grows as its files are read.
 *
 * Memory is taken for what has been read, and for what a plain file's size
 * vouches for, not for what a header announces: at most twice what there is
 * already, or a step of a few MiB. So a small file that announces a large set
 * costs little.
 */
#ifndef NN_DATA_IMAGE_SET_H
#define NN_DATA_IMAGE_SET_H

#include "nn/data/dataset.h"

#define IMAGE_SET_BYTES_MAX (UINT64_C(8) << 30) /* Largest size of the pixels of a set, in bytes. */

enum {
    IMAGE_SET_STEP = 4 << 20 /* Bytes of pixels read at a time. */
};

struct image_set
{
    struct dataset *d; /* The set to fill. Its shape is known; n counts the images read so far. */
    size_t cap;        /* Images there is room for. */
    bool by_file;      /* Note which file each is from. */
};

/* The most images of this shape that a set may have. */
size_t image_set_most(const struct dataset *d);

/* Images to read at a time: a step's worth. */
size_t image_set_step(const struct dataset *d);

/* Room for `more` images behind the n there are, with `most` in sight
 * (n + more <= most <= image_set_most()). 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int image_set_room(struct image_set *s, size_t more,
                                                       size_t most);

/* `more` images have been read, all from this file. */
void image_set_add(struct image_set *s, size_t more, uint32_t file);

/* All are there: give room back that is not used. */
void image_set_end(struct image_set *s);

#endif
