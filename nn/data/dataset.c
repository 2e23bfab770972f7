/* nn/data/dataset.c -- allocates a set of samples, and writes samples out as floats.
 *
 * The table value[channel][byte] has the normalised value of each byte, computed in double and
 * rounded once. The same image therefore gives the same floats on every machine.
 */
#include "nn/data/dataset.h"

#include "nn/data/labels.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t dataset_dim(const struct dataset *d)
{
    return (size_t)d->shape.channels * d->shape.height * d->shape.width;
}

void dataset_kind(struct dataset *d, const char *kind)
{
    struct data_shape shape;
    const struct kind_family *f = kind_family_of(kind, &shape);
    assert(f != NULL && shape.n_classes > 0);
    snprintf(d->kind, sizeof d->kind, "%s", kind);
    d->shape = shape;
    struct kind_normalisation k = kind_normalisation(kind);
    memcpy(d->mean, k.mean, sizeof d->mean);
    memcpy(d->std, k.std, sizeof d->std);
    for (size_t c = 0; shape.form == DATA_IMAGES && c < shape.channels; c++)
        for (int p = 0; p < 256; p++)
            d->value[c][p] = (float)((p / 255.0 - (double)k.mean[c]) / (double)k.std[c]);
}

/* Allocates n * size bytes, at least one. Returns NULL if memory is short or the product
 * overflows. */
static void *room(size_t n, size_t size)
{
    return n <= SIZE_MAX / 2 / size ? malloc(n > 0 ? n * size : 1) : NULL;
}

/* Allocates the arrays that the form of the set (images, rows, sparse rows or text) needs. Returns
 * false if memory is short; dataset_close() then frees the arrays that were allocated. */
static bool take_room(struct dataset *d, size_t n, size_t entries)
{
    size_t dim = dataset_dim(d);
    if (d->shape.form != DATA_TEXT && (d->labels = room(n, sizeof *d->labels)) == NULL)
        return false;
    switch (d->shape.form) {
    case DATA_IMAGES:
        return (d->pixels = room(n, dim)) != NULL;
    case DATA_ROWS:
        d->stride = entries > 0 ? entries : dim;
        return (d->rows = room(n, d->stride * sizeof *d->rows)) != NULL;
    /* A text has one byte more than its samples: the label of the last sample's last byte. */
    case DATA_TEXT:
        return n < SIZE_MAX / 2 / dim && (d->text = room(n * dim + 1, 1)) != NULL;
    case DATA_SPARSE:
        d->start = room(n + 1, sizeof *d->start);
        d->column = room(entries, sizeof *d->column);
        d->entry = room(entries, sizeof *d->entry);
        break;
    }
    return d->start != NULL && d->column != NULL && d->entry != NULL;
}

/* If memory is short, returns -ENOMEM with *d empty. */
int dataset_init(struct dataset *d, const char *kind, size_t n, size_t entries)
{
    assert(n >= 1);
    memset(d, 0, sizeof *d);
    dataset_kind(d, kind);
    d->n = n;
    d->n_files = 1;
    if (take_room(d, n, entries))
        return 0;
    dataset_close(d);
    return -ENOMEM;
}

/* The arrays that the form of the set does not use are NULL. */
void dataset_close(struct dataset *d)
{
    free(d->labels);
    free(d->file);
    labels_close(d->names);
    free(d->pixels);
    free(d->rows);
    if (d->columns != NULL)
        columns_close(d->columns);
    free(d->columns);
    free(d->start);
    free(d->column);
    free(d->entry);
    free(d->text);
    memset(d, 0, sizeof *d);
}

/* Converts the bytes of one channel to floats. value[b] is the normalised value of byte b. */
static void look_up_1(float *restrict out, const uint8_t *restrict pixels,
                      const float *restrict value, size_t n)
{
    for (size_t j = 0; j < n; j++)
        out[j] = value[pixels[j]];
}

/* Converts three planes of bytes to pixels of three floats each. */
static void look_up_3(float *restrict out, const uint8_t *restrict pixels,
                      const float (*restrict value)[256], size_t n)
{
    const uint8_t *red = pixels, *green = pixels + n, *blue = pixels + 2 * n;
    for (size_t j = 0; j < n; j++) {
        out[3 * j] = value[0][red[j]];
        out[3 * j + 1] = value[1][green[j]];
        out[3 * j + 2] = value[2][blue[j]];
    }
}

/* Converts bytes to floats. The bytes of a text are token ids, and the model's layers take floats,
 * which represent these ids exactly. */
VEC_CLONES static void bytes_to_floats(float *restrict out, const uint8_t *restrict bytes, size_t n)
{
    for (size_t j = 0; j < n; j++)
        out[j] = (float)bytes[j];
}

/* Writes an image of one plane (grey) or three planes (colour). Readers make no other images. */
static void image_sample(const struct dataset *d, const uint8_t *pixels, float *out)
{
    size_t channels = d->shape.channels, n = (size_t)d->shape.height * d->shape.width;
    assert(channels == 1 || channels == 3);
    if (channels == 1)
        look_up_1(out, pixels, d->value[0], n);
    else
        look_up_3(out, pixels, d->value, n);
}

void dataset_sample(const struct dataset *d, size_t i, float *out)
{
    assert(i < d->n && d->shape.form != DATA_SPARSE);
    size_t dim = dataset_dim(d);
    if (d->shape.form == DATA_IMAGES)
        image_sample(d, d->pixels + i * dim, out);
    else if (d->shape.form == DATA_ROWS && d->columns != NULL)
        columns_expand(d->columns, d->rows + i * d->stride, out);
    else if (d->shape.form == DATA_ROWS)
        memcpy(out, d->rows + i * dim, dim * sizeof *out);
    else
        bytes_to_floats(out, d->text + i * dim, dim);
}

/* The labels of a text are its bytes, shifted by one: each byte's label is the next byte. */
void dataset_labels(const struct dataset *d, size_t i, uint16_t *labels)
{
    assert(i < d->n);
    if (d->shape.form != DATA_TEXT) {
        *labels = d->labels[i];
        return;
    }
    size_t dim = dataset_dim(d);
    const uint8_t *next = d->text + i * dim + 1;
    for (size_t t = 0; t < dim; t++)
        labels[t] = next[t];
}

const char *dataset_class(const struct dataset *d, uint16_t class, char out[8])
{
    struct kind_rows k = {.scheme = LABELS_ZERO}; /* Labels of images are the numbers 0, 1, ... */
    if (!kind_rows_parse(d->kind, "csv", &k) && !kind_rows_parse(d->kind, "libsvm", &k))
        k = (struct kind_rows){.scheme = LABELS_ZERO};
    if (k.scheme == LABELS_NAMES && d->names == NULL)
        k.scheme = LABELS_ZERO;
    return labels_text(&k, d->names, class, out);
}
