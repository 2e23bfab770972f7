/* nn/layers/loss.h -- softmax cross-entropy, and the number of rows whose label has the largest
 * logit.
 *
 *   loss of a row   log(sum_j exp(z_j)) - sum_j t_j z_j. The largest z is subtracted before exp, so
 *                   that nothing overflows.
 *   targets t       onehot(label) * (1 - smoothing) + smoothing / n_classes
 *                   (Szegedy et al. 2016, section 7)
 *   gradient        (softmax(z) - t) / n, the gradient of the mean loss
 *
 * Exponentials are computed in float (nn/math/vec_math.h, within 2 ulp), sums in double. If a logit
 * is NaN, the loss is NaN and the row counts as wrong.
 */
#ifndef NN_LAYERS_LOSS_H
#define NN_LAYERS_LOSS_H

#include <stddef.h>
#include <stdint.h>

struct loss
{
    double sum; /* Sum of the losses of all rows (not the mean), label smoothing included. */
    /* Number of rows that are classified correctly, that is, whose label is the first class with
     * the largest logit. */
    uint64_t n_right;
};

struct loss_batch
{
    size_t n, n_classes;    /* Number of rows of logits, and number of classes (columns). */
    const float *logits;    /* Logits, [n][n_classes]. */
    const uint16_t *labels; /* Label of each of the n rows, less than n_classes. */
    float smoothing;        /* Label smoothing, in [0, 1). */
    /* Number by which the gradient is divided. 0: by n, the number of rows of logits. If these rows
     * are only a part of a batch, the caller gives the number of rows of the whole batch. */
    size_t n_mean;
};

/* Returns the loss of a batch. Writes the gradient of the mean loss to d_logits, which may be NULL
 * and may be the same memory as the logits. */
struct loss loss_softmax(const struct loss_batch *b, float *d_logits);

#endif
