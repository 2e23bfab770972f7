/* nn/data/image_set.h -- a set of images that grows as its files are read.
 *
 * The size of the memory follows the number of images that have been read, not the number in a
 * header: at most about twice what has been read, plus a step of a few MiB. A small file with a
 * header that announces a large set therefore costs little.
 */
#ifndef NN_DATA_IMAGE_SET_H
#define NN_DATA_IMAGE_SET_H

#include "nn/data/dataset.h"

#define IMAGE_SET_BYTES_MAX (UINT64_C(8) << 30) /* Largest size of the pixels of a set, in bytes. */

enum {
    IMAGE_SET_STEP = 4 << 20 /* Number of pixel bytes that are read at a time. */
};

struct image_set
{
    /* The data set to fill. Its shape is known, and d->n counts the images read so far. */
    struct dataset *d;
    size_t cap;   /* Number of images for which memory is allocated. */
    bool by_file; /* True: store the file that each image is from. */
};

/* Returns the largest number of images of this shape that a set may have. */
size_t image_set_most(const struct dataset *d);

/* Returns the number of images to read at a time. */
size_t image_set_step(const struct dataset *d);

/* Makes room for `more` images after the n images of the set. `most`: limit of the memory to
 * reserve, in images, from n + more to image_set_most(). Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int image_set_room(struct image_set *s, size_t more,
                                                       size_t most);

/* Increases the number n of images by `more`. The caller has written the new images after the first
 * n. `file`: the file that they are from. */
void image_set_add(struct image_set *s, size_t more, uint32_t file);

/* Frees the unused memory after the last image. */
void image_set_end(struct image_set *s);

#endif
