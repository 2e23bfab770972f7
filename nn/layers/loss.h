/* nn/layers/loss.h -- softmax cross-entropy, and how often the largest logit is right.
 *
 *   loss of a row   log(sum_j exp(z_j)) - sum_j t_j z_j, with the largest z
 *                   taken out first, so that nothing overflows
 *   targets t       onehot(label) * (1 - smoothing) + smoothing / n_classes
 *                   (Szegedy et al. 2016, section 7)
 *   its gradient    (softmax(z) - t) / n : of the mean loss
 *
 * Exponentials in float (nn/math/vec_math.h, within 2 ulp), sums in double. A logit
 * that is NaN gives a loss that is NaN and an answer that is wrong.
 */
#ifndef NN_LAYERS_LOSS_H
#define NN_LAYERS_LOSS_H

#include <stddef.h>
#include <stdint.h>

struct loss
{
    double sum;       /* Over the rows, not their mean; without smoothing's
                       * part where smoothing is 0. */
    uint64_t n_right; /* Number of rows whose label is the first of the largest logits. */
};

struct loss_batch
{
    size_t n, n_classes;    /* n rows. */
    const float *logits;    /* [n][n_classes] */
    const uint16_t *labels; /* n, each < n_classes. */
    float smoothing;        /* In [0, 1). */
    size_t n_mean;          /* Divisor of the gradient; 0: n. More than n where
                             * these rows are a part of a batch. */
};

/* Loss of a batch; the gradient of its mean goes to d_logits, which may be
 * NULL and may be the logits' own memory. */
struct loss loss_softmax(const struct loss_batch *b, float *d_logits);

#endif
