/* peer/run/codec_precision.c -- measures the precision of a codec by compressing a sample
 * tensor. */
#include "peer/run/codec_precision.h"

#include "compress/compress.h"

#include <errno.h>
#include <stdlib.h>

enum {
    /* Side of the square sample tensor, on which codecs are tested, in elements. */
    NOMINAL_SIDE = 256,
    NOMINAL_FLOATS = NOMINAL_SIDE * NOMINAL_SIDE
};

/* Least number of bytes per parameter that makes a codec precise enough for the consensus phase. */
static const double fine_bytes_per_float = 0.6;

/* Largest share of |x - x_hat|^2 (model minus replica) that a codec may leave out of a delta if the
 * topology changes by round. */
static const double most_left_out = 0.1;

/* Largest share of |x - x_hat|^2 that a codec may leave out of a delta if the momentum needs
 * constant mixing (nn/train/decentlam.h). */
static const double most_left_out_of_momentum = 0.006;

/* Returns the shape of the sample tensor, on which codecs are tested. The model's own tensors
 * cannot be used, because a run description does not contain them. */
static struct segment nominal_segment(void)
{
    return (struct segment){.name = "x",
                            .n = NOMINAL_FLOATS,
                            /* The tensor is a square matrix, because some codecs compress only
                             * matrices. */
                            .rows = NOMINAL_SIDE,
                            .cols = NOMINAL_SIDE,
                            .n_dims = 2,
                            .dims = {NOMINAL_SIDE, NOMINAL_SIDE},
                            .trained = true};
}

int codec_precise_for_consensus(const char *codec, bool *fine)
{
    struct segment one = nominal_segment();
    struct compress *c;
    int err = compress_open(&c, codec, &one, 1);
    if (err != 0)
        return err;
    *fine = (double)compress_nominal(c) / NOMINAL_FLOATS >= fine_bytes_per_float;
    compress_close(c);
    return 0;
}

/* Sets `*keeps` to whether the codec leaves out at most the share `most` of |x|^2 of a sample
 * tensor x. Returns 0, or a negative errno and `*keeps` is unchanged. */
static int leaves_out_at_most(const char *codec, double most, bool *keeps)
{
    struct segment one = nominal_segment();
    struct compress *c;
    struct compress_stat stat;
    int err = compress_open(&c, codec, &one, 1);
    if (err != 0)
        return err;
    float *x = calloc(2 * NOMINAL_FLOATS, sizeof *x);
    uint8_t *out = malloc(compress_bound(c));
    size_t len;
    for (uint32_t i = 0; x != NULL && i < NOMINAL_FLOATS; i++)
        x[i] = (float)(i * 40503u % NOMINAL_FLOATS) / (NOMINAL_FLOATS / 2) - 1;
    struct compress_input in = {.x = x, .x_hat = x != NULL ? x + NOMINAL_FLOATS : NULL};
    err = x == NULL || out == NULL ? -ENOMEM : compress_encode(c, &in, out, &len, &stat);
    if (err == 0)
        *keeps = stat.e2 <= most * stat.x2;
    free(x);
    free(out);
    compress_close(c);
    return err;
}

int codec_precise_for_rounds(const char *codec, bool *keeps)
{
    return leaves_out_at_most(codec, most_left_out, keeps);
}

int codec_precise_for_momentum(const char *codec, bool *keeps)
{
    return leaves_out_at_most(codec, most_left_out_of_momentum, keeps);
}
