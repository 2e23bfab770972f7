#include "nn/loss.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* Written so that a NaN anywhere makes the answer wrong. */
static bool is_right(const float *z, size_t n, size_t label)
{
    bool right = true;
    for (size_t j = 0; j < n; j++)
        right &= j < label ? z[j] < z[label] : z[j] <= z[label];
    return right;
}

static float largest(const float *z, size_t n)
{
    float top = z[0];
    for (size_t j = 1; j < n; j++)
        top = z[j] > top ? z[j] : top;
    return top;
}

struct loss loss_softmax(const struct loss_batch *b, float *d_logits)
{
    struct loss loss = {0};
    size_t n_classes = b->n_classes;
    double scale = 1.0 / (double)b->n;
    for (size_t i = 0; i < b->n; i++) {
        const float *z = b->logits + i * n_classes;
        size_t label = b->labels[i];
        assert(label < n_classes);
        double top = (double)largest(z, n_classes);
        double z_label = (double)z[label];
        double sum = 0;
        for (size_t j = 0; j < n_classes; j++)
            sum += exp((double)z[j] - top);
        loss.n_right += is_right(z, n_classes, label);
        loss.sum += log(sum) + top - z_label;
        if (d_logits == NULL)
            continue;
        float *d = d_logits + i * n_classes; /* May be z: read, then write. */
        for (size_t j = 0; j < n_classes; j++)
            d[j] = (float)(exp((double)z[j] - top) / sum * scale);
        d[label] -= (float)scale;
    }
    return loss;
}
