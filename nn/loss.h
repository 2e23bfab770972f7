/* nn/loss.h -- softmax cross-entropy, and how often the largest logit is right.
 *
 *   loss of a sample   log(sum_j exp(z_j)) - z_label, with the largest z taken
 *                      out first, so that nothing overflows
 *   its gradient       (softmax(z) - onehot(label)) / n : of the mean loss
 *
 * A logit that is NaN gives a loss that is NaN and an answer that is wrong.
 */
#ifndef NN_LOSS_H
#define NN_LOSS_H

#include <stddef.h>
#include <stdint.h>

struct loss
{
    double sum;       /* Over the samples, not their mean. */
    uint64_t n_right; /* Where the label is the first of the largest. */
};

struct loss_batch
{
    size_t n, n_classes;
    const float *logits;   /* [n][n_classes] */
    const uint8_t *labels; /* n, each < n_classes. */
};

/* Loss of a batch; the gradient of its mean goes to d_logits, which may be
 * NULL and may be the logits' own memory. */
struct loss loss_softmax(const struct loss_batch *b, float *d_logits);

#endif
