/* nn/data.h -- labelled image sets: what a data spec names, in memory.
 *
 *   spec      "glyphs"      drawn by the program (nn/glyphs.h)
 *             "mnist:DIR"   IDX files, plain or .gz (nn/idx.h)
 *             "cifar10:DIR" binary batches, plain or .gz (nn/cifar.h)
 *   kind      the part before the colon: it alone fixes shapes, number of
 *             classes and normalisation, so that a run's text fixes them too
 *   pixels    n x channels x height x width bytes, as the files have them
 *   sample    (pixel / 255 - mean) / std per channel, by a table
 *
 * Pixels stay bytes: a quarter of the memory, and normalising on the way into
 * a batch costs one table look-up a pixel.
 */
#ifndef NN_DATA_H
#define NN_DATA_H

#include <stddef.h>
#include <stdint.h>

enum {
    DATA_ERROR_MAX = 320, /* Bytes of an error sentence, with the NUL. */
    DATA_KIND_MAX = 32,
    DATA_CHANNELS_MAX = 4
};

struct dataset
{
    char kind[DATA_KIND_MAX];
    uint32_t channels, height, width, n_classes;
    size_t n;        /* Samples; at least one once open. */
    uint8_t *pixels; /* n * channels * height * width, CHW. */
    uint8_t *labels; /* n, each < n_classes. */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX]; /* Of pixel / 255. */
    float value[DATA_CHANNELS_MAX][256]; /* Pixel byte -> normalised. */
};

struct data
{
    struct dataset train, test;
};

/* Check the part of `spec` before its colon against the table of kinds and
 * copy it out; that a kind read from disk has a directory behind the colon,
 * and that "glyphs" has none, is checked too. 0, or -EINVAL with a sentence. */
__attribute__((warn_unused_result)) int
data_kind(const char *spec, char kind[DATA_KIND_MAX],
          char error[DATA_ERROR_MAX]);

/* Shapes that a kind fixes. 0, or -EINVAL for a kind that is none. */
__attribute__((warn_unused_result)) int
data_shape(const char *kind, uint32_t *channels, uint32_t *height,
           uint32_t *width, uint32_t *n_classes);

/* Read or draw both sets. `seed` is the run's: it changes "glyphs" only.
 * 0, or -EINVAL (spec or contents), -ENOMEM, or the file's errno; then `error`
 * has one sentence and *d holds nothing. */
__attribute__((warn_unused_result)) int
data_open(struct data *d, const char *spec, uint64_t seed,
          char error[DATA_ERROR_MAX]);
void data_close(struct data *d);

/* Floats of one sample: channels * height * width. */
size_t dataset_dim(const struct dataset *d);

/* Write sample i, normalised, to out[0..dataset_dim). */
void dataset_sample(const struct dataset *d, size_t i, float *out);

/* Give *d the shapes and normalisation of `kind` (which must be one) and room
 * for n >= 1 samples. For readers of files and for tests. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int
dataset_init(struct dataset *d, const char *kind, size_t n);
void dataset_close(struct dataset *d);

#endif
