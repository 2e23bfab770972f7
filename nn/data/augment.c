/* nn/data/augment.c -- crops and flips images while their bytes are converted to floats.
 *
 * The cropped image is never stored. For each pixel of the output, the conversion looks up the byte
 * that crop and flip put there, or black.
 */
#include "nn/data/augment.h"

#include "nn/math/rng.h"
#include "nn/math/spelling.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const specs[2][2] = {{"none", "flip"}, {"crop", "crop+flip"}};

int augment_parse(struct augment *a, const char *spec, char error[DATA_ERROR_MAX])
{
    for (int crop = 0; crop < 2; crop++)
        for (int flip = 0; flip < 2; flip++)
            if (strcmp(spec, specs[crop][flip]) == 0) {
                *a = (struct augment){.crop = crop, .flip = flip};
                return 0;
            }
    if (strcmp(spec, "flip+crop") == 0) {
        *a = (struct augment){.crop = true, .flip = true};
        return 0;
    }
    *a = (struct augment){.crop = false};
    char room[SPELLING_CHOICES_MAX], question[SPELLING_QUESTION_MAX];
    struct spelling near = {.found = spec};
    spelling_try_choices(&near, "none|crop|flip|crop+flip", room);
    snprintf(error, DATA_ERROR_MAX, "found \"%.60s\", expected none, crop, flip or crop+flip%s",
             spec, spelling_question(&near, question, sizeof question));
    return -EINVAL;
}

void augment_print(const struct augment *a, char spec[AUGMENT_SPEC_MAX])
{
    const char *text = specs[a->crop][a->flip];
    memcpy(spec, text, strlen(text) + 1);
}

/* How an image is changed. Pixel (y, x) of the output is pixel (y + down, x + right) of the image
 * of width w. If the image is flipped, it is pixel (y + down, w - 1 - x + right) instead. Pixels
 * outside of the image are black. */
struct view
{
    const struct dataset *d;
    int down, right;
    bool flip;
};

/* Draws the changes of one image. Three random numbers, computed from the key, give the shift down,
 * the shift to the right, and whether the image is flipped. */
static struct view view_of(const struct augment *a, const struct dataset *d, uint64_t key)
{
    struct view v = {.d = d};
    if (a->crop) {
        v.down = (int)(rng_at(key, 0) % (2 * AUGMENT_PAD + 1)) - AUGMENT_PAD;
        v.right = (int)(rng_at(key, 1) % (2 * AUGMENT_PAD + 1)) - AUGMENT_PAD;
    }
    v.flip = a->flip && rng_at(key, 2) >> 63;
    return v;
}

/* Returns v, limited to the range from 0 to `most`. */
static size_t clamp(int64_t v, size_t most)
{
    return v < 0 ? 0 : (size_t)v > most ? most : (size_t)v;
}

/* Sets n pixels of one channel to black. `black`: the normalised value of the pixel 0, which is not
 * the float 0. */
static void blacken(float *out, float black, size_t n, size_t channels)
{
    for (size_t x = 0; x < n; x++)
        out[x * channels] = black;
}

/* Writes one channel of one row. Pixels `from` to `to` - 1 come from the image, the others are
 * black. If row is NULL, the whole row is black. */
static void view_row(const struct view *v, const uint8_t *row, const float *value, float *out)
{
    size_t channels = v->d->shape.channels, w = v->d->shape.width;
    size_t from = row != NULL ? clamp(-(int64_t)v->right, w) : w;
    size_t to = row != NULL ? clamp((int64_t)w - v->right, w) : w;
    blacken(out, value[0], v->flip ? w - to : from, channels);
    size_t shown = v->flip ? w - from : to;
    blacken(out + shown * channels, value[0], w - shown, channels);
    if (from >= to)
        return;
    const uint8_t *pixel = row + (size_t)((int64_t)from + v->right);
    if (!v->flip) {
        for (size_t x = 0; x < to - from; x++)
            out[(from + x) * channels] = value[pixel[x]];
        return;
    }
    out += (w - to) * channels;
    for (size_t x = 0; x < to - from; x++)
        out[x * channels] = value[pixel[to - from - 1 - x]];
}

void augment_sample(const struct augment *a, const struct dataset *d, size_t i, uint64_t key,
                    float *out)
{
    if (d->shape.form != DATA_IMAGES || !(a->crop || a->flip)) {
        dataset_sample(d, i, out);
        return;
    }
    assert(i < d->n);
    size_t channels = d->shape.channels, h = d->shape.height, w = d->shape.width;
    struct view v = view_of(a, d, key);
    for (size_t c = 0; c < channels; c++)
        for (size_t y = 0; y < h; y++) {
            int64_t from = (int64_t)y + v.down;
            const uint8_t *row = NULL;
            if (from >= 0 && from < (int64_t)h)
                row = d->pixels + ((i * channels + c) * h + (size_t)from) * w;
            view_row(&v, row, d->value[c], out + y * w * channels + c);
        }
}
