/* nn/data/image_set.c -- memory for images, which grows with the images that have been read. */
#include "nn/data/image_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

size_t image_set_most(const struct dataset *d)
{
    uint64_t n = IMAGE_SET_BYTES_MAX / dataset_dim(d);
    /* Sample numbers have 32 bits, which limits the number of images. */
    return n < UINT32_MAX ? (size_t)n : UINT32_MAX - 1;
}

/* image_set_step() returns at least 1, because the limits of height and width keep an image smaller
 * than IMAGE_SET_STEP bytes. */
size_t image_set_step(const struct dataset *d)
{
    return IMAGE_SET_STEP / dataset_dim(d);
}

/* Changes the capacity to exactly `cap` images. */
static int resize(struct image_set *s, size_t cap)
{
    struct dataset *d = s->d;
    uint8_t *pixels = realloc(d->pixels, cap * dataset_dim(d));
    d->pixels = pixels != NULL ? pixels : d->pixels;
    uint16_t *labels = realloc(d->labels, cap * sizeof *labels);
    d->labels = labels != NULL ? labels : d->labels;
    uint32_t *file = s->by_file ? realloc(d->file, cap * sizeof *file) : NULL;
    d->file = file != NULL ? file : d->file;
    if (pixels == NULL || labels == NULL || (s->by_file && file == NULL))
        return -ENOMEM;
    s->cap = cap;
    return 0;
}

/* The capacity grows by doubling, so each image is copied about once on average. */
int image_set_room(struct image_set *s, size_t more, size_t most)
{
    size_t need = s->d->n + more;
    assert(need <= most && most <= image_set_most(s->d));
    if (need <= s->cap)
        return 0;
    size_t twice = s->cap > most / 2 ? most : s->cap * 2;
    return resize(s, need > twice ? need : twice);
}

/* The caller has already written the pixels and labels of the new images to the set.
 * image_set_add() only counts the new images. */
void image_set_add(struct image_set *s, size_t more, uint32_t file)
{
    assert(s->cap - s->d->n >= more);
    for (size_t i = 0; s->by_file && i < more; i++)
        s->d->file[s->d->n + i] = file;
    s->d->n += more;
}

void image_set_end(struct image_set *s)
{
    assert(s->d->n >= 1);
    if (s->cap > s->d->n)
        (void)resize(s, s->d->n); /* If shrinking fails, the array keeps its size. */
}
